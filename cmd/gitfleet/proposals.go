package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

func newProposals() *cobra.Command {
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
  inexpressible   no edit of the files in Git makes it: it is put back
  unsettled       the commit in force has it, or too little is known of it yet`,
	}
	cmd.AddCommand(newProposalsList(), newProposalsShow(),
		newProposalsDecision("close", "close-proposal", "Put a held change back, and close its pull request without merging",
			`Close the pull request of a held change without merging it. The object is put
back to what is in Git, and the same change is not offered again. A change that
has no pull request is put back as well; if it is made once more, it is held
again.

NAME is that of "gitfleet proposals list".`),
		newProposalsDecision("open", "open-proposal", "Open the pull request of a held change now",
			`Open the pull request of a held change now: before it has lasted for
drift.minAge, although drift.maxOpen pull requests are open, or although one was
closed without merging and the label gitfleet/hold keeps the object as it is.

NAME is that of "gitfleet proposals list".`))
	return cmd
}

func newProposalsList() *cobra.Command {
	var at connection
	var out format
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the changes that are held, the oldest first",
		Long: `List the changes that are held, the oldest first, and the URL of the pull
request or why there is none.

Exit codes: 0 nothing is held, 1 something is, 2 error.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			list, err := at.proposals(cmd)
			if err != nil {
				return err
			}
			if out.isText() {
				err = listProposals(cmd.OutOrStdout(), list, out)
			} else {
				err = out.write(cmd.OutOrStdout(), list)
			}
			if err == nil && len(list.Items) > 0 {
				return exitCode(exitDifferences)
			}
			return err
		},
	}
	out.bind(cmd.Flags(), "table")
	at.bind(cmd.Flags())
	return cmd
}

func newProposalsShow() *cobra.Command {
	var at connection
	var out format
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a held change: its fields, who made it, and the edit in Git",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			list, err := at.proposals(cmd)
			if err != nil {
				return err
			}
			c, err := list.Find(args[0])
			if err != nil {
				return err
			}
			if out.isText() {
				return showProposal(cmd.OutOrStdout(), list.At, c)
			}
			return out.write(cmd.OutOrStdout(), &proposal.HeldList{APIVersion: list.APIVersion, At: list.At, Items: []proposal.HeldChange{*c}})
		},
	}
	out.bind(cmd.Flags(), "text")
	at.bind(cmd.Flags())
	return cmd
}

// newProposalsDecision returns a command that sends an action about a held change.
func newProposalsDecision(name, action, short, long string) *cobra.Command {
	var at connection
	cmd := &cobra.Command{
		Use: name + " NAME", Short: short, Long: long, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := at.client()
			if err != nil {
				return err
			}
			a, err := c.act(cmd.Context(), action, reconciler.Order{Subject: args[0], By: person()})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), harmless(a.Said))
			return err
		},
	}
	at.bind(cmd.Flags())
	return cmd
}

// proposals asks the daemon for what is held.
func (c *connection) proposals(cmd *cobra.Command) (*proposal.HeldList, error) {
	daemon, err := c.client()
	if err != nil {
		return nil, err
	}
	var list proposal.HeldList
	return &list, daemon.get(cmd.Context(), "/proposals", nil, &list)
}

// serveProposals answers GET /proposals with what is held. objection is why this replica does
// not know, as only the leader does; nil if it does.
func serveProposals(srv *server.Server, objection func() error, held func() *proposal.HeldList) {
	srv.Mount("GET /proposals", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := objection(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		list := held()
		if list == nil {
			http.Error(w, "it is not known yet what is held: the daemon is starting", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(list) // a reader that went away is not our concern
	}))
}

// listProposals writes a line for each change, and below it the pull request or why there is
// none.
func listProposals(w io.Writer, list *proposal.HeldList, out format) error {
	if len(list.Items) == 0 {
		_, err := fmt.Fprintln(w, "nothing is held")
		return err
	}
	t := table{header: []string{"NAME", "OBJECT", "CLUSTERS", "MODE", "STATE", "SINCE"}}
	for i := range list.Items {
		c := &list.Items[i]
		mode, _, _ := strings.Cut(strings.Join(c.Modes, ","), " ")
		t.rows = append(t.rows, []string{short(c.Name), c.Object.ID().String(), fmt.Sprintf("%d of %d", len(c.Clusters), c.Holders), mode, string(c.State), since(list.At, c.FirstSeen)})
	}
	var rows bytes.Buffer
	t.print(&rows, out)
	lines := strings.SplitAfter(strings.TrimSuffix(rows.String(), "\n"), "\n")
	var b strings.Builder
	if !out.noHeaders {
		b.WriteString(lines[0])
		lines = lines[1:]
	}
	for i, line := range lines {
		b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		writeWrapped(&b, "  ", waitsFor(&list.Items[i]))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// waitsFor is what a change waits for, without what is so of all of them.
func waitsFor(c *proposal.HeldChange) string { return strings.TrimPrefix(c.Message, "left as it is; ") }

// writeWrapped writes a text in lines of pageWidth.
func writeWrapped(b *strings.Builder, indent, text string) {
	for _, line := range wrap(text, pageWidth-wide(indent)) {
		b.WriteString(indent + line + "\n")
	}
}

// showProposal writes all that is known of a held change.
func showProposal(w io.Writer, now time.Time, c *proposal.HeldChange) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", c.Name, harmless(c.Object.ID().String()))
	writeWrapped(&b, "  ", string(c.State)+": "+waitsFor(c))
	writeWrapped(&b, "  ", fmt.Sprintf("on %d of %s: %s", len(c.Clusters), number(c.Holders, "cluster"), strings.Join(c.Clusters, ", ")))
	writeWrapped(&b, "  ", fmt.Sprintf("first seen %s ago, held by drift mode %s", since(now, c.FirstSeen), strings.Join(c.Modes, ", ")))
	writeWrapped(&b, "  ", "placement "+strings.Join(c.Placements, ", "))
	if c.Source != "" {
		writeWrapped(&b, "  ", "source "+c.Source)
	}
	for _, by := range c.By {
		writeWrapped(&b, "  ", fmt.Sprintf("by %s on %s%s", by.Actor, by.Cluster, when(by.Time)))
	}
	b.WriteString("\nFields (- in Git, + on the clusters)\n")
	if c.Deleted {
		b.WriteString("  the object was deleted\n")
	}
	for _, f := range c.Fields {
		writeChange(&b, "  ", f)
	}
	if len(c.Edits) > 0 {
		b.WriteString("\nEdit in Git\n")
	}
	for _, e := range c.Edits {
		if e.Diff == "" {
			fmt.Fprintf(&b, "  %s is not shown, since it has a Secret\n", harmless(e.Path))
		}
		for line := range strings.Lines(e.Diff) {
			fmt.Fprintf(&b, "  %s\n", harmless(strings.TrimSuffix(line, "\n")))
		}
	}
	if len(c.Edits) > 0 {
		b.WriteString("\n")
		text := "Merging takes the change over into Git. Nothing is written to the object on the clusters above."
		if c.Override != "" {
			text += " The edit is in " + c.Override + ", for these clusters only."
		}
		if len(c.OtherClusters) > 0 {
			text += fmt.Sprintf(" It would also change the object on %s: %s.", number(len(c.OtherClusters), "other cluster"), strings.Join(c.OtherClusters, ", "))
		}
		writeWrapped(&b, "", text)
		writeWrapped(&b, "", "Closing without merging puts the object back to what is in Git, and the same change is not offered again.")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
