package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/printer"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A view is one or more kinds that get lists.
type view struct {
	names []string // names that users may use
	// The listed kinds. qualified says that names are shown with their kind.
	placements, resourcePlacements, clusters, qualified bool
	// staged is the kind of staged update runs, approval requests or evictions that is listed; empty for none.
	staged string
}

var views = []view{
	{names: []string{"crp", "clusterresourceplacements", "clusterresourceplacement"}, placements: true},
	{names: []string{"rp", "resourceplacements", "resourceplacement"}, resourcePlacements: true},
	{names: []string{"mc", "clusters", "cluster", "memberclusters", "membercluster"}, clusters: true},
	{names: []string{"csur", "clusterstagedupdateruns", "clusterstagedupdaterun"}, staged: "ClusterStagedUpdateRun"},
	{names: []string{"sur", "stagedupdateruns", "stagedupdaterun"}, staged: "StagedUpdateRun"},
	{names: []string{"careq", "clusterapprovalrequests", "clusterapprovalrequest"}, staged: "ClusterApprovalRequest"},
	{names: []string{"areq", "approvalrequests", "approvalrequest"}, staged: "ApprovalRequest"},
	{names: []string{"crpe", "evictions", "clusterresourceplacementevictions", "clusterresourceplacementeviction"}, staged: "ClusterResourcePlacementEviction"},
	{names: []string{"placements", "placement"}, placements: true, resourcePlacements: true, qualified: true},
	{names: []string{"all"}, placements: true, resourcePlacements: true, clusters: true, qualified: true},
}

// Kinds are the kinds in help and completion.
var Kinds = []string{"all", "areq", "careq", "crp", "crpe", "csur", "mc", "placements", "rp", "sur"}

// NewGet returns the command get.
func NewGet() *cobra.Command {
	var at client.Connection
	var g getCommand
	var watch bool
	cmd := &cobra.Command{
		Use:   "get KIND [NAME] | KIND/NAME | NAME",
		Short: "List placements, member clusters, staged update runs or evictions",
		Long: `Get lists what the daemon knows, in the columns of kubectl get. Status and
describe have more: where placements are, and why they are not available.

  crp          ClusterResourcePlacements
  rp           ResourcePlacements, of all namespaces or with -n of one
  placements   both
  mc           MemberClusters; clusters as well
  csur, sur    ClusterStagedUpdateRuns, StagedUpdateRuns
  careq, areq  ClusterApprovalRequests, ApprovalRequests
  crpe         ClusterResourcePlacementEvictions, ordered ones as well
  all          placements and member clusters

A name alone is that of a placement or of a member cluster.`,
		Example: `  gitfleet get crp -o wide
  gitfleet get rp -n shop
  gitfleet get mc east -o yaml
  gitfleet get mc -l region=eu
  gitfleet get csur
  gitfleet get crp web -o jsonpath='{.status.placementStatuses[*].clusterName}'`,
		Args: cobra.RangeArgs(1, 2),
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			var err error
			if g.labels, err = labels.Parse(g.selector); err != nil {
				return fmt.Errorf("-l %s: %w", g.selector, err)
			}
			if err := g.resolve(cmd.Context(), c, args); err != nil {
				return err
			}
			if !watch {
				r, err := c.Report(cmd.Context(), g.of)
				if err != nil {
					return err
				}
				return g.show(cmd, r)
			}
			for r, err := range c.Reports(g.of).All(cmd.Context(), "") {
				if err == nil {
					err = g.show(cmd, r)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}),
	}
	g.out.Bind(cmd.Flags(), "table", "wide", "name")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "continue, and print each change")
	cmd.Flags().StringVarP(&g.selector, "selector", "l", "", "only objects with these labels, such as env=prod,region!=eu")
	cmd.Flags().StringVarP(&g.namespace, "namespace", "n", "", "only ResourcePlacements of this namespace")
	cmd.Flags().BoolVarP(&g.everywhere, "all-namespaces", "A", false, "ResourcePlacements of all namespaces; the default")
	at.Bind(cmd.Flags())
	return cmd
}

// A getCommand has the arguments of get.
type getCommand struct {
	out                 output.Format
	selector, namespace string
	everywhere          bool

	labels labels.Selector
	view   view
	of     client.Subject // one placement or cluster; empty for all
	name   string         // of one run, approval request or eviction, with its namespace before it; empty for all
}

