package ledger

import (
	"iter"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

func configMap(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "web", Name: name} }

// contents returns ConfigMaps by name. The part of a content after a slash does not belong to
// the spec.
func contents(of map[string]string) iter.Seq2[api.ID, DeclaredHashes] {
	return func(yield func(api.ID, DeclaredHashes) bool) {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if !yield(configMap(name), DeclaredHashes{Hash: of[name], Spec: of[name][:1]}) {
				return
			}
		}
	}
}

// The creation time and the generation of an object are known, also after a restart. An object
// that is removed and added again is a new one.
func TestDeclaredIsRemembered(t *testing.T) {
	s := Memory()
	l := New()
	step := func(minute int, of map[string]string) {
		t.Helper()
		l.Declare(v(minute).Commit, at(minute), contents(of))
		err := s.Save(l)
		if err == nil {
			l, err = s.Load()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	step(1, map[string]string{"a": "1", "b": "1"})
	step(2, map[string]string{"a": "2", "b": "1/x", "c": "1"})
	step(3, map[string]string{"a": "2", "c": "1"})
	before := l.Declared()
	step(3, map[string]string{"a": "2", "c": "1"})
	step(4, map[string]string{"a": "2", "b": "1/x", "c": "1"})
	for name, want := range map[string]Declared{
		"a": {at(1), v(2).Commit, 2, DeclaredHashes{"2", "2"}},
		"b": {at(4), v(4).Commit, 1, DeclaredHashes{"1/x", "1"}},
		"c": {at(2), v(2).Commit, 1, DeclaredHashes{"1", "1"}},
	} {
		if got := l.Declared()[configMap(name)]; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if len(before) != 2 {
		t.Errorf("what was handed out has changed: %v", before)
	}
}

// Changes outside of the spec do not change the generation, and what has not changed is not
// saved.
func TestDeclaredCountsChangesOfTheSpec(t *testing.T) {
	s, l := Memory(), New()
	l.Declare("v1", at(1), contents(map[string]string{"a": "1/x", "b": "1"}))
	if err := s.Save(l); err != nil {
		t.Fatal(err)
	}
	l.Declare("v2", at(2), contents(map[string]string{"a": "1/y", "b": "1"}))
	if got := l.Declared()[configMap("a")]; got.Generation != 1 || got.Commit != "v2" || !got.Created.Equal(at(1)) {
		t.Errorf("after another label: %+v", got)
	}
	if len(l.dirty) != 1 {
		t.Errorf("%d records are to be saved after one change", len(l.dirty))
	}
	l.Declare("v3", at(3), func(yield func(api.ID, DeclaredHashes) bool) { yield(configMap("b"), DeclaredHashes{Hash: "2"}) })
	if got := l.Declared()[configMap("b")]; got.Generation != 2 || len(l.Declared()) != 1 {
		t.Errorf("after another content without a spec: %+v", got)
	}
}

// The map of records stays the same until a record is added, changed or removed.
func TestDeclaredStaysTheSameMap(t *testing.T) {
	l := New()
	for _, step := range []struct {
		name string
		of   map[string]string
		same bool
	}{
		{"nothing is declared", nil, true},
		{"two are added", map[string]string{"a": "1", "b": "1"}, false},
		{"the same two", map[string]string{"a": "1", "b": "1"}, true},
		{"one has changed", map[string]string{"a": "1", "b": "2"}, false},
		{"one is removed", map[string]string{"a": "1"}, false},
		{"one is replaced", map[string]string{"b": "1"}, false},
	} {
		before := reflect.ValueOf(l.Declared()).Pointer()
		l.Declare("v1", at(1), contents(step.of))
		if same := reflect.ValueOf(l.Declared()).Pointer() == before; same != step.same {
			t.Errorf("%s: the same map: %t, want %t", step.name, same, step.same)
		}
	}
}
