package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// newRun initialises a run with the clusters that are selected now, and the content of the commit in force unless it asks for another.
// newest is the run in force after the ledger was lost; nil if it was not.
func (pl runPlanner) newRun(p *Placement, d, newest *hub.StagedRun) placement.Run {
	r := placement.Run{Name: d.Name, Automatic: d.Automatic, Strategy: d.Strategy, Initialized: pl.planner.Now, Unmatched: cmp.Or(d.Unmatched, api.UnmatchedFail), OnFailure: d.OnFailure, UnreachablePerStage: d.UnreachablePerStage, UnreachablePerRun: d.UnreachablePerRun, FailedPerStage: d.FailedPerStage, FailedPerRun: d.FailedPerRun, Index: p.Record.Index}
	if done := pl.setAppeared(p, d, newest, &r); done {
		return r
	}
	if r.Failed = setContent(p, d, &r); r.Failed != "" {
		return r
	}
	for _, s := range d.Stages {
		r.Stages = append(r.Stages, placement.NewRunStage(s, d.Gates))
	}
	var unmatched []string
	for _, c := range p.Clusters {
		if !selected(c) {
			continue
		}
		cluster, _ := pl.planner.memo.members.Cluster(c.Binding.Cluster)
		in := matchingStages(&r, cluster)
		switch {
		case len(in) > 1:
			r.Failed = fmt.Sprintf("cluster `%s` appears in more than one stages", cluster.Name)
			return r
		case len(in) == 0:
			unmatched = append(unmatched, cluster.Name)
		default:
			r.Stages[in[0]].Clusters = append(r.Stages[in[0]].Clusters, cluster.Name)
		}
	}
	for i := range r.Stages {
		if r.Failed = pl.sortStage(&r.Stages[i]); r.Failed != "" {
			return r
		}
	}
	switch {
	case len(unmatched) == 0 || r.IgnoresUnmatched():
	case r.Unmatched == api.UnmatchedLast:
		addUnmatched(&r, unmatched...)
	default:
		r.Failed = fmt.Sprintf("some clusters are not placed in any stage, total %d, showing up to 10: %s", len(unmatched), strings.Join(unmatched[:min(10, len(unmatched))], ", "))
	}
	return r
}

// notReady is why no run can be initialised yet; empty if one can. A cluster that has not answered yet belongs to the
// run: without it, an early stage could be skipped as one without clusters.
func (pl runPlanner) notReady(p *Placement) string {
	var absent []string
	for _, a := range p.Absent {
		absent = append(absent, a.Cluster)
	}
	namespace := pl.awaitNamespace(p)
	switch {
	case len(absent) > 0:
		return "it waits for clusters that the policy would choose and that cannot be used: " + strings.Join(absent, ", ")
	case len(namespace) > 0:
		return "it waits for the namespace " + p.Key.Namespace + ", which is about to be created on " + strings.Join(namespace, ", ")
	case !p.Schedule.Fulfilled || !p.hasCluster():
		return "the policy is not fully scheduled yet"
	}
	return ""
}

// awaitNamespace lists the clusters that PickAll will choose, since another placement is about to create the namespace there.
func (pl *placementPlanner) awaitNamespace(p *Placement) (clusters []string) {
	for _, name := range p.Schedule.WithoutNamespace {
		for _, r := range pl.planner.results.list {
			if r == nil {
				continue
			}
			o := r.placement
			creates := func(object *api.Object) bool {
				return object.ID == api.ID{Kind: "Namespace", Name: p.Key.Namespace}
			}
			if c := o.On(name); c != nil && selected(c) && slices.ContainsFunc(o.Selection.Objects, creates) {
				clusters = append(clusters, name)
				break
			}
		}
	}
	return clusters
}

// setContent makes a run bring the content with the number that its manifest asks for. It returns why it cannot.
func setContent(p *Placement, d *hub.StagedRun, r *placement.Run) string {
	n, err := strconv.Atoi(d.Index)
	if err != nil || n == p.Record.Index {
		return "" // the one in force; the loader has refused invalid numbers
	}
	for _, old := range p.Record.Revisions {
		if old.Index == n && old.Content.Commit != "" {
			r.Index, r.Content = n, old.Content
			return ""
		}
	}
	return fmt.Sprintf("no resourceSnapshots with index `%d` found for placement `%s`", n, p.Key.Namespace+"/"+p.Key.Name)
}

// matchingStages are the indexes of the stages whose selector matches a cluster.
func matchingStages(r *placement.Run, c placement.Cluster) (in []int) {
	for i := range r.Stages {
		selector, err := metav1.LabelSelectorAsSelector(r.Stages[i].LabelSelector) // nil selects nothing
		if err == nil && r.Stages[i].LabelSelector != nil && selector.Matches(labels.Set(c.Labels)) {
			in = append(in, i)
		}
	}
	return in
}

// sortStage sorts the clusters of a stage, which are sorted by name, by its sorting label. It returns why it cannot.
func (pl runPlanner) sortStage(s *placement.RunStage) string {
	if s.SortingLabelKey == "" {
		return ""
	}
	order := map[string]int{}
	for _, name := range s.Clusters {
		cluster, _ := pl.planner.memo.members.Cluster(name)
		value := cluster.Labels[s.SortingLabelKey]
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Sprintf("the sorting label `%s:%s` on cluster `%s` is not valid: %v", s.SortingLabelKey, value, name, err)
		}
		order[name] = n
	}
	slices.SortStableFunc(s.Clusters, func(a, b string) int { return cmp.Compare(order[a], order[b]) })
	return ""
}

// addUnmatched adds clusters to the last stage, of those in no other, and the stage itself if it is missing.
func addUnmatched(r *placement.Run, clusters ...string) {
	if n := len(r.Stages); n == 0 || r.Stages[n-1].Name != api.UnmatchedStage {
		one := intstr.FromInt32(1)
		r.Stages = append(r.Stages, placement.RunStage{StageConfig: api.StageConfig{Name: api.UnmatchedStage, MaxConcurrency: &one}})
	}
	last := &r.Stages[len(r.Stages)-1]
	last.Clusters = append(last.Clusters, clusters...)
}
