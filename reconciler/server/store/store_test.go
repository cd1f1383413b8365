package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"pgregory.net/rapid"
)

var things = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}

var began = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

// A coloredSource is a source with a color as its label.
type coloredSource struct {
	name string
	of   *string
}

func (s coloredSource) Key() (string, string) { return "ns", s.name }
func (s coloredSource) Same(old Source) bool  { return s.of == old.(coloredSource).of }
func (s coloredSource) Object() *Object {
	return &Object{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: s.name, Labels: map[string]string{"color": *s.of}}}
}

// A transientSource is a coloredSource whose object is made when it is read.
type transientSource struct{ coloredSource }

func (s transientSource) Same(old Source) bool {
	return s.coloredSource.Same(old.(transientSource).coloredSource)
}
func (s transientSource) Transient() {}

// fill sets the store to a map of names and colors. Unchanged colors are the same pointers.
func fill(s *Store, was map[string]*string, colors map[string]string) map[string]*string {
	is := map[string]*string{}
	var sources []Source
	for _, name := range slices.Sorted(maps.Keys(colors)) {
		color := colors[name]
		if old := was[name]; old != nil && *old == color {
			is[name] = old
		} else {
			is[name] = &color
		}
		source := Source(coloredSource{name, is[name]})
		if name == "a" || name == "c" {
			source = transientSource{source.(coloredSource)}
		}
		sources = append(sources, source)
	}
	s.Replace(things, sources)
	return is
}

// A watchedState is the state that a watcher has derived from its events.
type watchedState struct {
	query  Query
	from   uint64
	colors map[string]string
}

func listState(s *Store, q Query) *watchedState {
	v := &watchedState{query: q, colors: map[string]string{}}
	page := s.List(q, "", "", 0)
	v.from = page.Version
	for _, o := range page.Objects {
		v.colors[o.Name] = o.Labels["color"]
	}
	return v
}

// read processes up to a number of batches of changes.
func (v *watchedState) read(t *rapid.T, s *Store, batches int) {
	for range batches {
		changes, _, err := s.since(v.query, &v.from)
		if err != nil {
			t.Fatalf("since %d: %v", v.from, err)
		}
		if len(changes) == 0 {
			return
		}
		for _, c := range changes {
			_, knew := v.colors[c.Object.Name]
			switch {
			case c.Type == watch.Deleted && !knew:
				t.Fatalf("%s is deleted, and was never there", c.Object.Name)
			case c.Type == watch.Deleted:
				delete(v.colors, c.Object.Name)
			case (c.Type == watch.Added) == knew:
				t.Fatalf("%s is %s, and was there before: %t", c.Object.Name, c.Type, knew)
			default:
				v.colors[c.Object.Name] = c.Object.Labels["color"]
			}
		}
	}
}

// Every watcher, whenever it began and however slow it is, ends up with the state that a list
// returns, and gets only valid events on the way.
func TestWatchesEndWithTheListedState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(began)
		names := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		colors := rapid.SampledFrom([]string{"red", "blue"})
		red, _ := labels.Parse("color=red")
		queries := []Query{{Kind: things}, {Kind: things, Labels: red}}
		views := []*watchedState{}
		was := map[string]*string{}
		for range rapid.IntRange(1, 30).Draw(t, "turns") {
			was = fill(s, was, rapid.MapOfN(names, colors, 0, 4).Draw(t, "colors"))
			if len(views) < 4 {
				views = append(views, listState(s, rapid.SampledFrom(queries).Draw(t, "query")))
			}
			for _, v := range views {
				// A watcher by label that misses several changes of a label may get a deletion
				// of an object it does not have. So all watchers read each turn, or no watcher
				// with a selector does.
				if v.query.Labels != nil || rapid.Bool().Draw(t, "reads") {
					v.read(t, s, 1000)
				}
			}
		}
		for _, v := range views {
			v.read(t, s, 1000)
			if want := listState(s, v.query); !maps.Equal(v.colors, want.colors) || v.from != want.from {
				t.Fatalf("watched %v at %d, listed %v at %d", v.colors, v.from, want.colors, want.from)
			}
		}
	})
}

func TestVersionChangesOnlyWithTheObject(t *testing.T) {
	s := New(began)
	was := fill(s, nil, map[string]string{"a": "red", "b": "red", "d": "red"})
	a, b, d := s.Get(things, "ns", "a"), s.Get(things, "ns", "b"), s.Get(things, "ns", "d")
	fill(s, was, map[string]string{"a": "red", "b": "blue", "d": "red"})
	if now := s.Get(things, "ns", "a"); now == a || now.ResourceVersion != a.ResourceVersion {
		t.Errorf("a was %s and is %s without a change, and is made anew: %t", a.ResourceVersion, now.ResourceVersion, now != a)
	}
	if now := s.Get(things, "ns", "d"); now != d {
		t.Errorf("d was %s and is %s without a change", d.ResourceVersion, now.ResourceVersion)
	}
	now := s.Get(things, "ns", "b")
	if now.version <= b.version || now.Labels["color"] != "blue" {
		t.Errorf("b was version %d, and is %d, %s", b.version, now.version, now.Labels["color"])
	}
}

