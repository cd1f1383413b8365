// Package forecast computes the state of a fleet once a commit is in force and all of its rollouts are finished.
//
// [Of] plans a snapshot for a fleet without access to a cluster or a daemon. A [Running] fleet is the fleet of a
// daemon. [Forecast.Compared] returns the differences from an earlier plan. The package reads no clock and sends no
// request.
package forecast

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/plan/fleet"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Running fleet is the fleet of a daemon once the rollouts of the commit in force are finished: placements keep the
// clusters that they are bound to. Only one goroutine may use it, since it caches results between forecasts.
type Running struct {
	inForce  *hub.Snapshot
	plan     *plan.Plan
	document Document
	now      time.Time
	observed map[string]placement.Cluster
	declared map[string]*hub.Cluster
	// ledger is the ledger of the fleet, and lost the commits of bindings that cannot be read any more. They are not
	// modified.
	ledger *ledger.Ledger
	lost   map[string]error
	memo   *plan.Memo
	// unchanged are placements of an earlier forecast that do not differ from plan. A later forecast does not compare them
	// again.
	unchanged map[*plan.Placement]bool
	// facts were found about the placements of the last forecast with memo.
	facts facts
	// problems are those that the fleet has already, without their lines; nil until they are asked for. unrendered are the
	// placements of plan without valid content for some clusters.
	problems   map[problem.Problem]bool
	unrendered *[]*plan.Placement
}

// Input is everything that a forecast depends on.
type Input struct {
	Snapshot *hub.Snapshot
	// Observed is the observed fleet. If it is nil, every declared member is healthy and has only the properties that
	// are declared.
	Observed *Fleet
	// AnyNamespace allows a ResourcePlacement on every cluster, whether or not the plan creates its namespace there.
	AnyNamespace bool
	// Before is an earlier plan; its placements are bound to their clusters. Nil if there is none.
	Before *Document
	// Earlier is the plan that Before describes, and InForce its snapshot; nil if only the description is known.
	Earlier *plan.Plan
	InForce *hub.Snapshot
	Now     time.Time
}

// Without returns the input without some of the clusters, as if they were no members.
func (in Input) Without(names []string) Input {
	s := *in.Snapshot
	s.Clusters = slices.DeleteFunc(slices.Clone(s.Clusters), func(c *hub.Cluster) bool { return slices.Contains(names, c.Name) })
	in.Snapshot = &s
	if in.Observed != nil {
		in.Observed = &Fleet{at: in.Observed.at, clusters: slices.DeleteFunc(slices.Clone(in.Observed.clusters), func(c hub.ObservedCluster) bool { return slices.Contains(names, c.Name) })}
	}
	return in
}

// A Forecast is the plan of a snapshot with the differences from an earlier one.
type Forecast struct {
	Snapshot *hub.Snapshot
	Plan     *plan.Plan
	// Report is the report of a daemon at the beginning of the rollouts; nil for a running fleet.
	Report *status.Report
	// Renames are the placements that were renamed since the earlier plan.
	Renames []ledger.Rename
	// Warnings are the warnings of the snapshot and of the observed fleet.
	Warnings problem.List
	// Unknown are warnings about clusters on which the objects of the earlier plan are unknown.
	Unknown problem.List
	// Moved are the warnings about indexes that mean another item of a list than in the earlier snapshot. Warnings has
	// them, too.
	Moved problem.List
	// before is the earlier plan, with renamed placements under their new keys; nil if there is none.
	before *Document
	// compared is before without the placements in unchanged.
	compared *Document
	// earlier is the earlier plan with its contents; nil if they are not known.
	earlier *plan.Plan
	// inForce is the snapshot of the earlier plan; nil if it is not known.
	inForce *hub.Snapshot
	// Rollouts are the rollouts that the snapshot starts in a running fleet, by placement.
	Rollouts []Rollout
	// running is the fleet of the forecast; nil if no daemon runs it.
	running *Running
	// unchanged are placements that are known not to differ from the earlier plan. They are not compared.
	unchanged map[*plan.Placement]bool
	// facts were found about the placements of Plan.
	facts facts
	// document describes Plan without the placements in unchanged; nil until it is needed.
	document *Document
	// contentChanges caches the result of ContentChanges; nil until it is called.
	contentChanges *[]ContentChange
}

