package check

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelabels "k8s.io/apimachinery/pkg/labels"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// clusters warns of members that no placement selects, and that none would select if other
// members were removed. Placements that use properties which only the members know might select
// any cluster.
func (i *inspector) clusters() {
	if len(i.open) > 0 {
		return
	}
	for n, c := range i.Clusters {
		selects := func(p *plan.Placement) bool { return p.On(c.Name) != nil || reserves(p, i.plan.Clusters[n]) }
		if !slices.ContainsFunc(slices.Collect(i.plan.Placements.Values()), selects) {
			i.warn(c.Origin, "", "no placement selects the cluster "+c.Name)
		}
	}
}

// reserves reports whether a placement that selects a number of clusters would select this one
// if there were no other.
func reserves(p *plan.Placement, c placement.Cluster) bool {
	if p.Request == nil || p.Request.Policy == nil || p.Request.Policy.PlacementType != api.PickN {
		return false
	}
	alone, policy := *p.Request, *p.Request.Policy
	policy.NumberOfClusters = new(int32(1))
	alone.Policy, alone.Clusters, alone.Bindings = &policy, []placement.Cluster{c}, nil
	return placement.Schedule(alone).Found > 0
}

// A source is a file, with the kustomization that includes it.
type source struct{ path, kustomization string }

// files warns of objects that no placement selects, with one warning for a file in which no
// object is selected.
func (i *inspector) files() {
	placed := map[*api.Object]bool{}
	for p := range i.plan.Placements.Values() {
		if p.Selection.Invalid != "" {
			return // its selection is unknown
		}
		for _, o := range p.Selection.Objects {
			placed[o] = true
		}
	}
	used := map[source]bool{}
	lost := map[source][]*api.Object{}
	for _, o := range i.Objects {
		from := source{o.Origin.Path, o.Origin.Kustomization}
		if placed[o] {
			used[from] = true
		} else {
			lost[from] = append(lost[from], o)
		}
	}
	for from, objects := range lost {
		var names []string
		for _, o := range objects {
			names = append(names, objectName(&work.Manifest{Object: o}))
		}
		if used[from] || len(objects) == 1 {
			for n, o := range objects {
				i.warn(o.Origin, "", "no placement selects "+names[n])
			}
			continue
		}
		at := api.Origin{Path: from.path, Kustomization: from.kustomization}
		i.warn(at, "", "no placement selects anything in this file: "+forecast.FewOf(names))
	}
}

// overrides warns of rules that match no cluster of the fleet. A warning about an override
// replaces those about its rules.
func (i *inspector) overrides() {
	for _, o := range i.ClusterOverrides {
		i.idle[o.Origin] = i.rules(o.Origin, o.Spec.Policy)
	}
	for _, o := range i.Overrides {
		i.idle[o.Origin] = i.rules(o.Origin, o.Spec.Policy)
	}
}

// rules warns of each rule that matches no cluster of the fleet, and reports whether none does.
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

// concerns reports whether a selector matches some cluster. The loader reports a missing one.
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
