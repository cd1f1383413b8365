package view

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/lookup"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// NewDrift returns the command drift.
func NewDrift() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drift",
		Short: "Show which objects differ from Git, and who changed them",
		Long: `Drift shows the objects that differ, or have differed, from Git, including those
that were corrected.

  standing    it differs and is left as it is, by the strategy or a suspension
  held        it differs and is left as it is until a pull request decides, or
              because drift.mode is report
  added       others have added something that Git does not have, which is left
  contested   it is changed again and again: corrected more slowly, or left to
              an autoscaler
  repaired    it was corrected
  ignored     it differs in fields listed in gitfleet.dev/ignore-fields
  altered     the cluster stores other values than are applied (admission
              webhook)
  ended       it no longer differs; gitfleet did not correct it
  foreign     the placement does not own the object, or only compares it

Exit codes: 0 nothing differs now, 1 something does (standing, held, added,
contested or foreign), 2 error.`,
	}
	cmd.AddCommand(newDriftList(), newDriftShow(), newDriftAdopt())
	return cmd
}

// newDriftList returns the command drift list.
func newDriftList() *cobra.Command {
	var at client.Connection
	var cluster string
	var all bool
	var out output.Format
	cmd := &cobra.Command{
		Use:   "list [PLACEMENT]",
		Short: "List objects that differ, or have differed, from Git",
		Args:  cobra.MaximumNArgs(1),
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			r, err := c.Report(cmd.Context(), client.Subject{})
			if err != nil {
				return err
			}
			name := ""
			if len(args) > 0 {
				if name, err = lookup.Placement(args[0], lookup.Placements(r)); err != nil {
					return err
				}
			}
			drifts, err := driftsOf(r, name, api.ClusterName(cluster))
			if err != nil {
				return err
			}
			if !all {
				drifts = slices.DeleteFunc(drifts, func(d status.Drift) bool { return d.State == api.DriftEnded })
			}
			return endDrifts(drifts, listDrifts(cmd.OutOrStdout(), r.At, drifts, out))
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "also drift that has ended without a correction")
	cmd.Flags().StringVar(&cluster, "cluster", "", "only this member cluster")
	out.Bind(cmd.Flags(), "table", "wide")
	at.Bind(cmd.Flags())
	return cmd
}

// newDriftShow returns the command drift show.
func newDriftShow() *cobra.Command {
	var at client.Connection
	var cluster, namespace string
	var out output.Format
	cmd := &cobra.Command{
		Use:   "show PLACEMENT|KIND/NAME",
		Short: "Show the differences of an object or a placement, by field",
		Example: `  gitfleet drift show crp/web
  gitfleet drift show deployment/web -n shop --cluster east`,
		Args: cobra.ExactArgs(1),
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			r, err := c.Report(cmd.Context(), client.Subject{})
			if err != nil {
				return err
			}
			drifts, err := driftsNamed(r, args[0], namespace, api.ClusterName(cluster))
			if err != nil {
				return err
			}
			return endDrifts(drifts, out.Print(cmd.OutOrStdout(), output.ListOf(driftVersion, drifts), func() string { return driftsText(r.At, drifts) }))
		}),
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "only this member cluster")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of an object")
	out.Bind(cmd.Flags(), "text")
	at.Bind(cmd.Flags())
	return cmd
}

// driftsOf returns the drifts of a placement on a cluster; an empty name stands for all.
func driftsOf(r *status.Report, placement, cluster string) ([]status.Drift, error) {
	if err := lookup.InReport(r, placement, cluster); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(r.Drifts), func(d status.Drift) bool {
		return placement != "" && d.Placement != placement || cluster != "" && d.Cluster != cluster
	}), nil
}

// driftsNamed returns the drifts of a placement or of an object.
func driftsNamed(r *status.Report, what, namespace, cluster string) ([]status.Drift, error) {
	placement, err := lookup.Placement(what, lookup.Placements(r))
	if err == nil {
		return driftsOf(r, placement, cluster)
	}
	kind, _, slash := strings.Cut(what, "/")
	if _, isPlacement := api.NamesPlacements(kind); isPlacement || !slash {
		return nil, err
	}
	object, err := api.ParseObject(what, namespace)
	if err != nil {
		return nil, err
	}
	all, err := driftsOf(r, "", cluster)
	if err != nil {
		return nil, err
	}
	var found []status.Drift
	var others []string
	for _, d := range all {
		if object.Means(d.ID()) {
			found = append(found, d)
		} else {
			others = append(others, d.ID().String())
		}
	}
	if found == nil {
		slices.Sort(others)
		return nil, &status.UnknownError{What: "known drift of", Name: object.String(), Exist: slices.Compact(others)}
	}
	return found, nil
}

// endDrifts returns the documented exit code: whether an object still differs.
func endDrifts(drifts []status.Drift, err error) error {
	if err == nil && slices.ContainsFunc(drifts, status.Drift.Differs) {
		return exit.Attention
	}
	return err
}

// driftVersion identifies the schema of drifts in JSON. Fields of a version are never removed;
// new ones may be added.
const driftVersion = "gitfleet.dev/drift/v1"

func listDrifts(w io.Writer, now time.Time, drifts []status.Drift, out output.Format) error {
	if !out.IsText() {
		return out.Write(w, output.ListOf(driftVersion, drifts))
	}
	if len(drifts) == 0 {
		_, err := fmt.Fprintln(w, "no drift")
		return err
	}
	t := output.Table{Header: []string{"OBJECT", "CLUSTER", "STATE", "COUNT", "LAST-SEEN", "BY"}}
	if out.IsWide() {
		t.Header = append(t.Header, "FIRST-SEEN", "PLACEMENT", "FIELDS")
	}
	for _, d := range drifts {
		row := []string{d.ID().String(), d.Cluster, string(d.State), strconv.Itoa(d.Count), output.Since(now, d.LastSeen), output.Managers(d.By)}
		if out.IsWide() {
			var paths []string
			for _, p := range d.Paths {
				paths = append(paths, p.Path)
			}
			row = append(row, output.Since(now, d.FirstSeen), d.Placement, strings.Join(paths, ","))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Print(w, out)
	return nil
}

func driftsText(now time.Time, drifts []status.Drift) string {
	var b strings.Builder
	for i, d := range drifts {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s on %s  (%s)\n", d.ID(), d.Cluster, d.Placement)
		fmt.Fprintf(&b, "  %s%s, first seen %s ago, last %s ago\n", d.State, times(d.Count), output.Since(now, d.FirstSeen), output.Since(now, d.LastSeen))
		if d.Message != "" {
			fmt.Fprintf(&b, "  %s\n", output.Sanitize(d.Message))
		}
		if d.Deleted {
			b.WriteString("  it was deleted\n")
		}
		for _, a := range d.By {
			fmt.Fprintf(&b, "  by %s%s\n", output.Sanitize(a.String()), when(" at ", a.Time))
		}
		for _, p := range d.Paths {
			output.WriteDifference(&b, "  ", p)
		}
	}
	if len(drifts) == 0 {
		b.WriteString("no drift\n")
	}
	return b.String()
}

// when returns a word and a time; nothing if the time is zero.
func when(word string, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return word + t.UTC().Format(time.RFC3339)
}

func times(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " once"
	}
	return fmt.Sprintf(" %d times", n)
}
