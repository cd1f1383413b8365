package view

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// NewTrace returns the command trace.
func NewTrace() *cobra.Command {
	var at client.Connection
	var namespace, cluster string
	var out output.Format
	cmd := &cobra.Command{
		Use:   "trace KIND/NAME",
		Short: "Show which file, commit and placement an object comes from",
		Long: `Trace follows an object on a member cluster back to Git: its file and line, the
commit that last changed it and its author, the placement that selects it, why
the placement is on the cluster, the overrides that changed it, and its state.

Without -n it finds the object in any namespace, if only one has it, and without
--cluster on any member cluster, if only one has it. A kind that has its name in
common with another one is written with its group, as KIND.GROUP, or as KIND. if
it has none.`,
		Example: `  gitfleet trace deployment/web -n shop --cluster east`,
		Args:    cobra.ExactArgs(1),
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			t, err := c.Trace(cmd.Context(), args[0], namespace, cluster)
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			return out.Print(w, t, func() string { return traceText(t, output.PageOf(w)) })
		}),
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "member cluster the object is on; needed if several have it")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the object")
	out.Bind(cmd.Flags(), "text")
	at.Bind(cmd.Flags())
	return cmd
}

func traceText(t *status.Trace, p output.Page) string {
	var b strings.Builder
	fmt.Fprintln(&b, p.Fold(fmt.Sprintf("%s on %s", t.ID(), t.Cluster), "  "))
	row := func(what, text string) {
		if text != "" {
			fmt.Fprintln(&b, p.Fold(fmt.Sprintf("  %-11s %s", what, text), strings.Repeat(" ", 14)))
		}
	}
	row("file", t.Origin)
	row("built by", t.Kustomization)
	if e := t.Envelope; e != nil {
		row("envelope", fmt.Sprintf("%s %s", e.Type, strings.TrimPrefix(e.Namespace+"/"+e.Name, "/")))
	}
	if c := t.Commit; c != nil {
		row("commit", c.Hash)
		if who := cmp.Or(c.Signer, c.Author); who != "" {
			row("", fmt.Sprintf("%s, %s: %s", who, c.Time.UTC().Format(time.RFC3339), c.Subject))
		}
	} else {
		row("commit", "not known: "+t.Unknown)
	}
	row("placement", strings.TrimSuffix(t.Placement+"  ("+t.PlacementOrigin+")", "  ()"))
	row("why", t.Why)
	row("revision", output.ShortHash(t.Revision)+when(", assigned ", t.Assigned))
	row("rollout", t.Waits)
	for _, o := range t.Overrides {
		row("override", o)
	}
	if len(t.Overrides) > 0 && !t.Overridden {
		row("", "which changed nothing")
	}
	row("state", t.State)
	row("suspended", t.Suspended)
	if d := t.Drift; d != nil {
		row("drift", fmt.Sprintf("%s%s, last seen %s, by %s", d.State, times(d.Count), d.LastSeen.UTC().Format(time.RFC3339), output.Managers(d.By)))
	}
	return b.String()
}
