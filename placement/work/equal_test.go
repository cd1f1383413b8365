package work

import (
	"reflect"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// Works that differ in any field are not equal, so that a member gets the new one.
func TestEqualComparesEachField(t *testing.T) {
	manifest := func(name, hash string) *Manifest {
		return &Manifest{Object: &api.Object{ID: api.ID{Kind: "ConfigMap", Name: name}, Hash: hash}}
	}
	changed := Work{
		Placement: api.PlacementKey{Name: "web"}, Revision: placement.Revision{Hash: "1"},
		Strategy:  api.ApplyStrategy{ServerSideApplyConfig: &api.ServerSideApplyConfig{ForceConflicts: true}},
		Manifests: []*Manifest{manifest("a", "1")}, Awaited: []*Manifest{manifest("a", "1")},
		Keep: true, Remove: true, Abandon: true, AllowDelete: true,
		DeletionBlocks: []DeletionBlock{{Why: "held"}}, Cause: Cause{Commit: "c"}, Suspended: "suspended", Drift: "report", ClusterDrift: "report", SuspendedObjects: []SuspendedObject{{}},
	}
	fields := reflect.TypeFor[Work]()
	for i := range fields.NumField() {
		var a, b Work
		reflect.ValueOf(&b).Elem().Field(i).Set(reflect.ValueOf(changed).Field(i))
		if a.Equal(&b) || b.Equal(&a) {
			t.Errorf("works with another %s are equal", fields.Field(i).Name)
		}
		if c := b; !b.Equal(&c) {
			t.Errorf("a copy with another %s is not equal", fields.Field(i).Name)
		}
	}
	tests := map[string]struct {
		a, b Work
		want bool
	}{
		"another commit":      {Work{Revision: placement.Revision{Commit: "a"}}, Work{Revision: placement.Revision{Commit: "b"}}, false},
		"other content":       {Work{Manifests: []*Manifest{manifest("a", "1")}}, Work{Manifests: []*Manifest{manifest("a", "2")}}, false},
		"copied content":      {Work{Manifests: []*Manifest{manifest("a", "1")}}, Work{Manifests: []*Manifest{manifest("a", "1")}}, true},
		"awaits other values": {Work{Awaited: []*Manifest{manifest("a", "1")}}, Work{Awaited: []*Manifest{manifest("a", "2")}}, true},
		"awaits other objects": {
			Work{Awaited: []*Manifest{manifest("a", "1")}}, Work{Awaited: []*Manifest{manifest("b", "1")}}, false,
		},
		"an empty configuration": {Work{}, Work{Strategy: api.ApplyStrategy{ServerSideApplyConfig: &api.ServerSideApplyConfig{}}}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.a.Equal(&test.b); got != test.want {
				t.Errorf("they are equal: %t, want %t", got, test.want)
			}
		})
	}
}