func TestVersionsIncreaseAcrossRestarts(t *testing.T) {
	before := New(began)
	fill(before, nil, map[string]string{"a": "red", "b": "red", "c": "red"})
	after := New(began.Add(time.Millisecond))
	if before.Version() >= after.Version() {
		t.Errorf("%d before, %d after the restart", before.Version(), after.Version())
	}
	if _, err := after.Watch(t.Context(), Watch{Query: Query{Kind: things}, From: before.Version()}); !errors.Is(err, ErrGone) {
		t.Errorf("a watch from before the restart: %v", err)
	}
	if _, err := after.Watch(t.Context(), Watch{Query: Query{Kind: things}, From: after.Version() + 1}); !errors.Is(err, ErrGone) {
		t.Errorf("a watch from a time to come: %v", err)
	}
}

// The memory kept for watchers does not grow with the number of changes, and only up to a limit
// with deletions.
func TestChangeLogIsBounded(t *testing.T) {
	s := New(began)
	was := map[string]*string{}
	for i := range 3 * maxDeletions {
		was = fill(s, was, map[string]string{"a": fmt.Sprint(i), fmt.Sprintf("b%d", i): "red"})
	}
	k := s.kinds[things]
	if len(k.log) > 4*maxDeletions {
		t.Errorf("%d records for 2 objects", len(k.log))
	}
	from := s.began
	if _, _, err := s.since(Query{Kind: things}, &from); !errors.Is(err, ErrGone) {
		t.Errorf("a watcher from before %d deletions: %v", 3*maxDeletions, err)
	}
	v := listState(s, Query{Kind: things})
	fill(s, was, nil)
	changes, _, err := s.since(Query{Kind: things}, &v.from)
	if err != nil || len(changes) != 2 || changes[0].Type != watch.Deleted {
		t.Errorf("the last deletions: %v, %v", changes, err)
	}
}

// A list in pages has each object exactly once that existed all the time.
func TestPagesHaveEveryObjectOnce(t *testing.T) {
	s := New(began)
	was := fill(s, nil, map[string]string{"a": "red", "b": "red", "c": "red", "d": "red"})
	page := s.List(Query{Kind: things}, "", "", 2)
	if len(page.Objects) != 2 || page.Left != 2 || !page.More {
		t.Fatalf("the first page has %d, and %d are left", len(page.Objects), page.Left)
	}
	fill(s, was, map[string]string{"a": "red", "c": "red", "d": "red"})
	page = s.List(Query{Kind: things}, "ns", page.Objects[1].Name, 2)
	if len(page.Objects) != 2 || page.Objects[0].Name != "c" || page.Left != 0 || page.More {
		t.Errorf("after b, which is gone, comes %s", page.Objects[0].Name)
	}
}

// A countedSource counts how often its object is made.
type countedSource struct {
	coloredSource
	made *int
}

func (s countedSource) Transient() {}
func (s countedSource) Object() *Object {
	*s.made++
	return s.coloredSource.Object()
}

// However many pages a list has, the objects of transient sources are made about once each.
func TestPagesDoNotMakeTheObjectsOfOthers(t *testing.T) {
	s, red, made := New(began), "red", 0
	var sources []Source
	for i := range 400 {
		sources = append(sources, countedSource{coloredSource{fmt.Sprintf("%03d", i), &red}, &made})
	}
	s.Replace(things, sources)
	for name, q := range map[string]Query{"all": {Kind: things}, "selected": {Kind: things, Labels: labels.SelectorFromSet(labels.Set{"color": "red"})}} {
		made = 0
		w, err := s.Watch(t.Context(), Watch{Query: q, Initial: true, Show: func(o *Object) *Object { return o }})
		if err != nil {
			t.Fatal(err)
		}
		for range sources {
			<-w.ResultChan()
		}
		w.Stop()
		if made > 500 {
			t.Errorf("%s: %d objects are made %d times", name, len(sources), made)
		}
	}
}

// A slow watcher does not delay others, and needs little memory.
func TestSlowWatchSkipsVersions(t *testing.T) {
	s := New(began)
	was := fill(s, nil, map[string]string{"a": "0"})
	slow, err := s.Watch(t.Context(), Watch{Query: Query{Kind: things}, From: s.Version(), Show: func(o *Object) *Object { return o }})
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Stop()
	const changes = 1000
	for i := range changes {
		was = fill(s, was, map[string]string{"a": fmt.Sprint(i + 1)})
	}
	told := 0
	for e := range slow.ResultChan() {
		told++
		if e.Object.(*Object).Labels["color"] == fmt.Sprint(changes) {
			break
		}
	}
	if told > changes/2 {
		t.Errorf("who read nothing was told of %d changes", told)
	}
}