// resolve determines what is listed.
func (g *getCommand) resolve(ctx context.Context, c *client.Client, args []string) error {
	if g.everywhere && g.namespace != "" {
		return errors.New("--all-namespaces and --namespace exclude each other")
	}
	kind, name, named := strings.Cut(strings.Join(args, "/"), "/")
	if v, ok := findView(kind); ok {
		g.view = v
		switch {
		case v.staged != "":
			g.name = name
			return nil
		case name == "":
			return nil
		case v.clusters && !v.placements:
			g.of.Cluster = name
			return nil
		case v.resourcePlacements && g.namespace != "" && !strings.Contains(name, "/"):
			name = g.namespace + "/" + name
		}
		if !v.qualified {
			name = v.names[0] + "/" + name
		}
		var err error
		g.of.Placement, err = c.Placement(ctx, name)
		return err
	}
	s, err := c.Subject(ctx, strings.Join(args, "/"))
	var unknown *status.UnknownError
	if errors.As(err, &unknown) {
		unknown.What = "kind, placement or cluster"
		if near := api.Closest(kind, kindNames()); near != "" && api.Closest(unknown.Name, unknown.Exist) == "" {
			if named {
				near += "/" + name
			}
			return fmt.Errorf("there is no %s %s; %s", unknown.What, unknown.Name, api.DidYouMean(near))
		}
		unknown.Exist = append(slices.Clone(Kinds), unknown.Exist...)
	}
	g.of = s
	g.view = view{placements: strings.HasPrefix(s.Placement, "crp/"), resourcePlacements: strings.HasPrefix(s.Placement, "rp/"), clusters: s.Cluster != ""}
	return err
}

// kindNames returns all names of kinds.
func kindNames() (all []string) {
	for _, v := range views {
		all = append(all, v.names...)
	}
	return all
}

func findView(name string) (view, bool) {
	word, group, _ := strings.Cut(strings.ToLower(name), ".")
	for _, v := range views {
		if slices.Contains(v.names, word) && (group == "" || group == api.PlacementGroup && !v.clusters || group == api.ClusterGroup && v.clusters) {
			return v, true
		}
	}
	return view{}, false
}

// only returns the part of a report that is listed.
func (g *getCommand) only(r *status.Report) *status.Report {
	out := *r
	out.Placements = selectObjects(r.Placements, g.view.placements, g.has)
	out.ResourcePlacements = selectObjects(r.ResourcePlacements, g.view.resourcePlacements, g.has)
	out.Clusters = selectObjects(r.Clusters, g.view.clusters, g.has)
	staged := func(o metav1.Object) bool {
		return g.has(o) && (g.name == "" || g.name == o.GetName() || g.name == o.GetNamespace()+"/"+o.GetName()) && strings.HasPrefix(g.view.staged, "Cluster") == (o.GetNamespace() == "")
	}
	out.UpdateRuns = selectObjects(r.UpdateRuns, strings.HasSuffix(g.view.staged, "UpdateRun"), staged)
	out.ApprovalRequests = selectObjects(r.ApprovalRequests, strings.HasSuffix(g.view.staged, "ApprovalRequest"), staged)
	out.Evictions = selectObjects(r.Evictions, strings.HasSuffix(g.view.staged, "Eviction"), staged)
	return &out
}

// has reports whether an object has the labels and the namespace.
func (g *getCommand) has(o metav1.Object) bool {
	return g.labels.Matches(labels.Set(o.GetLabels())) && (g.namespace == "" || g.namespace == o.GetNamespace())
}

// selectObjects returns the objects for which has returns true, if any are listed at all.
func selectObjects[O metav1.Object](all []O, listed bool, has func(metav1.Object) bool) (out []O) {
	for _, o := range all {
		if listed && has(o) {
			out = append(out, o)
		}
	}
	return out
}

func (g *getCommand) show(cmd *cobra.Command, r *status.Report) error {
	listed := g.only(r)
	out := cmd.OutOrStdout()
	if !g.out.IsText() {
		return g.out.Write(out, g.document(listed))
	}
	tables := []output.Table{}
	if g.view.staged != "" {
		stagedTable(listed, g.out.IsWide(), g.view.staged).Print(out, g.out)
		return nil
	}
	if len(listed.Placements)+len(listed.ResourcePlacements) > 0 || !g.view.clusters {
		tables = append(tables, placementTable(listed, g.out.IsWide(), g.view.qualified))
	}
	if len(listed.Clusters) > 0 || !g.view.placements && !g.view.resourcePlacements {
		tables = append(tables, clusterTable(listed, g.out.IsWide(), g.view.qualified))
	}
	for i, t := range tables {
		if i > 0 {
			fmt.Fprintln(out)
		}
		t.Print(out, g.out)
	}
	printSource(cmd.ErrOrStderr(), r)
	return nil
}

