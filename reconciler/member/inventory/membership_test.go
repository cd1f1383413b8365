package inventory

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

var (
	here    = protocol.Fleet{Name: "prod", ID: "ours", Source: "git.example.com/fleet"}
	another = protocol.Fleet{Name: "prod", ID: "theirs", Source: "git.example.com/other"}
)

// Every part of an inventory names the owner, which can also be read from a damaged inventory.
func TestInventoriesNameTheirFleet(t *testing.T) {
	smallParts(t)
	at := apiserver.NewConfigMaps()
	save(t, storeFor(t, here, at), heavy(3))
	s := storeFor(t, here, at)
	load(t, s)
	if s.ClaimedByOther() || !slices.Equal(s.owners, []protocol.Owner{{ID: "ours", Source: here.Source}}) {
		t.Errorf("owners: %v, foreign: %v", s.owners, s.ClaimedByOther())
	}
	for _, name := range at.Names() {
		var o struct {
			Metadata struct{ Annotations map[string]string }
		}
		if err := json.Unmarshal(at.Stored[name], &o); err != nil || o.Metadata.Annotations[api.FleetIDAnnotation] != "ours" {
			t.Errorf("%s: %v, %v", name, o.Metadata.Annotations, err)
		}
	}
	delete(at.Stored, at.Names()[2])
	s = storeFor(t, another, at)
	if all := load(t, s); !s.ClaimedByOther() || len(all) > 0 {
		t.Errorf("a damaged inventory of another fleet: owners %v", s.owners)
	}
}

// An inventory that somebody else has written is read before it is restored. If it belongs to
// another fleet now, nothing is written.
func TestTakenInventoryIsNotPutBack(t *testing.T) {
	for _, id := range []api.ID{FirstPart("prod", web), claimID("prod")} {
		at := apiserver.NewConfigMaps()
		mine := storeFor(t, here, at)
		save(t, mine, held(3))
		touched := map[api.ID]bool{id: true}
		if mine.LostToOther(t.Context(), touched) {
			t.Errorf("our own %s is taken for another's", id)
		}
		l := *mine.cfg.Live.Of(id)
		l.Version, l.Fleet = l.Version+1, "prod" // other gitfleets own the same fields
		mine.cfg.Record(id, &l)
		if mine.LostToOther(t.Context(), touched) {
			t.Errorf("the edited %s is taken for another fleet's", id)
		}
		taking := storeFor(t, another, at)
		taking.membership.Adopted = []protocol.Adoption{{Cluster: "east", ID: "ours", By: "sam"}}
		save(t, taking, held(3))
		if !mine.LostToOther(t.Context(), touched) {
			t.Errorf("%s that another fleet has taken is not noticed", id)
		}
	}
}

func TestCommitsTellOldInventoriesApart(t *testing.T) {
	at := apiserver.NewConfigMaps()
	save(t, storeFor(t, protocol.Fleet{}, at), held(3))
	for commit, want := range map[string]string{"c1": "", "c2": "c1"} {
		s := storeFor(t, here, at)
		s.cfg.HasCommit = func(hash string) bool { return hash == commit }
		if load(t, s); !slices.Equal(s.owners, []protocol.Owner{{UnknownCommit: want}}) {
			t.Errorf("with commit %s: %v", commit, s.owners)
		}
	}
}

// A damaged inventory belongs to a fleet if it has the annotations of an inventory. The label
// alone does not prevent writes to the cluster.
func TestOwnersOfDamagedInventories(t *testing.T) {
	tests := map[string]struct {
		annotations string
		foreign     bool
		bundle      bool
	}{
		"the label alone":           {`{}`, false, false},
		"without a fleet":           {`{"` + partsKey + `":"1"}`, true, false},
		"of another fleet":          {`{"` + api.FleetIDAnnotation + `":"theirs"}`, true, false},
		"of this fleet":             {`{"` + api.FleetIDAnnotation + `":"ours"}`, false, false},
		"a bundle, the label alone": {`{}`, false, true},
		"a bundle, without a fleet": {`{"` + digestKey + `":"1"}`, true, true},
		"a bundle of another fleet": {`{"` + api.FleetIDAnnotation + `":"theirs"}`, true, true},
		"a bundle of this fleet":    {`{"` + api.FleetIDAnnotation + `":"ours"}`, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			at := apiserver.NewConfigMaps()
			name, part := "copied", "0"
			if test.bundle {
				name, part = bundleID("prod").Name, bundlePart
			}
			at.Stored[name] = json.RawMessage(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"` + api.Namespace +
				`","labels":{"` + api.ManagedByLabel + `":"prod","` + label + `":"` + part + `"},"annotations":` + test.annotations + `}}`)
			s := storeFor(t, here, at)
			if all := load(t, s); len(all) > 0 || s.ClaimedByOther() != test.foreign {
				t.Errorf("inventories: %d, foreign: %t, want %t", len(all), s.ClaimedByOther(), test.foreign)
			}
		})
	}
}
