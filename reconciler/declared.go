package reconciler

import (
	"iter"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// declared returns everything that a commit declares, except placements, which have other records in the ledger.
func declared(s *hub.Snapshot) iter.Seq2[api.ID, ledger.DeclaredHashes] {
	return func(yield func(api.ID, ledger.DeclaredHashes) bool) {
		more := true
		put := func(id api.ID, hash, spec string) {
			more = more && yield(id, ledger.DeclaredHashes{Hash: shortHash(hash), Spec: shortHash(spec)})
		}
		for _, o := range s.Objects {
			put(o.ID, o.Hash, "")
		}
		for _, c := range s.Clusters {
			put(api.ID{Group: api.ClusterGroup, Kind: "MemberCluster", Name: c.Name}, c.Hash, c.SpecHash)
		}
		for _, o := range s.ClusterOverrides {
			put(api.ID{Group: api.PlacementGroup, Kind: "ClusterResourceOverride", Name: o.Name}, o.Hash, o.SpecHash)
		}
		for _, o := range s.Overrides {
			put(api.ID{Group: api.PlacementGroup, Kind: "ResourceOverride", Namespace: o.Namespace, Name: o.Name}, o.Hash, o.SpecHash)
		}
		for _, o := range s.Staged {
			put(o.ID, o.Hash, o.SpecHash)
		}
		for _, e := range s.Evictions {
			put(api.ID{Group: api.PlacementGroup, Kind: "ClusterResourcePlacementEviction", Name: e.Name}, e.Hash, e.SpecHash)
		}
		for _, b := range s.Budgets {
			put(api.ID{Group: api.PlacementGroup, Kind: "ClusterResourcePlacementDisruptionBudget", Name: b.Name}, b.Hash, b.SpecHash)
		}
		for _, w := range s.Windows {
			put(api.ID{Group: api.OverlayGroup, Kind: "RolloutWindow", Name: w.Name}, w.Hash, w.SpecHash)
		}
		for _, g := range s.Gates {
			put(api.ID{Group: api.OverlayGroup, Kind: "RolloutGate", Name: g.Name}, g.Hash, g.SpecHash)
		}
	}
}

// shortHash returns enough of a hash to detect a change. One is kept for each object, in memory and on disk.
func shortHash(hash string) string {
	const enough = 20
	return hash[:min(enough, len(hash))]
}
