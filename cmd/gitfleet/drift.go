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
		Short: "Show which objects moved away from Git, how, and by whose hand",
		Long: `Drift is what the daemon knows of objects that differ, or once differed, from
what Git wants: what was put back too.

  standing    it differs and is left alone, as the strategy or a suspension asks
  contested   somebody insists: it is put back more slowly, or left to an autoscaler
  repaired    it was put back
  ignored     it differs in fields that gitfleet.dev/ignore-fields leaves alone
  ended       it is over without gitfleet
  foreign     the object is not gitfleet's, or only looked at

Exit codes: 0 nothing differs now, 1 something does (standing, contested or
foreign), 2 error.`,
	}
	cmd.AddCommand(newDriftList(), newDriftShow())
	return cmd
}

func newDriftList() *cobra.Command {
	var at connection
	var cluster, output string
	cmd := &cobra.Command{
		Use:   "list [crp/NAME]",
		Short: "List objects that differ, or once differed, one a line",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"table", "wide", "json"}, output) {
				return fmt.Errorf("-o %s: use table, wide or json", output)
			}
			name := ""
			if len(args) > 0 {
				key, err := api.ParsePlacement(args[0])
				if err != nil {
					return err
				}
				name = key.String()
			}
			r, err := at.report(cmd)
			if err != nil {
				return err
			}
			drifts, err := driftsOf(r, name, cluster)
			if err != nil {
				return err
			}
			return listDrifts(cmd.OutOrStdout(), r.At, drifts, output)
		},
	}
	at.bind(cmd.Flags())
	cmd.Flags().StringVar(&cluster, "cluster", "", "only of this member cluster")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, wide or json")
	return cmd
}

func newDriftShow() *cobra.Command {
	var at connection
	var cluster, namespace, output string
	cmd := &cobra.Command{
		Use:   "show crp/NAME|KIND/NAME",
		Short: "Show each difference: the field, what is there, what Git wants, and who changed it",
		Example: `  gitfleet drift show crp/web
  gitfleet drift show deployment/web -n shop --cluster east`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("-o %s: use text or json", output)
			}
			r, err := at.report(cmd)
			if err != nil {
				return err
			}
			drifts, err := driftsNamed(r, args[0], namespace, cluster)
			if err != nil {
				return err
			}
			if output == "json" {
				return endDrifts(drifts, writeJSON(cmd.OutOrStdout(), drifts))
			}
			return endDrifts(drifts, showDrifts(cmd.OutOrStdout(), r.At, drifts))
		},
	}
	at.bind(cmd.Flags())
	cmd.Flags().StringVar(&cluster, "cluster", "", "only of this member cluster")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of an object")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
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
	var placements, clusters []string
	for _, d := range r.Details {
		placements = append(placements, d.Placement)
	}
	for _, c := range r.Clusters {
		clusters = append(clusters, c.Name)
	}
	if err := knownName("placement", placement, placements); err != nil {
		return err
	}
	return knownName("cluster", cluster, clusters)
}

// driftsNamed are those of a placement, or of an object.
func driftsNamed(r *status.Report, what, namespace, cluster string) ([]status.Drift, error) {
	if key, err := api.ParsePlacement(what); err == nil {
		return driftsOf(r, key.String(), cluster)
	}
	kind, name, _ := strings.Cut(what, "/")
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("%q names neither a placement nor an object; write crp/NAME, rp/NAMESPACE/NAME or KIND/NAME", what)
	}
	all, err := driftsOf(r, "", cluster)
	if err != nil {
		return nil, err
	}
	var found []status.Drift
	var others []string
	for _, d := range all {
		if d.Name == name && d.Namespace == namespace && api.KindCalled(driftID(d).GroupKind(), kind) {
			found = append(found, d)
		} else {
			others = append(others, driftID(d).String())
		}
	}
	if found == nil {
		wanted := kind + "/" + strings.TrimPrefix(namespace+"/"+name, "/")
		slices.Sort(others)
		return nil, &status.UnknownError{What: "known drift of", Name: wanted, Exist: slices.Compact(others)}
	}
	return found, nil
}

func driftID(d status.Drift) api.ID {
	return api.ID{Group: d.Group, Kind: d.Kind, Namespace: d.Namespace, Name: d.Name}
}

// differsNow reports whether there is something to look at.
func differsNow(d status.Drift) bool {
	return d.State == api.DriftStanding || d.State == api.DriftContested || d.State == api.DriftForeign
}

// endDrifts ends the command as its exit code is documented.
func endDrifts(drifts []status.Drift, err error) error {
	if err == nil && slices.ContainsFunc(drifts, differsNow) {
		return exitCode(exitDifferences)
	}
	return err
}

func listDrifts(w io.Writer, now time.Time, drifts []status.Drift, output string) error {
	if output == "json" {
		return endDrifts(drifts, writeJSON(w, append([]status.Drift{}, drifts...)))
	}
	if len(drifts) == 0 {
		_, err := fmt.Fprintln(w, "no drift")
		return err
	}
	t := table{header: []string{"OBJECT", "CLUSTER", "STATE", "COUNT", "LAST-SEEN", "BY"}}
	if output == "wide" {
		t.header = append(t.header, "FIRST-SEEN", "PLACEMENT", "FIELDS")
	}
	for _, d := range drifts {
		row := []string{driftID(d).String(), d.Cluster, string(d.State), strconv.Itoa(d.Count), since(now, d.LastSeen), names(d.By)}
		if output == "wide" {
			var paths []string
			for _, p := range d.Paths {
				paths = append(paths, p.Path)
			}
			row = append(row, since(now, d.FirstSeen), d.Placement, strings.Join(paths, ","))
		}
		t.rows = append(t.rows, row)
	}
	t.print(w)
	return endDrifts(drifts, nil)
}

func since(now, at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(at))
}

// names are those of field managers, each once.
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
		fmt.Fprintf(&b, "%s on %s  (%s)\n", driftID(d), d.Cluster, d.Placement)
		fmt.Fprintf(&b, "  %s%s, first seen %s ago, last %s ago\n", d.State, times(d.Count), since(now, d.FirstSeen), since(now, d.LastSeen))
		if d.Message != "" {
			fmt.Fprintf(&b, "  %s\n", d.Message)
		}
		if d.Deleted {
			b.WriteString("  it was deleted\n")
		}
		for _, a := range d.By {
			fmt.Fprintf(&b, "  by %s%s\n", a, when(a.Time))
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

// writeDifference writes one field: what is there goes, what Git wants comes.
func writeDifference(b *strings.Builder, indent string, d api.Difference) {
	fmt.Fprintf(b, "%s%s", indent, d.Path)
	if len(d.By) > 0 {
		fmt.Fprintf(b, "  (by %s)", names(d.By))
	}
	b.WriteString("\n")
	for _, v := range []struct{ mark, value string }{{"-", d.ValueInMember}, {"+", d.ValueInHub}} {
		if v.value == "" {
			continue
		}
		for _, line := range strings.Split(strings.TrimSuffix(v.value, "\n"), "\n") {
			fmt.Fprintf(b, "%s  %s %s\n", indent, v.mark, line)
		}
	}
}
