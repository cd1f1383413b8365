package ledger

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger/segment"
)

// A leader notices within a minute that objects of the ledger were deleted, even if it has
// nothing to save. The next save writes the whole ledger.
func TestDeletedObjectsAreWrittenAnew(t *testing.T) {
	isSegment := func(name string) bool { return strings.HasPrefix(name, segment.Prefix) }
	for name, deleted := range map[string]func(string) bool{
		"a segment": func(name string) bool { return isSegment(name) && strings.HasSuffix(name, "-0-0") },
		"all":       func(string) bool { return true },
		"the index": func(name string) bool { return name == indexName },
		"nothing":   func(string) bool { return false },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				objects := newFakeObjects()
				s, _ := openLoaded(t, objects, func() { t.Error("deposed, and nobody else is there") })
				l := bound()
				mustSave(t, s, l)
				l.SetPlacement(api.PlacementKey{Name: "small"}, Placement{Generation: 2})
				if err := s.Save(l); err != nil {
					t.Fatal(err)
				}
				if got := s.Verify(l); len(got) > 0 || l.Unsaved() {
					t.Fatalf("missing %q of what is whole", got)
				}
				var want []string
				for name := range objects.values {
					if deleted(name) {
						want = append(want, name)
						delete(objects.values, name)
					}
				}
				slices.Sort(want)
				if (len(want) == 0) != (name == "nothing") {
					t.Fatalf("deleted %q", want)
				}
				if got := s.Verify(l); len(got) > 0 {
					t.Errorf("listed again at once: %q", got)
				}
				time.Sleep(verifyInterval)
				got := slices.Sorted(slices.Values(s.Verify(l)))
				if !slices.Equal(got, want) || l.Unsaved() != (len(want) > 0) {
					t.Errorf("missing %q, want %q; unsaved: %t", got, want, l.Unsaved())
				}
				objects.fail = func(name string) fault {
					if name == indexName {
						return refuse
					}
					return none
				}
				if err := s.Save(l); len(want) > 0 && err == nil {
					t.Error("saved without the index")
				}
				objects.fail = nil
				if err := s.Save(l); err != nil {
					t.Fatal(err)
				}
				after, err := OpenShared(objects, "two", nil).Load()
				if err != nil || dump(t, after) != dump(t, l) {
					t.Errorf("loaded %v\n%s\nwant\n%s", err, dump(t, after), dump(t, l))
				}
			})
		})
	}
}

// unlistedObjects cannot be listed.
type unlistedObjects struct{ *fakeObjects }

func (unlistedObjects) List() ([]string, error) { return nil, errors.New("no answer") }

// If the objects cannot be listed, they do not count as missing.
func TestUnlistedObjectsAreNotMissing(t *testing.T) {
	objects := newFakeObjects()
	s, _ := openLoaded(t, objects, nil)
	l := bound()
	mustSave(t, s, l)
	s.objects = unlistedObjects{objects}
	if missing := s.Verify(l); len(missing) > 0 || l.Unsaved() {
		t.Errorf("missing %q", missing)
	}
}

// A save that finds the segments of an earlier time, or none, writes everything again, so that the
// next replica reads what this one has saved.
func TestSaveRepairsRestoredAndDamagedSegments(t *testing.T) {
	isSegment := func(name string) bool { return strings.HasPrefix(name, segment.Prefix) }
	for name, harm := range map[string]func(now, before map[string][]byte){
		"restored without deletions": func(now, before map[string][]byte) { maps.Copy(now, before) },
		"restored": func(now, before map[string][]byte) {
			maps.DeleteFunc(now, func(name string, _ []byte) bool { return before[name] == nil })
			maps.Copy(now, before)
		},
		"deleted segments": func(now, _ map[string][]byte) {
			maps.DeleteFunc(now, func(name string, _ []byte) bool { return isSegment(name) })
		},
		"damaged segments": func(now, _ map[string][]byte) {
			for name := range now {
				if isSegment(name) {
					now[name] = []byte("damaged")
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := newFakeObjects()
			s, l := openLoaded(t, objects, func() { t.Error("deposed, and nobody else is there") })
			for n := range 40 {
				l.SetPlacement(api.PlacementKey{Name: fmt.Sprint("placement-", n)}, Placement{Generation: 1})
			}
			mustSave(t, s, l)
			l.SetInForce("c1")
			mustSave(t, s, l)
			before := maps.Clone(objects.values)
			web := api.PlacementKey{Name: "web"}
			l.SetPlacement(web, Placement{Generation: 1})
			l.Bind(web, placement.Binding{Cluster: "east"})
			mustSave(t, s, l)
			harm(objects.values, before)
			for name := range objects.values {
				objects.clock++
				objects.versions[name] = objects.clock // as after any write
			}
			for n := range 4 {
				l.Bind(web, placement.Binding{Cluster: "east", Assigned: placement.Revision{Hash: fmt.Sprint("hash-", n)}})
				if err := s.Save(l); err != nil && n > 0 { // the first one may find the conflict
					t.Fatalf("save %d: %v", n, err)
				}
			}
			_, next := openLoaded(t, objects, func() {})
			if p := next.Placement(web); p == nil || p.Entry("east").Binding.Assigned.Hash != "hash-3" || len(next.Placements()) != 41 || next.InForce() != "c1" {
				t.Errorf("the next replica reads %d placements, %v in force, web %+v", len(next.Placements()), next.InForce(), p)
			}
		})
	}
}
