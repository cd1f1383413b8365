package main

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelabels "k8s.io/apimachinery/pkg/labels"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// overrides warns of those that change nothing anywhere.
func (i *inspector) overrides() {
	if len(i.ClusterOverrides)+len(i.Overrides) == 0 {
		return
	}
	var cros, freeCROs []*api.ClusterResourceOverride
	var ros, freeROs []*api.ResourceOverride
	idle := map[api.Origin]bool{} // told already
	for _, o := range i.ClusterOverrides {
		cros = append(cros, o.ClusterResourceOverride)
		if o.Spec.Placement == nil {
			freeCROs = append(freeCROs, o.ClusterResourceOverride)
		}
		idle[o.Origin] = i.rules(o.Origin, o.Spec.Policy)
	}
	for _, o := range i.Overrides {
		ros = append(ros, o.ResourceOverride)
		if o.Spec.Placement == nil {
			freeROs = append(freeROs, o.ResourceOverride)
		}
		idle[o.Origin] = i.rules(o.Origin, o.Spec.Policy)
	}
	var renderers []*work.Renderer
	for _, p := range i.plan.Placements {
		r := work.NewRenderer(p.Key, p.Selection.Objects, cros, ros, plan.Scope(i.Snapshot))
		renderers = append(renderers, r)
		if i.open[p.Key] || len(p.Clusters) == 0 {
			continue
		}
		for _, w := range r.Idle(i.held(p)) {
			if at := i.overridden(w, p.Spec.Origin); !idle[at] {
				i.warn(at, "spec.policy.overrideRules", w)
			}
		}
	}
	// Of those that are for one placement the loader and the placement's own
	// warnings tell.
	for _, w := range work.Unused(freeCROs, freeROs, renderers) {
		i.warn(i.overridden(w, api.Origin{}), "", w)
	}
}

// rules warns of each rule that is for no cluster of the fleet, and reports
// whether all of them are.
func (i *inspector) rules(at api.Origin, policy *api.OverridePolicy) bool {
	if policy == nil || len(i.Clusters) == 0 {
		return false
	}
	all := true
	for n, rule := range policy.OverrideRules {
		if i.concerns(rule.ClusterSelector) {
			all = false
			continue
		}
		i.warn(at, fmt.Sprintf("spec.policy.overrideRules[%d].clusterSelector", n), "matches no cluster, so this rule changes nothing")
	}
	return all
}

// concerns reports whether a selector is for some cluster. One that is missing
// is told of by the loader.
func (i *inspector) concerns(s *api.ClusterSelector) bool {
	if s == nil || len(s.ClusterSelectorTerms) == 0 {
		return true
	}
	for _, term := range s.ClusterSelectorTerms {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil || slices.ContainsFunc(i.plan.Clusters, func(c placement.Cluster) bool { return selector.Matches(kubelabels.Set(c.Labels)) }) {
			return true
		}
	}
	return false
}

// held are the clusters that a placement selects.
func (i *inspector) held(p *plan.Placement) []placement.Cluster {
	var held []placement.Cluster
	for _, c := range i.plan.Clusters {
		if p.On(c.Name) != nil {
			held = append(held, c)
		}
	}
	return held
}
