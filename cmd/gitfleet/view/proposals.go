package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
)

// NewProposals returns the command proposals.
func NewProposals() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "proposals",
		Short: "Decide about held drift and its pull requests",
		Long: `Proposals are the changes on member clusters that are held: the same change of
one object, on however many clusters, is one proposal.

  waiting         it has no pull request yet
  open            its pull request is open
  merged          its pull request is merged; the commit is not in force on its
                  clusters yet
  closed          its pull request was closed without merging: it is put back
  on-hold         its closed pull request has the label gitfleet/hold
  reported        it is only reported, as its drift mode asks
  inexpressible   no edit of the files in Git makes it, and it cannot be offered
                  as an issue: it is put back
  unsettled       the commit in force has it, or it is not known well enough yet

What no edit of the files in Git makes is offered as an issue instead of a pull
request.`,
	}
	cmd.AddCommand(newProposalsList(), newProposalsShow(),
		newProposalsDecision("close", "close-proposal", "Put a held change back, and close its pull request or issue",
			`Close the pull request of a held change without merging it, or its issue. The
object is put back to what is in Git, and the same change is not offered again.
A change that has none is put back as well; if it is made once more, it is held
again. The history says who asked.

NAME is that of "gitfleet proposals list".`),
		newProposalsDecision("open", "open-proposal", "Open the pull request or issue of a held change now",
			`Open the pull request of a held change now, or its issue: before it has lasted
for drift.minAge, although drift.maxOpen are open, or although one was closed
without merging and the label gitfleet/hold keeps the object as it is. The
history says who asked.

NAME is that of "gitfleet proposals list".`))
	return cmd
}

// newProposalsList returns the command proposals list.
func newProposalsList() *cobra.Command {
	var at client.Connection
	var out output.Format
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the changes that are held, the oldest first",
		Long: `List the changes that are held, the oldest first, and the URL of the pull
request or issue, or why there is none.

Exit codes: 0 nothing is held, 1 something is, 2 error.`,
		Args: cobra.NoArgs,
		RunE: at.WithClient(func(cmd *cobra.Command, _ []string, c *client.Client) error {
			var list proposal.HeldList
			if err := c.Get(cmd.Context(), "/proposals", nil, &list); err != nil {
				return err
			}
			err := out.Print(cmd.OutOrStdout(), &list, func() string { return proposalsText(&list, out) })
			if err == nil && len(list.Items) > 0 {
				return exit.Attention
			}
			return err
		}),
	}
	out.Bind(cmd.Flags(), "table")
	at.Bind(cmd.Flags())
	return cmd
}

// newProposalsShow returns the command proposals show.
func newProposalsShow() *cobra.Command {
	var at client.Connection
	var out output.Format
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a held change: its fields, who made it, and the edit in Git",
		Args:  cobra.ExactArgs(1),
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			var list proposal.HeldList
			if err := c.Get(cmd.Context(), "/proposals", nil, &list); err != nil {
				return err
			}
			change, err := list.Find(args[0])
			if err != nil {
				return err
			}
			list.Items = []proposal.HeldChange{*change}
			return out.Print(cmd.OutOrStdout(), &list, func() string { return proposalText(list.At, &list.Items[0]) })
		}),
	}
	out.Bind(cmd.Flags(), "text")
	at.Bind(cmd.Flags())
	return cmd
}

// newProposalsDecision returns a command that sends an action about a held change.
func newProposalsDecision(name, action, short, long string) *cobra.Command {
	var at client.Connection
	cmd := &cobra.Command{
		Use: name + " NAME", Short: short, Long: long, Args: cobra.ExactArgs(1),
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			a, err := c.Act(cmd.Context(), action, reconciler.Order{Subject: args[0]})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), output.Sanitize(a.Message))
			return err
		}),
	}
	at.Bind(cmd.Flags())
	return cmd
}

// proposalsText writes a line for each change, followed by the pull request or the reason why
// there is none.
func proposalsText(list *proposal.HeldList, out output.Format) string {
	if len(list.Items) == 0 {
		return "nothing is held\n"
	}
	t := output.Table{Header: []string{"NAME", "OBJECT", "CLUSTERS", "MODE", "STATE", "SINCE"}}
	for i := range list.Items {
		c := &list.Items[i]
		mode, _, _ := strings.Cut(strings.Join(c.Rules, ","), " ")
		t.Rows = append(t.Rows, []string{output.ShortHash(c.Name), c.Object.ID().String(), fmt.Sprintf("%d of %d", len(c.Clusters), c.Holders), mode, string(c.State), output.Since(list.At, c.FirstSeen)})
	}
	header, rows := t.Lines(out)
	var b strings.Builder
	b.WriteString(header)
	for i, row := range rows {
		b.WriteString(row)
		writeWrapped(&b, "  ", waitsFor(&list.Items[i]))
	}
	return b.String()
}

