package view

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/lookup"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// NewDescribe returns the command describe.
func NewDescribe() *cobra.Command {
	var at client.Connection
	cmd := &cobra.Command{
		Use:   "describe KIND NAME | KIND/NAME | NAME",
		Short: "Show details of a placement, a member cluster or an update run",
		Long: `Describe shows of a placement what it selects, its conditions, its progress on
each cluster, failures and their reasons, drift, and events; of a member cluster
its conditions, and the progress of each placement on it; of a staged update run
its conditions, and its stages with their tasks and clusters.`,
		Example: `  gitfleet describe crp web
  gitfleet describe rp/shop/web
  gitfleet describe mc member-3
  gitfleet describe csur web-1`,
		Args: cobra.RangeArgs(1, 2),
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			s := &description{Page: output.PageOf(cmd.OutOrStdout())}
			if err := s.describe(cmd.Context(), c, strings.Join(args, "/")); err != nil {
				return err
			}
			_, err := io.WriteString(cmd.OutOrStdout(), s.b.String())
			return err
		}),
	}
	at.Bind(cmd.Flags())
	return cmd
}

// describe requests everything that belongs to a name, and writes it.
func (s *description) describe(ctx context.Context, c *client.Client, name string) error {
	if kind, of, _ := strings.Cut(name, "/"); of != "" {
		if v, found := findView(kind); found && strings.HasSuffix(v.staged, "UpdateRun") {
			return s.describeRun(ctx, c, v.staged, of)
		}
	}
	named, err := c.Subject(ctx, name)
	if err != nil {
		return err
	}
	r, err := c.Report(ctx, named)
	if err != nil {
		return err
	}
	s.now = r.At
	if named.Cluster != "" {
		return s.cluster(r, named.Cluster)
	}
	s.placement(r, named.Placement)
	return nil
}

// placement describes the only placement in a report.
func (s *description) placement(r *status.Report, name string) {
	var spec api.PlacementSpec
	var st api.PlacementStatus
	var notes map[string]string
	s.field("Name", name)
	read := func(m *metav1.ObjectMeta, itsSpec api.PlacementSpec, itsStatus api.PlacementStatus) {
		spec, st, notes = itsSpec, itsStatus, m.Annotations
		s.field("Generation", fmt.Sprintf("%d, %s old", m.Generation, s.since(m.CreationTimestamp.Time)))
		if m.DeletionTimestamp != nil {
			s.field("Deleted", s.since(m.DeletionTimestamp.Time)+" ago; what it placed is being cleaned up")
		}
	}
	for _, p := range r.Placements {
		read(&p.ObjectMeta, p.Spec, p.Status)
	}
	for _, p := range r.ResourcePlacements {
		read(&p.ObjectMeta, p.Spec, p.Status)
	}
	d := r.Details[0]
	s.field("Renamed from", notes[api.RenamedFromAnnotation])
	s.field("Declared in", d.Origin)
	s.field("Commit", fmt.Sprintf("%s, %s ago: %s", output.ShortHash(r.Source.InForce.Hash), s.since(r.Source.InForce.Time), r.Source.InForce.Subject))
	if len(r.Placements)+len(r.ResourcePlacements) > 0 {
		s.field("Policy", policyText(spec.Policy)) // not known for an older record
	}
	s.field("Revision", st.ObservedResourceIndex)
	s.list("Selects", selectedText(st.SelectedResources))
	s.field("Stopped by", d.Stopped)
	s.field("Last available", output.ShortHash(d.Proven))
	s.field("Internal error", d.Internal)
	s.list("Warnings", d.Warnings)
	s.heading("Conditions")
	s.conditions(1, st.Conditions)
	s.updateRun(d)
	s.clusters(r, &st, name)
	s.drifts(r.Drifts)
	s.events(r.Events, false)
}

// updateRun describes the newest update run of a placement.
func (s *description) updateRun(d *status.Detail) {
	run := d.UpdateRun
	if run == nil {
		return
	}
	s.heading("Update run " + run.Name)
	s.line(1, "brings commit "+output.ShortHash(run.Commit)+"; "+run.Reason)
	s.text(2, run.WhereWithoutGates(d.Placement))
	for _, st := range run.Stages {
		text := st.Text()
		if !st.Finished.IsZero() {
			text += ", finished " + s.since(st.Finished) + " ago"
		}
		s.text(1, text)
	}
}

