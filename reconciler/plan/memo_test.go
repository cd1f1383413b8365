package plan

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// The renderer of the last commit is reused if the placement selects the same objects and the
// overrides are the same.
func TestRenderersAreReused(t *testing.T) {
	web := api.PlacementKey{Name: "web"}
	const base = "clusters east/region=eu\nnamespace web\nconfigmap web/one a\nplace web\n"
	for name, test := range map[string]struct {
		text   string
		key    api.PlacementKey
		reused bool
	}{
		"the same content":  {base + "namespace other\n", web, true},
		"a new policy":      {"clusters east/region=eu\nnamespace web\nconfigmap web/one a\nplace web pick 1\n", web, true},
		"another object":    {base + "configmap web/two a\n", web, false},
		"an override":       {base + "override web/one to b on eu\n", web, false},
		"another name":      {"clusters east/region=eu\nnamespace web\nconfigmap web/one a\nplace shop of web\n", api.PlacementKey{Name: "shop"}, false},
		"invalid selectors": {"clusters east/region=eu\nnamespace web\nconfigmap web/one a\nnamespace other\nwidget other/one\nplace web broken\n", web, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			known := map[api.ID]*api.Object{}
			load := func(commit, text string) *hub.Snapshot {
				s.commit(commit, nil, []byte(text))
				for i, o := range s.in.InForce.Objects { // as in Git, equal files give the same objects
					if old := known[o.ID]; old != nil && old.Hash == o.Hash {
						s.in.InForce.Objects[i] = old
					}
					known[o.ID] = s.in.InForce.Objects[i]
				}
				return s.in.InForce
			}
			m := NewMemo()
			m.setInForce(load("v1", base))
			before := m.prepare(m.inForce.Snapshot, web)
			m.setInForce(load("v2", test.text))
			now := m.prepare(m.inForce.Snapshot, test.key)
			if reused := now.renderer == before.renderer; reused != test.reused {
				t.Errorf("reused: %t, want %t", reused, test.reused)
			}
			if invalid := now.selection.Invalid != ""; invalid != (now.renderer == nil) {
				t.Errorf("invalid: %t, with renderer %v", invalid, now.renderer)
			}
			m.setInForce(load("v3", base))
			if again := m.prepare(m.inForce.Snapshot, web); again.renderer.Hash() != before.renderer.Hash() {
				t.Errorf("back at the first content, its hash is %s, not %s", again.renderer.Hash(), before.renderer.Hash())
			}
		})
	}
}

// A placement that is renamed while its selectors are invalid has no content under the new key
// until they are valid.
func TestRenamedPlacementWithInvalidSelectors(t *testing.T) {
	s := newScene(t)
	m, shop := NewMemo(), api.PlacementKey{Name: "shop"}
	for i, step := range []struct {
		place    string
		key      api.PlacementKey
		rendered bool
	}{
		{"place web", api.PlacementKey{Name: "web"}, true},
		{"place shop of web broken", shop, false},
		{"place shop of web", shop, true},
		{"place shop of web broken", shop, false},
		{"place shop of web", shop, true},
	} {
		s.commit(string(rune('a'+i)), nil, []byte("clusters east\nnamespace web\nnamespace other\nwidget other/one\n"+step.place+"\n"))
		m.setInForce(s.in.InForce)
		if p := m.prepare(s.in.InForce, step.key); (p.renderer != nil) != step.rendered || p.key != step.key {
			t.Errorf("%d, %s: rendered: %t, for %s", i, step.place, p.renderer != nil, p.key)
		}
	}
}

