package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// objectNames lists the names of objects, sorted.
func objectNames[V any](objects map[api.ID]V) string {
	var names []string
	for id := range objects {
		names = append(names, id.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// The claim of a placement on a cluster has the shared objects of its assigned, upcoming and earlier
// content. Of the objects "a", "b" and "c", the last is not shared.
func TestClaim(t *testing.T) {
	content := func(hash string, names ...string) *work.Rendered {
		return &work.Rendered{Hash: hash, Manifests: manifestsOf(names...)}
	}
	web, shop := api.PlacementKey{Name: "web"}, api.PlacementKey{Name: "shop"}
	assigned := placement.Binding{Cluster: "east", Assigned: revisionOne}
	text := func(cl *claim) string {
		var out []string
		add := func(what, names string) {
			if names != "" {
				out = append(out, what+" "+names)
			}
		}
		add("assigned", objectNames(cl.assigned))
		add("upcoming", objectNames(cl.upcoming))
		add("early", objectNames(cl.early))
		add("held", objectNames(cl.held))
		maybe := maps.Clone(cl.maybeHeld)
		maps.DeleteFunc(maybe, func(_ api.ID, asks bool) bool { return !asks })
		add("maybe held", objectNames(maybe))
		if cl.contentUnknown {
			out = append(out, "content unknown")
		}
		if cl.reportOnly {
			out = append(out, "reports only")
		}
		return strings.Join(out, ", ")
	}
	for name, test := range map[string]struct {
		spec *hub.Placement
		c    OnCluster
		want string
	}{
		"latest content": {c: OnCluster{Binding: &assigned, latest: &revisionOne, Content: content("1", "a", "c"), work: &work.Work{Revision: revisionOne, Manifests: manifestsOf("a", "c")}},
			want: "assigned a"},
		"waiting for new content": {c: OnCluster{Binding: &assigned, latest: &revisionTwo, Content: content("2", "b", "c"), PreviousContent: content("1", "a"), work: &work.Work{Revision: revisionOne, Manifests: manifestsOf("a")}},
			want: "assigned a, upcoming b"},
		"assigned new content": {c: OnCluster{Binding: &placement.Binding{Cluster: "east", Assigned: revisionTwo}, latest: &revisionTwo, Content: content("2", "b"), PreviousContent: content("1", "a"), work: &work.Work{Revision: revisionTwo, Manifests: manifestsOf("b")}},
			want: "assigned b, held a"},
		"being removed": {c: OnCluster{Binding: &placement.Binding{Cluster: "east", Assigned: revisionOne, Unscheduled: true, Removing: true}, PreviousContent: content("1", "a"), work: &work.Work{Remove: true}},
			want: "held a"},
		"not released": {c: OnCluster{Binding: &placement.Binding{Cluster: "east"}, latest: &revisionTwo, Content: content("2", "b")},
			want: "upcoming b"},
		"assigned early": {c: OnCluster{Binding: &assigned, latest: &revisionTwo, Content: content("2", "b"), work: &work.Work{Revision: revisionOne, Manifests: manifestsOf("a")}, Circumstances: &Circumstances{Deviation: ledger.Deviation{Early: []api.ID{configMap("a"), configMap("b")}}}},
			want: "assigned a, upcoming b, early b"},
		"not rendered": {c: OnCluster{Binding: &assigned, latest: &revisionTwo, Err: errors.New("bad patch"), work: &work.Work{Revision: revisionOne, Manifests: manifestsOf("a")}},
			want: "assigned a, content unknown"},
		"assigned content is not known": {c: OnCluster{Binding: &assigned, latest: &revisionOne, Content: content("1", "a"), work: &work.Work{Revision: revisionOne, Keep: true}},
			want: "maybe held a b"},
		"it is not known, and one object is left to another placement": {
			c:    OnCluster{Binding: &assigned, latest: &revisionOne, Content: content("1", "a"), work: &work.Work{Revision: revisionOne, Keep: true}, Circumstances: &Circumstances{Deviation: ledger.Deviation{Yields: []ledger.Yield{{ID: configMap("b"), To: shop}}}}},
			want: "maybe held a"},
		"ReportDiff": {spec: &hub.Placement{Spec: api.PlacementSpec{Strategy: api.RolloutStrategy{ApplyStrategy: &api.ApplyStrategy{Type: api.ReportDiff}}}},
			c: OnCluster{Binding: &assigned, latest: &revisionOne, Content: content("1", "a"), work: &work.Work{Revision: revisionOne, Manifests: manifestsOf("a")}}, want: "assigned a, reports only"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResolver()
			r.shared = map[api.ID]bool{configMap("a"): true, configMap("b"): true}
			test.c.Entry = &ledger.Entry{Binding: assigned}
			if test.spec == nil {
				test.spec = &hub.Placement{}
			}
			latest := &prepared{renderer: work.NewRenderer(web, nil, nil, nil, nil)}
			if test.c.work != nil && test.c.work.Keep {
				m := NewMemo()
				m.setInForce(snapshot(t, "clusters east\nnamespace web\nconfigmap web/a\nconfigmap web/b\nconfigmap web/c\nplace web\n"))
				latest = m.prepare(m.inForce.Snapshot, web)
			}
			cl := r.claim(&Placement{Key: web, Spec: test.spec}, latest, &test.c)
			if got := text(cl); got != test.want {
				t.Errorf("%s; want %s", got, test.want)
			}
		})
	}
}

// If the content of a placement on a cluster is not known, the objects that others left to it there
// are assumed to be its objects. If it is being removed, they may be removed already.
func TestGuessHeld(t *testing.T) {
	web := api.PlacementKey{Name: "web"}
	other := func(to string) *claim {
		return &claim{on: &OnCluster{Circumstances: &Circumstances{Deviation: ledger.Deviation{Yields: []ledger.Yield{{ID: configMap("a"), To: api.PlacementKey{Name: to}}}}}}}
	}
	for name, test := range map[string]struct {
		maybeHeld     map[api.ID]bool
		c             OnCluster
		to            string
		held, removed string
	}{
		"known content":                {nil, OnCluster{work: &work.Work{}}, "web", "", ""},
		"unknown content":              {map[api.ID]bool{configMap("b"): true}, OnCluster{work: &work.Work{Keep: true}}, "web", "a b", ""},
		"left to a third placement":    {map[api.ID]bool{configMap("b"): true}, OnCluster{work: &work.Work{Keep: true}}, "shop", "b", ""},
		"being removed, unknown":       {nil, OnCluster{work: &work.Work{Remove: true}}, "web", "", "a"},
		"being removed, known content": {nil, OnCluster{work: &work.Work{Remove: true}, PreviousContent: &work.Rendered{}}, "web", "", ""},
		"no work":                      {nil, OnCluster{}, "web", "", ""},
	} {
		cl := &claim{key: web, on: &test.c, maybeHeld: test.maybeHeld}
		cl.guessHeld([]*claim{cl, other(test.to)})
		if held, removed := objectNames(cl.maybeHeld), objectNames(cl.maybeRemoved); held != test.held || removed != test.removed {
			t.Errorf("%s: held %q, removed %q, want %q and %q", name, held, removed, test.held, test.removed)
		}
	}
}

// A conflict is described by its first object, cluster-scoped ones first, and its first cluster, with
// the numbers of the others.
func TestConflictExtentText(t *testing.T) {
	namespace := api.ID{Kind: "Namespace", Name: "web"}
	for want, test := range map[string]struct {
		ids      []api.ID
		clusters []string
	}{
		"ConfigMap/web/a on east":                                      {[]api.ID{configMap("a")}, []string{"east"}},
		"ConfigMap/web/a and 1 more object on east and 1 more cluster": {[]api.ID{configMap("b"), configMap("a")}, []string{"west", "east"}},
		"Namespace/web and 2 more objects on a and 3 more clusters":    {[]api.ID{configMap("b"), configMap("a"), namespace}, []string{"d", "c", "b", "a"}},
	} {
		e := &conflictExtent{map[api.ID]bool{}, map[string]bool{}}
		for _, id := range test.ids {
			e.ids[id] = true
		}
		for _, c := range test.clusters {
			e.clusters[c] = true
		}
		if got := e.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Both placements of a conflict have a warning with the position of the other one, sorted by the
// owner.
func TestConflictWarnings(t *testing.T) {
	a, b, c := api.PlacementKey{Name: "a"}, api.PlacementKey{Name: "b"}, api.PlacementKey{Name: "c"}
	r := newResolver()
	r.planner.memo.setInForce(snapshot(t, "clusters east\nnamespace web\nplace a of web\nplace b of web\nplace c of web\n"))
	extent := &conflictExtent{map[api.ID]bool{configMap("one"): true}, map[string]bool{"east": true}}
	r.conflicts = map[conflict]*conflictExtent{{a, b}: extent, {b, c}: extent, {api.PlacementKey{Name: "gone"}, b}: extent}
	const (
		owns   = " selects ConfigMap/web/one on east as well; this placement has what both select, and keeps it: let one of the two select it"
		yields = " has ConfigMap/web/one on east, which this placement selects as well and leaves to it: let one of the two select it"
	)
	for key, want := range map[api.PlacementKey][]string{
		a: {"crp/b (placement-b.yaml:1)" + owns},
		b: {"crp/a (placement-a.yaml:1)" + yields, "crp/c (placement-c.yaml:1)" + owns, "crp/gone" + yields},
		c: {"crp/b (placement-b.yaml:1)" + yields},
	} {
		var got []string
		for _, w := range r.conflictWarnings(&Placement{Key: key, Spec: r.planner.memo.spec(key)}) {
			if w.Origin != r.planner.memo.spec(key).Origin || w.Field != "spec.resourceSelectors" {
				t.Errorf("%s has the warning at %v, %s", key, w.Origin, w.Field)
			}
			got = append(got, w.Message)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant:\n%s", key, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// The work after the resolution leaves out yielded objects, adds early ones in canonical order, and
// awaits the latest content.
func TestWorkAfterResolution(t *testing.T) {
	shop := api.PlacementKey{Name: "shop"}
	yields := func(name string) ledger.Deviation {
		return ledger.Deviation{Yields: []ledger.Yield{{ID: configMap(name), To: shop}}}
	}
	early := ledger.Deviation{Early: []api.ID{configMap("a")}}
	latest := &work.Rendered{Hash: "2", Manifests: manifestsOf("a", "b")}
	known := map[api.ID]*work.Manifest{configMap("a"): manifestsOf("a")[0]}
	for name, test := range map[string]struct {
		cl     claim
		work   *work.Work
		paused bool
		want   string
	}{
		"yields an object":               {claim{outcome: yields("a")}, &work.Work{Manifests: manifestsOf("a", "b")}, false, "has b, awaits a b"},
		"yields and reports only":        {claim{outcome: yields("a"), reportOnly: true}, &work.Work{Manifests: manifestsOf("a", "b")}, false, "has b"},
		"yields, content unknown":        {claim{outcome: yields("a"), contentUnknown: true}, &work.Work{Manifests: manifestsOf("a", "b")}, false, "has b"},
		"yields while being removed":     {claim{outcome: yields("a")}, &work.Work{Remove: true}, false, "removes"},
		"gets an object early":           {claim{outcome: early, early: known}, &work.Work{Manifests: manifestsOf("b")}, false, "has a b"},
		"early, content unknown":         {claim{outcome: early, contentUnknown: true}, &work.Work{Manifests: manifestsOf("b")}, false, "has b, keeps"},
		"early, before a revision":       {claim{outcome: early, early: known}, nil, false, "has a"},
		"early, and paused":              {claim{outcome: early, early: known}, nil, true, "has a, keeps"},
		"early, waiting without content": {claim{outcome: early, early: known, on: &OnCluster{Binding: &placement.Binding{Assigned: revisionOne}}}, &work.Work{Keep: true}, false, "has a, keeps"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := test.cl
			if cl.on == nil {
				cl.on = &OnCluster{Binding: &placement.Binding{}}
			}
			cl.on.Content, cl.on.work = latest, test.work
			cl.claimant = &Placement{Spec: &hub.Placement{}}
			before := fmt.Sprintf("%+v", test.work)
			if got := describeContent(cl.finalWork(test.paused)); got != test.want {
				t.Errorf("%s; want %s", got, test.want)
			}
			if after := fmt.Sprintf("%+v", test.work); after != before {
				t.Errorf("the work before has changed to %s", after)
			}
		})
	}
}
