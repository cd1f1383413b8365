package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A view is how one kind of thing is shown.
type view struct {
	names []string // that a user may call it
	// items are the things as they are written in JSON and YAML.
	items func(*status.Report) []any
	table func(r *status.Report, wide bool) table
	// part is what a name in the table stands for: of it alone the daemon is asked
	// then.
	part func(name string) part
}

var views = []view{
	{
		names: []string{"crp", "clusterresourceplacements", "clusterresourceplacement", "rp", "resourceplacements", "resourceplacement", "placements"},
		items: func(r *status.Report) []any {
			var out []any
			for _, p := range r.Placements {
				out = append(out, p)
			}
			for _, p := range r.ResourcePlacements {
				out = append(out, p)
			}
			return out
		},
		table: placementTable,
		part: func(name string) part {
			if namespace, name, namespaced := strings.Cut(name, "/"); namespaced {
				return part{placement: api.PlacementKey{Namespace: namespace, Name: name}.String()}
			}
			return part{placement: api.PlacementKey{Name: name}.String()}
		},
	},
	{
		names: []string{"clusters", "cluster", "memberclusters", "membercluster"},
		items: func(r *status.Report) []any {
			var out []any
			for _, c := range r.Clusters {
				out = append(out, c)
			}
			return out
		},
		table: clusterTable,
		part:  func(name string) part { return part{cluster: name} },
	},
}

func newGet() *cobra.Command {
	var at connection
	var output string
	var watch bool
	cmd := &cobra.Command{
		Use:   "get crp|clusters [NAME]",
		Short: "Show placements or member clusters as the daemon sees them",
		Example: `  gitfleet get crp -o wide
  gitfleet get clusters east -o yaml
  gitfleet get crp web -o jsonpath='{.status.placementStatuses[*].clusterName}'`,
		Args:      cobra.RangeArgs(1, 2),
		ValidArgs: []string{"crp", "clusters"},
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := findView(args[0])
			if err != nil {
				return err
			}
			if err := checkOutput(output); err != nil {
				return err
			}
			show := func(r *status.Report) error { return v.show(cmd, r, output, args[1:]) }
			c, err := at.client()
			if err != nil {
				return err
			}
			of := part{}
			if len(args) > 1 {
				of = v.part(args[1])
			}
			if watch {
				return c.reports(of).follow(cmd.Context(), func(r *status.Report) (bool, error) { return true, show(r) })
			}
			r, err := c.only(cmd.Context(), of)
			if err != nil {
				return err
			}
			return show(r)
		},
	}
	at.bind(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "table", outputs)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on and print each change")
	return cmd
}

func findView(name string) (view, error) {
	for _, v := range views {
		for _, n := range v.names {
			if strings.EqualFold(n, name) {
				return v, nil
			}
		}
	}
	return view{}, fmt.Errorf("get %s: use crp or clusters", name)
}

func (v view) show(cmd *cobra.Command, r *status.Report, output string, names []string) error {
	out := cmd.OutOrStdout()
	if output == "table" || output == "wide" {
		t := v.table(r, output == "wide").only(names)
		if len(names) > 0 && len(t.rows) == 0 {
			return fmt.Errorf("%s: not found", names[0])
		}
		t.print(out)
		tellSource(cmd.ErrOrStderr(), r)
		return nil
	}
	doc, err := document(v.items(r), names)
	if err != nil {
		return err
	}
	return writeDocument(out, doc, output)
}

// document is a list, as kubectl writes one, or the one thing that was asked for
// by the name that the table has for it.
func document(items []any, names []string) (any, error) {
	if len(names) == 0 {
		if items == nil {
			items = []any{}
		}
		return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, nil
	}
	for _, i := range items {
		o := i.(metav1.Object)
		if o.GetName() == names[0] && o.GetNamespace() == "" || o.GetNamespace()+"/"+o.GetName() == names[0] {
			return i, nil
		}
	}
	return nil, fmt.Errorf("%s: not found", names[0])
}

// tellSource says what a table does not show: that the newest commit is not in
// force, or that the repository cannot be reached.
func tellSource(w io.Writer, r *status.Report) {
	s := r.Source
	if s.Newest.Hash != s.InForce.Hash {
		fmt.Fprintf(w, "\ncommit %s is refused; %s stays in force:\n", short(s.Newest.Hash), orNone(short(s.InForce.Hash)))
		for _, p := range s.Problems {
			fmt.Fprintf(w, "  %s\n", p.Error())
		}
		if s.LoadError != "" {
			fmt.Fprintf(w, "  %s\n", s.LoadError)
		}
	}
	for _, d := range r.Details {
		for _, c := range d.Clusters {
			if len(c.Braked) > 0 {
				fmt.Fprintf(w, "\n%s: %d deletion(s) on %s are held; a commit with the trailer \"%s: %s\" allows them:\n  %s\n",
					d.Placement, len(c.Braked), c.Cluster, plan.AllowTrailer, d.Placement, strings.Join(c.Braked, "\n  "))
			}
		}
	}
	for _, x := range r.Suspensions {
		fmt.Fprintf(w, "\n%s is suspended by %s%s: %s\n", x.Subject, x.By, untilWhen(x.Until), x.Reason)
	}
	if s.Git.Failures > 0 {
		fmt.Fprintf(w, "\n%s cannot be read (%d tries since %s): %s\n", s.Git.URL, s.Git.Failures, s.Git.LastSuccess.Format(time.RFC3339), s.Git.Error)
	}
}

func untilWhen(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + t.UTC().Format(time.RFC3339)
}

func short(hash string) string { return hash[:min(len(hash), 8)] }

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