// Of returns the forecast for a fleet without a daemon. An error is a bug in the program.
func Of(in Input) (*Forecast, error) {
	o := &Forecast{Snapshot: in.Snapshot, Warnings: in.Snapshot.Warnings, earlier: in.Earlier, inForce: in.InForce, facts: facts{}}
	input := healthy(in.Snapshot, in.Now)
	leaving := map[string]bool{}
	if in.Observed != nil {
		joined := in.Observed.join(in.Snapshot)
		o.Snapshot = joined.snapshot
		o.Warnings = append(slices.Clone(joined.snapshot.Warnings), joined.warnings...)
		input = healthy(o.Snapshot, joined.at)
		input.Observed, leaving = joined.clusters, in.Observed.leaving()
	} else if !in.AnyNamespace {
		if err := o.assumeNamespaces(&input); err != nil {
			return nil, err
		}
	}
	if before := in.Before; before != nil {
		before.bind(input.Ledger, o.Snapshot, leaving, input.Now)
		input.Owned = before.owned()
		if before.Commit != o.Snapshot.Commit.Hash {
			input.Lost = map[string]error{before.Commit: errors.New("only the names of its objects are known")}
		}
		if err := o.resolve(input); err != nil {
			return nil, err
		}
		o.Renames = o.Plan.Renames
		o.before = before.renamed(o.Renames)
		o.compared = o.before
		o.before.settle(input.Ledger, o.Plan)
		input.Memo = plan.NewMemo()
	}
	if err := o.resolve(input); err != nil {
		return nil, err
	}
	o.Unknown = o.unknown()
	o.addMoved()
	return o, nil
}

// addMoved adds the indexes that mean other items than in the earlier snapshot to the warnings, and what the content of placements
// lacks.
func (o *Forecast) addMoved() {
	o.Moved = MovedItems(func() *hub.Snapshot { return o.inForce }, o.Snapshot)
	o.Warnings = slices.Concat(o.Warnings, o.Moved, contentWarnings(o.Snapshot, o.Plan, o.facts))
}

// contentWarnings returns the warnings about the content of placements, which only a plan shows.
func contentWarnings(s *hub.Snapshot, p *plan.Plan, known facts) problem.List {
	return slices.Concat(missingReferences(s, p, known), literalVariables(p), missingRuns(s, p))
}

// assumeNamespaces keeps ResourcePlacements from clusters without their namespace: if the plan puts the namespace on
// some clusters, it is assumed to be on no others. A namespace that the plan puts nowhere may be on every cluster.
func (o *Forecast) assumeNamespaces(in *plan.Input) error {
	asked := map[string]bool{}
	for _, p := range o.Snapshot.Placements {
		if p.Key.Namespace != "" {
			asked[p.Key.Namespace] = true
		}
	}
	if len(asked) == 0 {
		return nil
	}
	if err := o.resolve(*in); err != nil {
		return err
	}
	placed := map[string]map[string]bool{} // by namespace and cluster
	for p := range o.Plan.Placements.Values() {
		for _, c := range p.Clusters {
			for _, m := range c.Content.Manifests {
				if m.ID.GroupKind() == (api.GroupKind{Kind: "Namespace"}) && asked[m.ID.Name] {
					if placed[m.ID.Name] == nil {
						placed[m.ID.Name] = map[string]bool{}
					}
					placed[m.ID.Name][c.Binding.Cluster] = true
				}
			}
		}
	}
	in.Observed, in.Memo = map[string]placement.Cluster{}, plan.NewMemo()
	for _, c := range o.Snapshot.Clusters {
		known := fleet.Cluster(c, nil)
		known.Namespaces = []string{}
		for _, namespace := range slices.Sorted(maps.Keys(asked)) {
			if placed[namespace] == nil || placed[namespace][c.Name] {
				known.Namespaces = append(known.Namespaces, namespace)
			}
		}
		in.Observed[c.Name] = known
	}
	return nil
}

// resolve computes the plan and its report. An error is a bug in the program.
func (o *Forecast) resolve(in plan.Input) error {
	o.Plan = plan.Resolve(in)
	o.Report = status.Build(status.Input{Plan: o.Plan, InForce: in.InForce, Ledger: in.Ledger, Now: in.Now}).Whole()
	return internal(o.Plan)
}

func internal(p *plan.Plan) error {
	for pl := range p.Placements.Values() {
		if pl.InternalError != "" {
			return fmt.Errorf("%s: %s", pl.Key, pl.InternalError)
		}
	}
	return nil
}

// healthy returns a fleet in which every member is healthy and nothing is placed yet.
func healthy(s *hub.Snapshot, now time.Time) plan.Input {
	in := plan.Input{InForce: s, Ledger: ledger.New(), Now: now, Memo: plan.NewMemo()}
	for _, c := range s.Clusters {
		in.Ledger.Fold(protocol.ClusterSeen{Cluster: c.Name, At: in.Now, Healthy: true})
	}
	return in
}