// policyText returns the type of a policy with the number or the names of the clusters that it
// asks for.
func policyText(p *api.PlacementPolicy) string {
	if !p.NamesClusters() || len(p.ClusterNames) == 0 {
		return p.Summary()
	}
	return p.Summary() + " " + strings.Join(p.ClusterNames, ", ")
}

// selectedText lists the first objects of a selection, and counts the others.
func selectedText(all []api.ResourceIdentifier) []string {
	const few = 10
	var out []string
	for _, r := range all[:min(few, len(all))] {
		out = append(out, r.ID().String())
	}
	if n := len(all) - few; n > 0 {
		out = append(out, fmt.Sprintf("and %d more", n))
	}
	return out
}

// clusters writes the progress of a placement on each cluster, with all details of problems.
func (s *description) clusters(r *status.Report, st *api.PlacementStatus, name string) {
	if len(r.Details[0].Clusters)+len(st.PlacementStatuses) == 0 {
		return
	}
	s.heading("Clusters")
	on := status.PerCluster(st)
	for i, stage := range overview.StagesOf(r, name) {
		d := &r.Details[0].Clusters[i]
		head := fmt.Sprintf("%s  %s  %s", s.Paint(output.Bold, stage.Cluster), s.Paint(overview.StyleOf(stage.State), string(stage.State)), output.ShortHash(d.Commit))
		s.line(1, strings.TrimRight(head, " "))
		c := on[stage.Cluster]
		if c != nil {
			s.untrue(c)
			s.failures(c)
		}
		if stage.State == status.StateUnreachable || stage.State == status.StateForbidden {
			s.text(3, stage.Why)
		} else if d.Waits != "" && !explainsWaiting(c) {
			s.text(3, d.Waits)
		}
		s.texts("deletions blocked:", d.BlockedDeletions)
		s.texts("not deleted; retried:", d.DeletionErrors)
		if len(d.Lingering) > 0 {
			s.text(3, "deleted, and not gone yet: "+strings.Join(d.Lingering, ", "))
		}
	}
	for i := range st.PlacementStatuses {
		if c := &st.PlacementStatuses[i]; c.ClusterName == "" {
			s.line(1, s.Paint(output.Red, "a cluster is missing"))
			s.untrue(c)
		}
	}
}

// explainsWaiting reports whether a condition says why a cluster waits: RolloutStarted, unless it is true. It is true under
// External, where all conditions are about the content that the cluster has.
func explainsWaiting(c *api.PerClusterPlacementStatus) bool {
	if c == nil {
		return false
	}
	started := meta.FindStatusCondition(c.Conditions, api.RolloutStarted)
	return started != nil && started.Status != metav1.ConditionTrue
}

// untrue writes which condition of a cluster is not true, and why.
func (s *description) untrue(c *api.PerClusterPlacementStatus) {
	for _, cond := range c.Conditions {
		if cond.Status != "True" {
			s.line(2, fmt.Sprintf("%s %s, %s, for %s", cond.Type, s.Paint(conditionStyles[cond.Status], string(cond.Status)), cond.Reason, s.since(cond.LastTransitionTime.Time)))
			s.text(3, cond.Message)
		}
	}
}

func (s *description) failures(c *api.PerClusterPlacementStatus) {
	for i := range c.FailedPlacements {
		f := &c.FailedPlacements[i]
		s.line(2, fmt.Sprintf("%s  not %s, %s", f.ID().String(), strings.ToLower(f.Condition.Type), f.Condition.Reason))
		s.text(3, f.Condition.Message)
	}
}

func (s *description) drifts(all []status.Drift) {
	if len(all) == 0 {
		return
	}
	s.heading("Drift")
	for i := range all {
		d := overview.NewDrift(&all[i])
		text := fmt.Sprintf("%s on %s  %s, first seen %s ago", d.Object, d.Cluster, d.State, s.since(d.Since))
		if n := all[i].Count; n > 1 {
			text += fmt.Sprintf(", %d times", n)
		}
		if len(d.By) > 0 {
			text += ", by " + strings.Join(d.By, ", ")
		}
		s.line(1, output.Sanitize(text))
		for _, p := range all[i].Paths {
			s.line(3, fmt.Sprintf("%s: %s on the cluster, %s in Git", p.Path, output.Sanitize(cmp.Or(p.ValueInMember, "-")), output.Sanitize(cmp.Or(p.ValueInHub, "-"))))
		}
	}
}

