package compact

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Map behaves like a Go map that is sorted by ID.
func TestByIDIsASortedMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got Map[int]
		want := map[api.ID]int{}
		for n := range rapid.IntRange(0, 200).Draw(t, "steps") {
			id := configMap(fmt.Sprint(rapid.IntRange(0, 60).Draw(t, "name")))
			if rapid.IntRange(0, 4).Draw(t, "step") == 0 {
				got.Drop(id)
				delete(want, id)
				continue
			}
			got.Put(id, n)
			want[id] = n
		}
		ids := slices.Collect(got.IDs())
		if !slices.IsSortedFunc(ids, api.ID.Compare) || len(ids) != len(want) {
			t.Fatalf("kept %v, want %v in order", ids, want)
		}
		for n := range 60 {
			id := configMap(fmt.Sprint(n))
			value, has := want[id]
			if is := got.Of(id); (is != nil) != has || has && *is != value {
				t.Fatalf("kept of %s: %v, want %v", id, is, value)
			}
		}
	})
}

// A Map has little unused capacity, since maps have millions of objects.
func TestByIDGrowsLittle(t *testing.T) {
	var m Map[int]
	for n := range 1000 {
		m.Put(configMap(fmt.Sprint(n)), n)
		if room := cap(m) - len(m); room > len(m)/3+8 {
			t.Fatalf("room for %d more than %d", room, len(m))
		}
	}
}

func configMap(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "app", Name: name} }