// A result is used again until its wake time, until a commit that it needs is loaded or turns out to
// be lost, and while none of its clusters has changed. A result after a panic is never used again.
func TestStillValid(t *testing.T) {
	some := &hub.Snapshot{}
	for name, test := range map[string]struct {
		r      result
		in     Input
		change func(*planner)
		want   bool
	}{
		"unchanged":                   {want: true},
		"before its wake time":        {r: result{wake: noon.Add(time.Second)}, want: true},
		"at its wake time":            {r: result{wake: noon}},
		"a commit is being loaded":    {r: result{missing: map[string]commitState{"v1": commitLoading}}, in: Input{Past: map[string]*hub.Snapshot{"v2": some}}, want: true},
		"the commit is loaded":        {r: result{missing: map[string]commitState{"v1": commitLoading}}, in: Input{Past: map[string]*hub.Snapshot{"v1": some}}},
		"the commit is lost":          {r: result{missing: map[string]commitState{"v1": commitLoading}}, in: Input{Lost: map[string]error{"v1": errors.New("gone")}}},
		"a commit was lost":           {r: result{missing: map[string]commitState{"v1": commitLost}}, in: Input{Lost: map[string]error{"v1": errors.New("gone")}}, want: true},
		"the lost commit is loaded":   {r: result{missing: map[string]commitState{"v1": commitLost}}, in: Input{Past: map[string]*hub.Snapshot{"v1": some}}},
		"its cluster has changed":     {change: func(pl *planner) { pl.memo.members.Changed = []string{"east"} }},
		"another cluster has changed": {change: func(pl *planner) { pl.memo.members.Changed = []string{"west"} }, want: true},
		"its cluster is paused":       {change: func(pl *planner) { pl.pauseChanged = []string{"east"} }},
		"planning it panicked":        {r: result{placement: &Placement{InternalError: "internal error"}}},
	} {
		if test.r.placement == nil {
			test.r.placement = &Placement{Clusters: on("east")}
		}
		test.in.Now, test.in.InForce = noon, some
		pl := &planner{Input: test.in, memo: NewMemo()}
		if test.change != nil {
			test.change(pl)
		}
		if got := pl.stillValid(&test.r); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// Placements with the same decisions share them. A decision that differs in anything is another one.
func TestEqualDecisionsAreShared(t *testing.T) {
	decisions := func(change func(*placement.Decision)) []placement.Decision {
		all := []placement.Decision{{Cluster: "east", Reason: "picked", Score: &placement.Score{Affinity: 1}, Selected: true}, {Cluster: "west", Reason: "tainted"}}
		change(&all[0])
		return all
	}
	same := func(*placement.Decision) {}
	for name, change := range map[string]func(*placement.Decision){
		"score": func(d *placement.Decision) { d.Score = &placement.Score{Affinity: 2} }, "no score": func(d *placement.Decision) { d.Score = nil },
		"reason": func(d *placement.Decision) { d.Reason = "kept" }, "selection": func(d *placement.Decision) { d.Selected = false },
	} {
		m := NewMemo()
		first := m.sharedDecisions(decisions(same))
		if got := m.sharedDecisions(decisions(change)); !slices.EqualFunc(got, decisions(change), sameDecision) {
			t.Errorf("with another %s: %+v", name, got)
		}
		if !ledger.Identical(m.sharedDecisions(decisions(same)), first) {
			t.Error("equal decisions are not shared")
		}
	}
}

// A variable that a placement does not use leaves its renderer as it is, and one that it uses does not.
func TestRenderersAreReusedWithVariables(t *testing.T) {
	s, web := newScene(t), api.PlacementKey{Name: "web"}
	s.commit("v1", nil, []byte("clusters east/region=eu\nnamespace web\nconfigmap web/one ${vars.size}\nplace web\n"))
	first := s.in.InForce
	first.Placements[0].Annotations = map[string]string{api.SubstituteAnnotation: api.SubstituteEnabled}
	with := func(hash, size, unused string) *hub.Snapshot {
		snapshot := *first
		snapshot.Variables = &api.Variables{Hash: hash, Vars: []*api.ClusterVars{{Spec: api.ClusterVarsSpec{Vars: map[string]string{"size": size, "unused": unused}}}}}
		return &snapshot
	}
	m := NewMemo()
	m.setInForce(with("1", "3", "a"))
	before := m.prepare(m.inForce.Snapshot, web)
	m.setInForce(with("2", "3", "b"))
	if m.prepare(m.inForce.Snapshot, web) != before {
		t.Error("a variable that nothing uses renders the placement again")
	}
	m.setInForce(with("3", "4", "b"))
	if m.prepare(m.inForce.Snapshot, web) == before {
		t.Error("another value does not render the placement again")
	}
}