// document returns a list, as kubectl writes it, or the single object.
func (g *getCommand) document(r *status.Report) any {
	items := []any{}
	for _, p := range r.Placements {
		items = append(items, p)
	}
	for _, p := range r.ResourcePlacements {
		items = append(items, p)
	}
	for _, c := range r.Clusters {
		items = append(items, c)
	}
	for _, o := range r.UpdateRuns {
		items = append(items, o)
	}
	for _, o := range r.ApprovalRequests {
		items = append(items, o)
	}
	for _, o := range r.Evictions {
		items = append(items, o)
	}
	if (g.of != (client.Subject{}) || g.name != "") && len(items) == 1 {
		return items[0]
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
}

// printSource prints information that a table does not have: that the newest commit is not in
// force, or that the repository cannot be read.
func printSource(w io.Writer, r *status.Report) {
	s := r.Source
	if s.Newest.Hash != s.InForce.Hash {
		fmt.Fprintf(w, "\n%s:\n", overview.RefusedText(s))
		for _, p := range overview.NewRefused(s).Problems {
			fmt.Fprintf(w, "  %s\n", p)
		}
	}
	for _, d := range r.Details {
		for _, c := range d.Clusters {
			if len(c.BlockedDeletions) > 0 {
				fmt.Fprintf(w, "\n%s on %s: %s\n", d.Placement, c.Cluster, overview.BlockedText(d.Placement, c.BlockedDeletions))
			}
			if len(c.DeletionErrors) > 0 {
				fmt.Fprintf(w, "\n%s: %s on %s cannot be deleted (retried):\n  %s\n",
					d.Placement, output.Count(len(c.DeletionErrors), "object"), c.Cluster, strings.Join(c.DeletionErrors, "\n  "))
			}
		}
	}
	for _, x := range r.Suspensions {
		fmt.Fprintf(w, "\n%s is %s by %s%s: %s\n", x.Subject, x.Effect.Verb(), x.By, when(" until ", x.Until), x.Reason)
	}
	switch {
	case s.Git.Refused:
		fmt.Fprintf(w, "\nThe newest commit of %s is not accepted: %s\n", s.Git.URL, s.Git.Error)
	case s.Git.Failures > 0:
		fmt.Fprintf(w, "\n%s cannot be read (%s): %s\n", s.Git.URL, overview.FailuresText(s.Git.Failures, s.Git.LastSuccess), s.Git.Error)
	}
}

// placementTable lists the placements of a report. Names are qualified with their kind; if they
// are not, ResourcePlacements have a column for the namespace.
func placementTable(r *status.Report, wide, qualified bool) output.Table {
	rows := make([]printer.Row, 0, len(r.Placements)+len(r.ResourcePlacements))
	for _, p := range r.Placements {
		rows = append(rows, printer.Row{Meta: &p.ObjectMeta, Value: p, Now: r.At})
	}
	for _, p := range r.ResourcePlacements {
		rows = append(rows, printer.Row{Meta: &p.ObjectMeta, Value: p, Now: r.At})
	}
	columns := named(printer.Placements, qualified)
	if !qualified && len(r.ResourcePlacements) > 0 {
		columns = append([]printer.Column{namespace}, columns...)
	}
	return output.TableOf(printer.Table(columns, rows), wide)
}

func clusterTable(r *status.Report, wide, qualified bool) output.Table {
	rows := make([]printer.Row, 0, len(r.Clusters))
	for _, c := range r.Clusters {
		rows = append(rows, printer.Row{Meta: &c.ObjectMeta, Value: c, Now: r.At})
	}
	return output.TableOf(printer.Table(named(printer.Clusters, qualified), rows), wide)
}

// stagedTable lists the runs, approval requests or evictions of a report, of one kind.
func stagedTable(r *status.Report, wide bool, kind string) output.Table {
	columns := printer.UpdateRuns
	switch {
	case strings.HasSuffix(kind, "ApprovalRequest"):
		columns = printer.ApprovalRequests
	case strings.HasSuffix(kind, "Eviction"):
		columns = printer.Evictions
	}
	if !strings.HasPrefix(kind, "Cluster") {
		columns = append([]printer.Column{namespace}, columns...)
	}
	var rows []printer.Row
	for _, o := range r.UpdateRuns {
		rows = append(rows, printer.Row{Meta: &o.ObjectMeta, Value: o, Now: r.At})
	}
	for _, o := range r.ApprovalRequests {
		rows = append(rows, printer.Row{Meta: &o.ObjectMeta, Value: o, Now: r.At})
	}
	for _, o := range r.Evictions {
		rows = append(rows, printer.Row{Meta: &o.ObjectMeta, Value: o, Now: r.At})
	}
	return output.TableOf(printer.Table(columns, rows), wide)
}

// named returns columns that begin with the name, which may be qualified.
func named(columns []printer.Column, qualified bool) []printer.Column {
	if !qualified {
		return columns
	}
	return append([]printer.Column{{TableColumnDefinition: printer.Name.TableColumnDefinition, Cell: qualifiedName}}, columns[1:]...)
}

// qualifiedName returns the name of an object with its kind, as commands take it.
func qualifiedName(r printer.Row) string {
	if _, cluster := r.Value.(*api.MemberCluster); cluster {
		return "mc/" + r.Meta.Name
	}
	return api.PlacementKey{Namespace: r.Meta.Namespace, Name: r.Meta.Name}.String()
}

// namespace is the column that kubectl adds for objects of several namespaces.
var namespace = printer.Text("Namespace", "Namespace of the object.", 0, func(r printer.Row) string { return r.Meta.Namespace })
