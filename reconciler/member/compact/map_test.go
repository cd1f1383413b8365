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
		for n := range rapid.SampledFrom([]int{0, blockSize, 3 * blockSize}).Draw(t, "objects") { // several blocks
			id := configMap(fmt.Sprintf("more-%d", n*7919%(4*blockSize)))
			got.Put(id, n)
			want[id] = n
		}
		for n := range rapid.IntRange(0, 200).Draw(t, "steps") {
			id := configMap(fmt.Sprint(rapid.SampledFrom([]string{"", "more-"}).Draw(t, "prefix"), rapid.IntRange(0, 60).Draw(t, "name")))
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
			id := configMap(fmt.Sprint("more-", n))
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
		m.Put(configMap(fmt.Sprintf("%04d", n)), n)
		room := -m.Len()
		for _, b := range m.blocks {
			room += cap(b)
		}
		if room > m.Len()/3+8 {
			t.Fatalf("room for %d more than %d", room, m.Len())
		}
	}
}

// No block exceeds its size, whatever the order in which objects come and go, and none is empty: what a
// cluster reports in a bad order would keep its session busy for minutes, and the daemon from stopping.
func TestBlocksStaySmall(t *testing.T) {
	const objects = 20 * blockSize
	for name, at := range map[string]func(n int) int{
		"in order":       func(n int) int { return n },
		"backwards":      func(n int) int { return objects - n },
		"in a bad order": func(n int) int { return n * 7919 % objects },
	} {
		t.Run(name, func(t *testing.T) {
			var m Map[int]
			check := func(want int) {
				t.Helper()
				found := 0
				for _, b := range m.blocks {
					if found += len(b); len(b) == 0 || len(b) > blockSize {
						t.Fatalf("a block has %d of %d objects", len(b), m.Len())
					}
				}
				if found != want || m.Len() != want || len(m.blocks) > 1+2*objects/blockSize {
					t.Fatalf("%d and %d objects in %d blocks, want %d", found, m.Len(), len(m.blocks), want)
				}
			}
			for n := range objects {
				m.Put(configMap(fmt.Sprintf("%06d", at(n))), n)
			}
			check(objects)
			for n := range objects {
				if n%3 == 0 {
					m.Drop(configMap(fmt.Sprintf("%06d", at(n))))
				}
			}
			check(objects - (objects+2)/3)
			m.DropFunc(func(_ api.ID, n *int) bool { return *n > 10 })
			check(7)
		})
	}
}

func configMap(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "app", Name: name} }
