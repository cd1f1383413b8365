package member

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// Whatever is known of an object is kept whole, in every field: one that is
// added and not packed would be lost.
func TestTrackedObjectsAreKeptWhole(t *testing.T) {
	for _, uid := range []types.UID{"", "0b5f9a3e-1c2d-4e5f-8a9b-0c1d2e3f4a5b", "of another form"} {
		var l live
		fill(t, reflect.ValueOf(&l).Elem(), "live")
		l.uid = uid
		known := lives{}
		known.put(cm("x"), &l)
		if got := known.of(cm("x")); got == nil || *got != l {
			t.Errorf("kept %+v, want %+v", got, l)
		}
		if got := known.of(cm("y")); got != nil {
			t.Errorf("knows of what was never put: %+v", got)
		}
		var it item
		fill(t, reflect.ValueOf(&it).Elem(), "item")
		it.UID = uid
		held := items{}
		held.put(it)
		gvk, _ := held.gvk(it.id())
		if got := held.of(it.id()); got == nil || *got != it || !held.has(it.id()) || gvk != it.gvk() {
			t.Errorf("kept %+v, want %+v", got, it)
		}
		for got := range held.all() {
			if got != it {
				t.Errorf("listed %+v, want %+v", got, it)
			}
		}
		known.drop(cm("x"))
		held.drop(it.id())
		if len(known.byID)+len(held.byID) > 0 {
			t.Errorf("left: %v, %v", known, held)
		}
	}
}

// fill gives every field of a struct a value that is not zero.
func fill(t *testing.T, v reflect.Value, name string) {
	t.Helper()
	v = reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), name+"."+v.Type().Field(i).Name)
		}
	case reflect.String:
		v.SetString("some " + name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64, reflect.Int:
		v.SetInt(42)
	case reflect.Uint64:
		v.SetUint(43)
	default:
		t.Fatalf("%s is a %s: keep it whole, and fill it here", name, v.Kind())
	}
}

// What is kept by ID is what a map would have, in order.
func TestByIDIsASortedMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got byID[int]
		want := map[api.ID]int{}
		for n := range rapid.IntRange(0, 200).Draw(t, "steps") {
			id := cm(fmt.Sprint(rapid.IntRange(0, 60).Draw(t, "name")))
			if rapid.IntRange(0, 4).Draw(t, "step") == 0 {
				got.drop(id)
				delete(want, id)
				continue
			}
			got.put(id, n)
			want[id] = n
		}
		ids := slices.Collect(got.ids())
		if !slices.IsSortedFunc(ids, api.ID.Compare) || len(ids) != len(want) {
			t.Fatalf("kept %v, want %v in order", ids, want)
		}
		for n := range 60 {
			id := cm(fmt.Sprint(n))
			value, has := want[id]
			if is := got.of(id); (is != nil) != has || has && *is != value {
				t.Fatalf("kept of %s: %v, want %v", id, is, value)
			}
		}
	})
}

// Of what is tracked there is little room for more: it is there a million times.
func TestByIDGrowsLittle(t *testing.T) {
	var l lives
	for n := range 1000 {
		l.put(cm(fmt.Sprint(n)), &live{})
		if room := cap(l.byID) - len(l.byID); room > len(l.byID)/3+8 {
			t.Fatalf("room for %d more than %d", room, len(l.byID))
		}
	}
}

// A list makes those objects of its kind go that it did not find, unless they are
// newer.
func TestMissingAreOfTheKindAndNotNewer(t *testing.T) {
	var l lives
	other := api.ID{Kind: "Secret", Namespace: "default", Name: "gone"}
	for id, version := range map[api.ID]uint64{cm("there"): 1, cm("gone"): 2, cm("newer"): 4, other: 1} {
		l.put(id, &live{version: version})
	}
	gone := l.missing(cm("").GroupKind(), listed{found: map[api.ID]bool{cm("there"): true}, version: 3})
	if !slices.Equal(gone, []api.ID{cm("gone")}) {
		t.Errorf("gone are %v", gone)
	}
	if got := slices.Collect(l.ids()); len(got) != 3 || slices.Contains(got, cm("gone")) {
		t.Errorf("left are %v", got)
	}
}

func TestUIDsArePackedAndUnpacked(t *testing.T) {
	uids := rapid.OneOf(
		rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`),
		rapid.StringMatching(`[0-9a-fA-F-]{36}`),
		rapid.SampledFrom([]string{"", "00000000-0000-0000-0000-000000000000"}),
		rapid.String(),
	)
	rapid.Check(t, func(t *rapid.T) {
		uid := types.UID(uids.Draw(t, "uid"))
		packed, whole := packUID(uid)
		if got := packed.unpack(whole); got != uid {
			t.Fatalf("%q became %q", uid, got)
		}
	})
	if packed, whole := packUID("0b5f9a3e-1c2d-4e5f-8a9b-0c1d2e3f4a5b"); packed == (packedUID{}) || whole != "" {
		t.Errorf("a UUID is not packed: %v, %q", packed, whole)
	}
}

// Whatever is wanted is found, once; whoever is better gets what two want.
func TestWantsAreFound(t *testing.T) {
	manifest := func(name string) *work.Manifest {
		return &work.Manifest{Object: &api.Object{ID: cm(name), Object: &unstructured.Unstructured{}}}
	}
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), rapid.ID)
		var works []work.Work
		holder := map[api.ID]api.PlacementKey{}
		strong := api.PlacementKey{Name: rapid.SampledFrom([]string{"p0", "p1", "p2"}).Draw(t, "strong")}
		for p := range 3 {
			w := work.Work{Placement: api.PlacementKey{Name: fmt.Sprintf("p%d", p)}}
			for _, n := range names.Draw(t, "names") {
				w.Manifests = append(w.Manifests, manifest(n))
				if _, taken := holder[cm(n)]; !taken || w.Placement == strong {
					holder[cm(n)] = w.Placement
				}
			}
			works = append(works, w)
		}
		got := wantsOf(works, func(_, second wanted) bool { return second.placement == strong })
		if len(got) != len(holder) {
			t.Fatalf("%d are wanted, want %d", len(got), len(holder))
		}
		for id, p := range holder {
			if w, ok := got.of(id); !ok || w.placement != p || w.manifest.ID != id {
				t.Errorf("%s is wanted by %v, want %v", id, w.placement, p)
			}
		}
		if w, ok := got.of(cm("z")); ok {
			t.Errorf("wants what nobody does: %v", w)
		}
		var order []api.ID
		for id := range got.all() {
			order = append(order, id)
		}
		if !slices.IsSortedFunc(order, api.ID.Compare) {
			t.Errorf("not in order: %v", order)
		}
	})
}
