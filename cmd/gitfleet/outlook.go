package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// An outlookInput is what a command that thinks offline is given.
type outlookInput struct {
	clusters string // a file: the observed fleet; may be empty
	current  string // a file: an earlier plan; may be empty
	// base is the commit to compare with; nil if there is none.
	base *hub.Snapshot
}

func (in *outlookInput) bind(f *pflag.FlagSet) {
	f.StringVar(&in.clusters, "clusters", "", "file of MemberClusters with their status: the observed fleet")
	f.StringVar(&in.current, "current", "", "JSON of an earlier plan: what is held now")
}

// An outlook is the thinking of the daemon on a checkout, without a cluster.
type outlook struct {
	snapshot *hub.Snapshot
	plan     *plan.Plan
	report   *status.Report
	before   *planDocument // the earlier plan; nil if there is none
	// renames are the placements that were renamed since the earlier plan, which has them
	// under their new keys.
	renames []ledger.Rename
	// warnings are those of the commit and of the observed fleet.
	warnings hub.Problems
}

// about thinks about what was read.
func (in outlookInput) about(s *hub.Snapshot) (*outlook, error) {
	o := &outlook{snapshot: s, warnings: s.Warnings}
	input := offline(s)
	leaving := map[string]bool{}
	if in.clusters != "" {
		f, err := readFleet(in.clusters)
		if err != nil {
			return nil, err
		}
		joined := f.join(s)
		o.snapshot = joined.snapshot
		o.warnings = append(slices.Clone(joined.snapshot.Warnings), joined.warnings...)
		input = offline(o.snapshot)
		input.Observed, input.Now, leaving = joined.clusters, joined.at, f.leaving()
	} else if err := o.assumeNamespaces(&input); err != nil {
		return nil, err
	}
	before, err := in.earlier()
	if err != nil {
		return nil, err
	}
	if before != nil {
		before.hold(input.Ledger, o.snapshot, leaving, input.Now)
		input.Holdings = before.holdings()
		if before.Commit != o.snapshot.Commit.Hash {
			input.Lost = map[string]error{before.Commit: errors.New("only the names of its objects are known")}
		}
		if err := o.think(input); err != nil {
			return nil, err
		}
		o.renames = o.plan.Renames
		o.before = before.renamed(o.renames)
		o.before.settle(input.Ledger, o.plan)
		input.Memo = plan.NewMemo()
	}
	return o, o.think(input)
}

// earlier returns the plan to compare with; nil if there is none.
func (in outlookInput) earlier() (*planDocument, error) {
	switch {
	case in.base != nil && in.current != "":
		return nil, errors.New("--current cannot be combined with FROM..TO")
	case in.current != "":
		return readCurrent(in.current)
	case in.base != nil:
		o, err := outlookInput{clusters: in.clusters}.about(in.base)
		if err != nil {
			return nil, err
		}
		d := o.describe()
		return &d, nil
	}
	return nil, nil
}

// assumeNamespaces keeps ResourcePlacements from clusters where no namespace
// would be for them: a namespace that the plan puts on some clusters is taken to
// be on no others. One that it puts nowhere may be anywhere.
func (o *outlook) assumeNamespaces(in *plan.Input) error {
	asked := map[string]bool{}
	for _, p := range o.snapshot.Placements {
		if p.Key.Namespace != "" {
			asked[p.Key.Namespace] = true
		}
	}
	if len(asked) == 0 {
		return nil
	}
	if err := o.think(*in); err != nil {
		return err
	}
	placed := map[string]map[string]bool{} // by namespace, then cluster
	for _, p := range o.plan.Placements {
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
	for _, c := range o.snapshot.Clusters {
		known := plan.Cluster(c, nil)
		known.Namespaces = map[string]bool{}
		for namespace := range asked {
			known.Namespaces[namespace] = placed[namespace] == nil || placed[namespace][c.Name]
		}
		in.Observed[c.Name] = known
	}
	return nil
}

// think resolves the plan, and reports what is a fault of the program.
func (o *outlook) think(in plan.Input) error {
	o.plan = plan.Resolve(in)
	o.report = status.Build(status.Input{Plan: o.plan, Head: in.Head, Ledger: in.Ledger, Now: in.Now})
	for _, p := range o.plan.Placements {
		if p.Internal != "" {
			return fmt.Errorf("%s: %s", p.Key, p.Internal)
		}
	}
	return nil
}

// offline is a fleet in which all is well and nothing is placed yet.
func offline(s *hub.Snapshot) plan.Input {
	in := plan.Input{Head: s, Ledger: ledger.New(), Now: time.Now(), Memo: plan.NewMemo()}
	for _, c := range s.Clusters {
		in.Ledger.Fold(ledger.ClusterSeen{Cluster: c.Name, At: in.Now, Healthy: true})
	}
	return in
}

// statuses are those of all placements, by key.
func (o *outlook) statuses() map[api.PlacementKey]api.PlacementStatus {
	all := map[api.PlacementKey]api.PlacementStatus{}
	for _, c := range o.report.Placements {
		all[api.PlacementKey{Name: c.Name}] = c.Status
	}
	for _, r := range o.report.ResourcePlacements {
		all[api.PlacementKey{Namespace: r.Namespace, Name: r.Name}] = r.Status
	}
	return all
}
