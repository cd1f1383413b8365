package ledger

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A leader notices within a minute that objects of the ledger were deleted, even if it has
// nothing to save. The next save writes the whole ledger.
func TestDeletedObjectsAreWrittenAnew(t *testing.T) {
	isSegment := func(name string) bool { return strings.HasPrefix(name, segmentPrefix) }
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
