package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan/ownership"
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
		add("assigned", objectNames(cl.Assigned))
		add("upcoming", objectNames(cl.Upcoming))
		add("early", objectNames(cl.Early))
		add("held", objectNames(cl.Previous))
		maybe := maps.Clone(cl.MaybeOwned)
		maps.DeleteFunc(maybe, func(_ api.ID, asks bool) bool { return !asks })
		add("maybe held", objectNames(maybe))
		if cl.ContentUnknown {
			out = append(out, "content unknown")
		}
		if cl.ReportOnly {
			out = append(out, "reports only")
		}
		if cl.RemovesUnknown {
			out = append(out, "removes unknown content")
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
		"being removed, content unknown": {c: OnCluster{Binding: &placement.Binding{Cluster: "east", Assigned: revisionOne, Unscheduled: true, Removing: true}, work: &work.Work{Remove: true}},
			want: "removes unknown content"},
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
			shared := sharedObjects{map[api.ID]bool{configMap("a"): true, configMap("b"): true}, map[**work.Manifest]map[api.ID]*work.Manifest{}}
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
			cl := shared.claim(&Placement{Key: web, Spec: test.spec}, latest, &test.c, noon)
			if got := text(cl); got != test.want {
				t.Errorf("%s; want %s", got, test.want)
			}
		})
	}
}

// The claim says since when the placement has had its revision, and what the plan changes of that. Without a record or a revision, that is
// since now.
func TestClaimIsComparedWithTheRecord(t *testing.T) {
	since := noon.Add(-time.Hour)
	held := placement.Binding{Cluster: "east", Assigned: revisionOne, AssignedAt: since}
	removing := held
	removing.Removing = true
	for name, test := range map[string]struct {
		before                  *placement.Binding
		now                     placement.Binding
		since                   time.Time
		reassigned, wasRemoving bool
	}{
		"new":                    {nil, held, noon, true, false},
		"the same":               {&held, held, since, false, false},
		"another revision":       {&held, placement.Binding{Cluster: "east", Assigned: revisionTwo, AssignedAt: noon}, since, true, false},
		"the first revision":     {&placement.Binding{Cluster: "east"}, held, noon, true, false},
		"selected again":         {&removing, held, since, true, true},
		"the removal has begun":  {&held, removing, since, false, false},
		"the removal is ongoing": {&removing, removing, since, true, true},
	} {
		c := &OnCluster{Binding: &test.now, Content: noContent}
		if test.before != nil {
			c.Entry = &ledger.Entry{Binding: *test.before}
		}
		cl := sharedObjects{}.claim(&Placement{}, nil, c, noon)
		if !cl.Since.Equal(test.since) || cl.Reassigned != test.reassigned || cl.WasRemoving != test.wasRemoving || cl.Removing != test.now.Removing || !cl.HasRevision {
			t.Errorf("%s: %+v", name, cl.Claim)
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
		"yields an object":               {claim{Claim: ownership.Claim{Outcome: yields("a")}}, &work.Work{Manifests: manifestsOf("a", "b")}, false, "has b, awaits a b"},
		"yields and reports only":        {claim{Claim: ownership.Claim{Outcome: yields("a"), ReportOnly: true}}, &work.Work{Manifests: manifestsOf("a", "b")}, false, "has b"},
		"yields, content unknown":        {claim{Claim: ownership.Claim{Outcome: yields("a"), ContentUnknown: true}}, &work.Work{Manifests: manifestsOf("a", "b")}, false, "has b"},
		"yields while being removed":     {claim{Claim: ownership.Claim{Outcome: yields("a")}}, &work.Work{Remove: true}, false, "removes"},
		"gets an object early":           {claim{Claim: ownership.Claim{Outcome: early, Early: known}}, &work.Work{Manifests: manifestsOf("b")}, false, "has a b"},
		"early, content unknown":         {claim{Claim: ownership.Claim{Outcome: early, ContentUnknown: true}}, &work.Work{Manifests: manifestsOf("b")}, false, "has b, keeps"},
		"early, before a revision":       {claim{Claim: ownership.Claim{Outcome: early, Early: known}}, nil, false, "has a"},
		"early, and paused":              {claim{Claim: ownership.Claim{Outcome: early, Early: known}}, nil, true, "has a, keeps"},
		"early, waiting without content": {claim{Claim: ownership.Claim{Outcome: early, Early: known}, on: &OnCluster{Binding: &placement.Binding{Assigned: revisionOne}}}, &work.Work{Keep: true}, false, "has a, keeps"},
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