// cluster describes a member.
func (s *description) cluster(r *status.Report, name string) error {
	if err := lookup.InReport(r, "", name); err != nil {
		return err
	}
	c := r.Clusters[slices.IndexFunc(r.Clusters, func(c *api.MemberCluster) bool { return c.Name == name })]
	s.field("Name", c.Name)
	s.field("Declared in", c.Annotations[api.PathAnnotation])
	s.list("Labels", labelsText(c.Labels))
	for _, t := range c.Spec.Taints {
		s.field("Taint", fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect))
	}
	for _, p := range slices.Sorted(maps.Keys(c.Status.Properties)) {
		s.field("Property", p+" = "+c.Status.Properties[p].Value)
	}
	for _, list := range []struct {
		label string
		of    api.ResourceList
	}{{"Capacity", c.Status.ResourceUsage.Capacity}, {"Allocatable", c.Status.ResourceUsage.Allocatable}, {"Available", c.Status.ResourceUsage.Available}} {
		s.field(list.label, quantities(list.of))
	}
	s.heading("Conditions")
	s.conditions(1, c.Status.Conditions)
	for _, a := range c.Status.AgentStatus {
		s.line(1, fmt.Sprintf("last answered %s ago", s.since(a.LastReceivedHeartbeat.Time)))
		s.conditions(1, slices.DeleteFunc(slices.Clone(a.Conditions), func(cond metav1.Condition) bool {
			return meta.FindStatusCondition(c.Status.Conditions, cond.Type) != nil
		}))
	}
	s.placementsOn(r, name)
	var events []status.Event
	for i := range r.Events {
		if e := &r.Events[i]; e.Cluster == name || e.About() == "cluster/"+name {
			events = append(events, *e)
		}
	}
	s.events(events, true)
	return nil
}

func quantities(list api.ResourceList) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		out = append(out, name+" "+q.String())
	}
	return strings.Join(out, ", ")
}

// labelsText returns the labels that users gave, sorted.
func labelsText(m map[string]string) []string {
	var out []string
	for k, v := range m {
		if k != api.MemberNameLabel {
			out = append(out, k+"="+v)
		}
	}
	slices.Sort(out)
	return out
}

func (s *description) placementsOn(r *status.Report, cluster string) {
	var lines []string
	statuses, members := status.PlacementStatuses(r), status.MemberStatesOf(r)
	for _, d := range r.Details {
		for j := range d.Clusters {
			if c := &d.Clusters[j]; c.Cluster == cluster {
				at := status.StateOf(c, status.PerCluster(statuses[d.Placement])[cluster], members)
				lines = append(lines, fmt.Sprintf("%s  %s  %s  %s", d.Placement, s.Paint(overview.StyleOf(at), string(at)), cmp.Or(output.ShortHash(c.Commit), "-"), output.Count(c.Objects, "object")))
			}
		}
	}
	if len(lines) == 0 {
		s.line(0, "No placement is on this cluster.")
		return
	}
	s.heading("Placements")
	for _, line := range lines {
		s.line(1, line)
	}
}

// events prints events, with the names of their objects if named is true.
func (s *description) events(all []status.Event, named bool) {
	if len(all) == 0 {
		return
	}
	s.heading("Events")
	for i := range all {
		e := &all[i]
		what := fmt.Sprintf("%s ago  %s  %s", s.since(e.Last), e.Type, e.Reason)
		if e.Count > 1 {
			what += fmt.Sprintf(" (%d times in %s)", e.Count, duration.HumanDuration(e.Last.Sub(e.First)))
		}
		if named {
			what += "  " + e.About()
		} else if e.Cluster != "" {
			what += " on " + e.Cluster
		}
		s.line(1, what)
		s.text(3, e.Message)
	}
}
