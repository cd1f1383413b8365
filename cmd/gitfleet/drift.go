package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

func newDrift() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drift",
		Short: "Show which objects differ from Git, and who changed them",
		Long: `Drift shows the objects that differ, or have differed, from Git, including those
that were corrected.

  standing    it differs and is left as it is, by the strategy or a suspension
  held        it differs and is left as it is until a pull request decides, or
              because drift.mode is report
  contested   it is changed again and again: corrected more slowly, or left to
              an autoscaler
  repaired    it was corrected
  ignored     it differs in fields listed in gitfleet.dev/ignore-fields
  altered     the cluster stores other values than are applied (admission
              webhook)
  ended       it no longer differs; gitfleet did not correct it
  foreign     the object is not managed by gitfleet, or is only compared

Exit codes: 0 nothing differs now, 1 something does (standing, held, contested
or foreign), 2 error.`,
	}
	cmd.AddCommand(newDriftList(), newDriftShow(), newDriftAdopt())
	return cmd
}

func newDriftList() *cobra.Command {
	var at connection
	var cluster string
	var out format
	cmd := &cobra.Command{
		Use:   "list [crp/NAME]",
		Short: "List objects that differ, or have differed, from Git",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			r, err := at.report(cmd)
			if err != nil {
				return err
			}
			name := ""
			if len(args) > 0 {
				if name, err = findPlacement(args[0], placementsOf(r)); err != nil {
					return err
				}
			}
			drifts, err := driftsOf(r, name, api.ClusterName(cluster))
			if err != nil {
				return err
			}
			return listDrifts(cmd.OutOrStdout(), r.At, drifts, out)
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "only this member cluster")
	out.bind(cmd.Flags(), "table", "wide")
	at.bind(cmd.Flags())
	return cmd
}

func newDriftShow() *cobra.Command {
	var at connection
	var cluster, namespace string
	var out format
	cmd := &cobra.Command{
		Use:   "show crp/NAME|KIND/NAME",
		Short: "Show the differences of an object or a placement, by field",
		Example: `  gitfleet drift show crp/web
  gitfleet drift show deployment/web -n shop --cluster east`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			r, err := at.report(cmd)
			if err != nil {
				return err
			}
			drifts, err := driftsNamed(r, args[0], namespace, api.ClusterName(cluster))
			if err != nil {
				return err
			}
			if !out.isText() {
				return endDrifts(drifts, out.write(cmd.OutOrStdout(), listOf(driftVersion, drifts)))
			}
			return endDrifts(drifts, showDrifts(cmd.OutOrStdout(), r.At, drifts))
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "only this member cluster")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of an object")
	out.bind(cmd.Flags(), "text")
	at.bind(cmd.Flags())
	return cmd
}

// report asks the daemon for its newest report.
func (c *connection) report(cmd *cobra.Command) (*status.Report, error) {
	asks, err := c.client()
	if err != nil {
		return nil, err
	}
	return asks.report(cmd.Context())
}

// driftsOf are the drifts of a placement on a cluster; an empty name means all.
func driftsOf(r *status.Report, placement, cluster string) ([]status.Drift, error) {
	if err := knownTo(r, placement, cluster); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(r.Drifts), func(d status.Drift) bool {
		return placement != "" && d.Placement != placement || cluster != "" && d.Cluster != cluster
	}), nil
}

// knownTo returns a *status.UnknownError if there is no such placement or
// cluster.
func knownTo(r *status.Report, placement, cluster string) error {
	var clusters []string
	for _, c := range r.Clusters {
		clusters = append(clusters, c.Name)
	}
	if err := knownName("placement", placement, placementsOf(r)); err != nil {
		return err
	}
	return knownName("cluster", cluster, clusters)
}

// placementsOf are the names of the placements of a report.
func placementsOf(r *status.Report) []string {
	var names []string
	for _, d := range r.Details {
		names = append(names, d.Placement)
	}
	return names
}

