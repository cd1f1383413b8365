package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// clusters warns of members that no placement selects and that none would select if other
// members were gone. Placements that select by properties that only the members know could
// select any.
func (i *inspector) clusters() {
	if len(i.open) > 0 {
		return
	}
	for n, c := range i.Clusters {
		selects := func(p *plan.Placement) bool { return p.On(c.Name) != nil || reserves(p, i.plan.Clusters[n]) }
		if !slices.ContainsFunc(i.plan.Placements, selects) {
			i.warn(c.Origin, "", "no placement selects the cluster "+c.Name)
		}
	}
}

// reserves reports whether a placement that picks a number of clusters would pick this one if
// there were no other.
func reserves(p *plan.Placement, c placement.Cluster) bool {
	if p.Request == nil || p.Request.Policy == nil || p.Request.Policy.PlacementType != api.PickN {
		return false
	}
	alone, policy := *p.Request, *p.Request.Policy
	policy.NumberOfClusters = new(int32(1))
	alone.Policy, alone.Clusters, alone.Bindings = &policy, []placement.Cluster{c}, nil
	return placement.Schedule(alone).Found > 0
}

// unsure returns the placements that select by properties which members do not declare, or
// which only a live cluster has: what they select is unknown here.
func unsure(p *plan.Plan) map[api.PlacementKey]bool {
	open := map[api.PlacementKey]bool{}
	for before := -1; before < len(open); {
		before = len(open)
		for _, pl := range p.Placements {
			policy := pl.Spec.Spec.Policy
			looks := func(name string) bool { return open[api.PlacementKey{Namespace: pl.Key.Namespace, Name: name}] }
			if unknown(p.Clusters, properties(policy)) || slices.ContainsFunc(placement.ReferencedPlacements(policy), looks) {
				open[pl.Key] = true
			}
		}
	}
	return open
}

// printUnsure names the placements whose selection here is only a guess.
func printUnsure(w io.Writer, p *plan.Plan) {
	open := unsure(p)
	for _, pl := range p.Placements {
		if open[pl.Key] {
			fmt.Fprintf(w, "%s: where %s goes depends on properties that not every MemberCluster declares; --clusters tells them\n", pl.Spec.Origin, pl.Key)
		}
	}
}

// unknown reports whether some cluster lacks some property.
func unknown(clusters []placement.Cluster, names []string) bool {
	return slices.ContainsFunc(clusters, func(c placement.Cluster) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			_, known := c.Properties[name]
			return !known
		})
	})
}

// properties returns the properties that a policy uses.
func properties(policy *api.PlacementPolicy) []string {
	if policy == nil || policy.Affinity == nil || policy.Affinity.ClusterAffinity == nil {
		return nil
	}
	affinity := policy.Affinity.ClusterAffinity
	var terms []api.ClusterSelectorTerm
	if affinity.Required != nil {
		terms = slices.Clone(affinity.Required.ClusterSelectorTerms)
	}
	for _, p := range affinity.Preferred {
		terms = append(terms, p.Preference)
	}
	var names []string
	for _, t := range terms {
		if t.PropertySorter != nil {
			names = append(names, t.PropertySorter.Name)
		}
		if t.PropertySelector != nil {
			for _, e := range t.PropertySelector.MatchExpressions {
				names = append(names, e.Name)
			}
		}
	}
	return names
}

// A source is a file, and the kustomization that includes it.
type source struct{ path, kustomization string }

// files warns of objects that no placement selects: of a whole file at once, if it has no
// others.
func (i *inspector) files() {
	placed := map[*api.Object]bool{}
	for _, p := range i.plan.Placements {
		if p.Selection.Invalid != "" {
			return // what it would select is unknown
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
		if used[from] || len(objects) == 1 {
			for _, o := range objects {
				i.warn(o.Origin, "", "no placement selects "+objectName(&work.Manifest{Object: o}))
			}
			continue
		}
		names := make([]string, len(objects))
		for n, o := range objects {
			names[n] = objectName(&work.Manifest{Object: o})
		}
		at := api.Origin{Path: from.path, Kustomization: from.kustomization}
		i.warn(at, "", "no placement selects anything in this file: "+forecast.FewOf(names))
	}
}
