package reconciler

import (
	"iter"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// declared is all that a commit has but placements, which the ledger knows by
// themselves.
func declared(s *hub.Snapshot) iter.Seq2[api.ID, ledger.Content] {
	return func(yield func(api.ID, ledger.Content) bool) {
		more := true
		put := func(id api.ID, hash, spec string) {
			more = more && yield(id, ledger.Content{Hash: brief(hash), Spec: brief(spec)})
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
	}
}

// brief is enough of a hash to see that something changed: there is one for
// each object, in memory and on disk.
func brief(hash string) string {
	const enough = 20
	return hash[:min(enough, len(hash))]
}