// driftsNamed returns the drifts of a placement or of an object.
func driftsNamed(r *status.Report, what, namespace, cluster string) ([]status.Drift, error) {
	placement, err := findPlacement(what, placementsOf(r))
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

// differsNow reports whether an object still differs.
func differsNow(d status.Drift) bool {
	return d.State == api.DriftStanding || d.State == api.DriftHeld || d.State == api.DriftContested || d.State == api.DriftForeign
}

// endDrifts ends the command as its exit code is documented.
func endDrifts(drifts []status.Drift, err error) error {
	if err == nil && slices.ContainsFunc(drifts, differsNow) {
		return exitCode(exitDifferences)
	}
	return err
}

// driftVersion names the schema of drifts in JSON. Fields of a version are kept; new ones may
// be added.
const driftVersion = "gitfleet.dev/drift/v1"

func listDrifts(w io.Writer, now time.Time, drifts []status.Drift, out format) error {
	if !out.isText() {
		return endDrifts(drifts, out.write(w, listOf(driftVersion, drifts)))
	}
	if len(drifts) == 0 {
		_, err := fmt.Fprintln(w, "no drift")
		return err
	}
	t := table{header: []string{"OBJECT", "CLUSTER", "STATE", "COUNT", "LAST-SEEN", "BY"}}
	if out.isWide() {
		t.header = append(t.header, "FIRST-SEEN", "PLACEMENT", "FIELDS")
	}
	for _, d := range drifts {
		row := []string{d.ID().String(), d.Cluster, string(d.State), strconv.Itoa(d.Count), since(now, d.LastSeen), names(d.By)}
		if out.isWide() {
			var paths []string
			for _, p := range d.Paths {
				paths = append(paths, p.Path)
			}
			row = append(row, since(now, d.FirstSeen), d.Placement, strings.Join(paths, ","))
		}
		t.rows = append(t.rows, row)
	}
	t.print(w, out)
	return endDrifts(drifts, nil)
}

func since(now, at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(at))
}

// names returns the names of field managers, without duplicates.
func names(by []api.Actor) string {
	var out []string
	for _, a := range by {
		if !slices.Contains(out, a.Manager) {
			out = append(out, a.Manager)
		}
	}
	return cmp.Or(strings.Join(out, ","), "-")
}

func showDrifts(w io.Writer, now time.Time, drifts []status.Drift) error {
	var b strings.Builder
	for i, d := range drifts {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s on %s  (%s)\n", d.ID(), d.Cluster, d.Placement)
		fmt.Fprintf(&b, "  %s%s, first seen %s ago, last %s ago\n", d.State, times(d.Count), since(now, d.FirstSeen), since(now, d.LastSeen))
		if d.Message != "" {
			fmt.Fprintf(&b, "  %s\n", harmless(d.Message))
		}
		if d.Deleted {
			b.WriteString("  it was deleted\n")
		}
		for _, a := range d.By {
			fmt.Fprintf(&b, "  by %s%s\n", harmless(a.String()), when(a.Time))
		}
		for _, p := range d.Paths {
			writeDifference(&b, "  ", p)
		}
	}
	if len(drifts) == 0 {
		b.WriteString("no drift\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " at " + t.UTC().Format(time.RFC3339)
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

// writeDifference writes one field: the live value as removed, the value in Git as added.
func writeDifference(b *strings.Builder, indent string, d api.Difference) {
	fmt.Fprintf(b, "%s%s", indent, harmless(d.Path))
	if len(d.By) > 0 {
		fmt.Fprintf(b, "  (by %s)", harmless(names(d.By)))
	}
	b.WriteString("\n")
	writeValue(b, indent+"  - ", d.ValueInMember)
	writeValue(b, indent+"  + ", d.ValueInHub)
}

// writeChange writes one field as a change of Git: the value in Git goes, that of the member
// comes.
func writeChange(b *strings.Builder, indent string, d api.Difference) {
	fmt.Fprintf(b, "%s%s\n", indent, harmless(d.Path))
	writeValue(b, indent+"  - ", d.ValueInHub)
	writeValue(b, indent+"  + ", d.ValueInMember)
}

// writeValue writes the lines of a value behind a mark; none if there is no value.
func writeValue(b *strings.Builder, mark, value string) {
	if value == "" {
		return
	}
	for _, line := range strings.Split(strings.TrimSuffix(value, "\n"), "\n") {
		fmt.Fprintf(b, "%s%s\n", mark, harmless(line))
	}
}