// waitsFor returns what a change waits for, without the part that is the same for all.
func waitsFor(c *proposal.HeldChange) string { return strings.TrimPrefix(c.Message, "left as it is; ") }

// writeWrapped writes a text in lines of the default width.
func writeWrapped(b *strings.Builder, indent, text string) {
	for _, line := range output.Wrap(text, output.DefaultWidth-output.Width(indent)) {
		b.WriteString(indent + line + "\n")
	}
}

// proposalText writes everything that is known about a held change.
func proposalText(now time.Time, c *proposal.HeldChange) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", c.Name, output.Sanitize(c.Object.ID().String()))
	waits, _, _ := strings.Cut(waitsFor(c), "; no edit of the files makes the change: ") // the rest is written below
	writeWrapped(&b, "  ", string(c.State)+": "+waits)
	if len(c.Together) > 0 {
		var names []string
		for _, name := range c.Together {
			names = append(names, output.ShortHash(name))
		}
		writeWrapped(&b, "  ", fmt.Sprintf("in one pull request with %s: %s", output.Count(len(names), "other change"), strings.Join(names, ", ")))
	}
	writeWrapped(&b, "  ", fmt.Sprintf("on %d of %s: %s", len(c.Clusters), output.Count(c.Holders, "cluster"), strings.Join(c.Clusters, ", ")))
	writeWrapped(&b, "  ", fmt.Sprintf("first seen %s ago, held by drift mode %s", output.Since(now, c.FirstSeen), strings.Join(c.Rules, ", ")))
	writeWrapped(&b, "  ", "placement "+strings.Join(c.Placements, ", "))
	if c.Source != "" {
		writeWrapped(&b, "  ", "source "+c.Source)
	}
	for _, by := range c.By {
		writeWrapped(&b, "  ", fmt.Sprintf("by %s on %s%s", by.Actor, by.Cluster, when(" at ", by.Time)))
	}
	b.WriteString("\nFields (- in Git, + on the clusters)\n")
	if c.Deleted {
		b.WriteString("  the object was deleted\n")
	}
	for _, f := range c.Fields {
		for _, line := range f.Diff {
			fmt.Fprintf(&b, "  %s\n", output.Sanitize(line))
		}
	}
	if len(c.Edits) > 0 {
		b.WriteString("\nEdit in Git\n")
	}
	for _, e := range c.Edits {
		if e.Diff == "" {
			fmt.Fprintf(&b, "  %s is not shown, since it has a Secret\n", output.Sanitize(e.Path))
		}
		for line := range strings.Lines(e.Diff) {
			fmt.Fprintf(&b, "  %s\n", output.Sanitize(strings.TrimSuffix(line, "\n")))
		}
	}
	what, putsBack := "change", "puts the object back to what is in Git"
	if c.Deleted {
		what, putsBack = "deletion", "creates the object again as it is in Git"
	}
	if len(c.Edits) > 0 {
		b.WriteString("\n")
		text := "Merging takes the " + what + " over into Git. Nothing is written to the object on the clusters above."
		if c.Override != "" {
			text += " The edit is in " + c.Override + ", for these clusters only."
			if !c.Deleted {
				text += " While it sets the value, later changes of it in the manifest do not reach them."
			}
		}
		if len(c.OtherClusters) > 0 {
			text += fmt.Sprintf(" It would also change the object on %s: %s.", output.Count(len(c.OtherClusters), "other cluster"), strings.Join(c.OtherClusters, ", "))
		}
		writeWrapped(&b, "", text)
		writeWrapped(&b, "", "Closing without merging "+putsBack+", and the same change is not offered again.")
	}
	if c.Reason != "" {
		b.WriteString("\n")
		writeWrapped(&b, "", "No edit of the files in Git makes the change: "+c.Reason)
		writeWrapped(&b, "", "Make it in Git by hand to keep it. Closing the issue "+putsBack+", and the same change is not offered again.")
	}
	return b.String()
}
