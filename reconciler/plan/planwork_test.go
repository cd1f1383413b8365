package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// The work of a cluster has the assigned content if it is known, and otherwise keeps the objects
// there. Until the rollout reaches the cluster, the objects of the latest content are awaited.
func TestPlanWork(t *testing.T) {
	contentOf := func(hash string, names ...string) *work.Rendered {
		return &work.Rendered{Hash: hash, Manifests: manifestsOf(names...)}
	}
	removing := func(c *OnCluster) { c.Binding.Unscheduled, c.Binding.Removing = true, true }
	waits := func(c *OnCluster) { c.Binding.Assigned = revisionOne }
	reportDiff := func(p *Placement) {
		p.Spec.Spec.Strategy.ApplyStrategy = &api.ApplyStrategy{Type: api.ReportDiff}
		p.Record.Abandon = true
	}
	deleted := func(p *Placement) { p.Spec = nil }
	for name, test := range map[string]struct {
		p      func(*Placement)
		change func(*OnCluster)
		paused bool
		want   string
	}{
		"latest content":                      {want: "has a b"},
		"paused":                              {paused: true, want: "has a b, keeps"},
		"not rendered":                        {change: func(c *OnCluster) { c.Err = errors.New("bad patch") }, want: "keeps"},
		"no content":                          {change: func(c *OnCluster) { c.Content = &work.Rendered{}; c.SetLatest(c.Binding.Assigned) }, want: "keeps"},
		"waiting, known":                      {change: func(c *OnCluster) { waits(c); c.PreviousContent = contentOf("1", "b", "c") }, want: "has b c, awaits a b"},
		"waiting, same objects":               {change: func(c *OnCluster) { waits(c); c.PreviousContent = contentOf("1", "a", "b") }, want: "has a b"},
		"waiting, not known":                  {change: waits, want: "keeps, awaits a b"},
		"waiting, other content is known":     {change: func(c *OnCluster) { waits(c); c.PreviousContent = contentOf("0", "c") }, want: "keeps, awaits a b"},
		"waiting at proven content":           {change: func(c *OnCluster) { waits(c); c.Circumstances = &Circumstances{provenContent: contentOf("1", "c")} }, want: "has c, awaits a b"},
		"waiting, latest is not rendered":     {change: func(c *OnCluster) { waits(c); c.Err = errors.New("bad patch") }, want: "keeps"},
		"waiting, ReportDiff":                 {p: reportDiff, change: waits, want: "keeps, abandons"},
		"not released":                        {change: func(c *OnCluster) { c.Binding.Assigned = placement.Revision{} }, want: "keeps, awaits a b"},
		"not released, ReportDiff":            {p: reportDiff, change: func(c *OnCluster) { c.Binding.Assigned = placement.Revision{} }, want: "none"},
		"not released, nothing to wait for":   {change: func(c *OnCluster) { c.Binding.Assigned, c.Content = placement.Revision{}, &work.Rendered{} }, want: "none"},
		"no longer selected, not removed yet": {change: func(c *OnCluster) { waits(c); c.Binding.Unscheduled, c.PreviousContent = true, contentOf("1", "c") }, want: "has c"},
		"removed":                             {change: removing, want: "removes"},
		"removed while paused":                {change: removing, paused: true, want: "keeps"},
		"removed, ReportDiff":                 {p: reportDiff, change: removing, want: "removes, abandons"},
		"removed with an abandoning strategy": {p: func(p *Placement) { p.Record.Abandon = true }, change: removing, want: "removes"},
		"deleted":                             {p: deleted, change: removing, want: "removes"},
		"deleted, and abandons":               {p: func(p *Placement) { deleted(p); p.Record.Abandon = true }, change: removing, want: "removes, abandons"},
		"suspended":                           {change: func(c *OnCluster) { c.Circumstances = &Circumstances{Suspended: "suspended by alice"} }, want: "has a b, suspended by alice"},
		"deletions are allowed":               {change: func(c *OnCluster) { c.Binding.AllowDelete = true }, want: "has a b, may delete"},
		"deletions of the latest content are": {p: func(p *Placement) { p.Record.AllowedContent = "x" }, want: "has a b, may delete"},
		"but not of earlier content":          {p: func(p *Placement) { p.Record.AllowedContent = "x" }, change: waits, want: "keeps, awaits a b"},
		"nor a removal":                       {p: func(p *Placement) { p.Record.AllowedContent = "x" }, change: removing, want: "removes"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Placement{Key: api.PlacementKey{Name: "web"}, Spec: &hub.Placement{}}
			if test.p != nil {
				test.p(p)
			}
			b := placement.Binding{Cluster: "east", Assigned: revisionTwo}
			c := &OnCluster{Binding: &b, Entry: &ledger.Entry{Binding: b}, latest: &revisionTwo, Content: contentOf("2", "a", "b")}
			if test.change != nil {
				test.change(c)
			}
			pl := &placementPlanner{
				planner: &planner{Input: Input{Ledger: ledger.New()}, memo: NewMemo()},
				current: &result{placement: p},
			}
			if test.paused {
				pl.planner.paused = map[string]string{"east": "v1"}
			}
			w := pl.planWork(p, c, &work.Work{})
			if got := describeContent(w); got != test.want {
				t.Errorf("%s; want %s", got, test.want)
			}
			if w != nil && (w.Revision != c.Binding.Assigned || c.DeleteAllowed != w.AllowDelete) {
				t.Errorf("revision %v, deletions are allowed: %t and %t", w.Revision, w.AllowDelete, c.DeleteAllowed)
			}
		})
	}
}

// describeContent describes what a member does for a work.
func describeContent(w *work.Work) string {
	if w == nil {
		return "none"
	}
	var out []string
	add := func(is bool, what string) {
		if is {
			out = append(out, what)
		}
	}
	add(len(w.Manifests) > 0, "has "+namesOf(w.Manifests))
	add(w.Keep, "keeps")
	add(w.Remove, "removes")
	add(len(w.Awaited) > 0, "awaits "+namesOf(w.Awaited))
	add(w.Abandon && (w.Remove || w.Strategy.Type == api.ReportDiff), "abandons")
	add(w.Suspended != "", w.Suspended)
	add(w.AllowDelete, "may delete")
	return strings.Join(out, ", ")
}

// The holds of a work are those of the deletions that it can cause: of objects that are no longer
// in the content, of the last objects, of a removal, or of a renamed placement.
func TestDeletionBlocksOfAWork(t *testing.T) {
	prepare := func(text string, key api.PlacementKey) *prepared {
		m := NewMemo()
		m.setInForce(snapshot(t, text))
		return m.prepare(m.inForce.Snapshot, key)
	}
	key := api.PlacementKey{Name: "web"}
	now := prepare("clusters east\nnamespace web\nplace web\n", key)
	const guarded = "deleting a Namespace deletes everything in it; deleting a CustomResourceDefinition deletes all objects of its kind; deleting a PersistentVolumeClaim can delete its data"
	unmatched := func(p *Placement) {
		p.Spec = &hub.Placement{Spec: api.PlacementSpec{ResourceSelectors: []api.ResourceSelectorTerm{{Kind: "Secret"}}}}
		p.Selection.Unmatched = []int{0}
	}
	renamed := func(p *Placement) { p.Spec, p.Record.Into = nil, api.PlacementKey{Name: "shop"} }
	successor := func(clusters ...*OnCluster) *result {
		p := &Placement{Spec: &hub.Placement{}, Request: &placement.Request{}, Clusters: clusters}
		return &result{placement: p, resultKey: resultKey{prepared: now}}
	}
	for name, test := range map[string]struct {
		p         func(*Placement)
		w         work.Work
		successor *result
		// unreadable are documents of the commit that cannot be decrypted.
		unreadable []api.Origin
		want       string
	}{
		"content beside a document that cannot be decrypted": {w: work.Work{Manifests: manifestsOf("a")}, unreadable: []api.Origin{{Path: "a.sops.yaml", Line: 1}},
			want: "a.sops.yaml:1 is encrypted as a whole and cannot be decrypted, and may have this object; " + guarded},
		"renamed, beside one": {p: renamed, w: work.Work{Remove: true}, successor: successor(on("east")...), unreadable: []api.Origin{{Path: "a.sops.yaml"}},
			want: "a.sops.yaml is encrypted as a whole and cannot be decrypted, and may have this object; " + guarded},
		"allowed beside one":                    {w: work.Work{AllowDelete: true, Manifests: manifestsOf("a")}, unreadable: []api.Origin{{Path: "a.sops.yaml"}}},
		"content":                               {w: work.Work{Manifests: manifestsOf("a")}, want: guarded},
		"content, one selector matches nothing": {p: unmatched, w: work.Work{Manifests: manifestsOf("a")}, want: "spec.resourceSelectors[0] (Secret) matches nothing, and may have selected it before; " + guarded},
		"no content":                            {want: "nothing is left of the placement's content"},
		"no content, nothing matches":           {p: unmatched, want: "the placement selects nothing: spec.resourceSelectors[0] (Secret) matches nothing"},
		"allowed":                               {w: work.Work{AllowDelete: true, Manifests: manifestsOf("a")}},
		"kept":                                  {w: work.Work{Keep: true}},
		"removed from the last cluster":         {w: work.Work{Remove: true}, want: "the placement has no cluster left"},
		"deleted":                               {p: func(p *Placement) { p.Spec = nil }, w: work.Work{Remove: true}},
		"renamed":                               {p: renamed, w: work.Work{Remove: true}, successor: successor(on("east")...), want: guarded},
		"renamed, and on no cluster":            {p: renamed, w: work.Work{Remove: true}, successor: successor(on("east-")...), want: "the placement has no cluster left"},
		"renamed to a deleted one":              {p: renamed, w: work.Work{Remove: true}, successor: &result{placement: &Placement{}}, want: guarded},
		"renamed to an unknown one":             {p: renamed, w: work.Work{Remove: true}, want: guarded},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Placement{Key: key, Spec: &hub.Placement{}, Clusters: on("east-")}
			if test.p != nil {
				test.p(p)
			}
			pl := &placementPlanner{planner: &planner{Input: Input{Ledger: ledger.New(), InForce: &hub.Snapshot{Unreadable: test.unreadable}}}, current: &result{resultKey: resultKey{prepared: now, successor: test.successor}}}
			if got := reasons(pl.deletionBlocksFor(p, "east", &test.w)); got != test.want {
				t.Errorf("held because %q\nwant %q", got, test.want)
			}
		})
	}
}

// A commit that allows deletions under the new key of a renamed placement allows them under the
// earlier key, on clusters that are assigned the latest content.
func TestSuccessorAllowsDeletions(t *testing.T) {
	cluster := func(change func(*OnCluster)) *OnCluster {
		c := &OnCluster{Binding: &placement.Binding{Cluster: "east", Assigned: revisionTwo}, latest: &revisionTwo, DeleteAllowed: true}
		change(c)
		return c
	}
	for name, test := range map[string]struct {
		on   *OnCluster
		want bool
	}{
		"allowed":            {cluster(func(*OnCluster) {}), true},
		"not allowed":        {cluster(func(c *OnCluster) { c.DeleteAllowed = false }), false},
		"being removed":      {cluster(func(c *OnCluster) { c.Binding.Removing = true }), false},
		"not reached yet":    {cluster(func(c *OnCluster) { c.Binding.Assigned = revisionOne }), false},
		"not on the cluster": {cluster(func(c *OnCluster) { c.Binding.Cluster = "west" }), false},
	} {
		pl := &placementPlanner{current: &result{resultKey: resultKey{successor: &result{placement: &Placement{Clusters: []*OnCluster{test.on}}}}}}
		if got := pl.successorMayDelete("east"); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
	if (&placementPlanner{current: &result{}}).successorMayDelete("east") {
		t.Error("allowed without a successor")
	}
}

// While the revision of a cluster is not known, a renamed placement keeps the objects there under
// its earlier key, as long as the new key is assigned the same revision.
func TestEarlierKeyKeepsUnknownContent(t *testing.T) {
	shop, web := api.PlacementKey{Name: "shop"}, api.PlacementKey{Name: "web"}
	const text = "clusters east\nnamespace web\nplace shop of web\n"
	head := snapshot(t, text)
	known := NewMemo()
	known.setInForce(head)
	rendered := placement.Revision{Commit: "v1", Hash: known.prepare(head, shop).renderer.Hash()}
	for name, test := range map[string]struct {
		assigned placement.Revision // to both keys
		change   func(*OnCluster, *ledger.Ledger, *Placement)
		want     bool
	}{
		"not known":                         {revisionOne, nil, true},
		"the head renders it":               {rendered, nil, false},
		"known":                             {revisionOne, func(c *OnCluster, _ *ledger.Ledger, _ *Placement) { c.PreviousContent = &work.Rendered{} }, false},
		"not renderable":                    {revisionOne, func(c *OnCluster, _ *ledger.Ledger, _ *Placement) { c.notRenderable = true }, false},
		"not renamed":                       {revisionOne, func(_ *OnCluster, _ *ledger.Ledger, p *Placement) { p.Record.Into = api.PlacementKey{} }, false},
		"the new key is forgotten":          {revisionOne, func(_ *OnCluster, l *ledger.Ledger, _ *Placement) { l.Forget(shop) }, false},
		"the new key is not on the cluster": {revisionOne, func(_ *OnCluster, l *ledger.Ledger, _ *Placement) { l.Unbind(shop, "east") }, false},
		"the new key is assigned another revision": {revisionOne, func(_ *OnCluster, l *ledger.Ledger, _ *Placement) {
			l.Bind(shop, placement.Binding{Cluster: "east", Assigned: revisionTwo})
		}, false},
		"the new key is being removed": {revisionOne, func(_ *OnCluster, l *ledger.Ledger, _ *Placement) {
			l.Bind(shop, placement.Binding{Cluster: "east", Assigned: revisionOne, Removing: true})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := placement.Binding{Cluster: "east", Assigned: test.assigned}
			l := ledger.New()
			l.SetPlacement(shop, ledger.Placement{})
			l.Bind(shop, b)
			p, c := &Placement{Key: web, Record: ledger.Placement{Into: shop}}, &OnCluster{Binding: &b}
			if test.change != nil {
				test.change(c, l, p)
			}
			pl := newPlanner(Input{InForce: head, Ledger: l, Memo: NewMemo(), Now: noon})
			if got := pl.successorHas(p, c); got != test.want {
				t.Errorf("kept: %t, want %t", got, test.want)
			}
		})
	}
}

// A placement whose planning panicked keeps its bindings, its claims and the objects on its
// clusters.
func TestFailedResult(t *testing.T) {
	key := api.PlacementKey{Name: "web"}
	l := ledger.New()
	l.SetPlacement(key, ledger.Placement{Index: 3, Abandon: true})
	for i, b := range []placement.Binding{{Cluster: "a", Assigned: revisionOne}, {Cluster: "b"}, {Cluster: "c", Removing: true}} {
		l.Bind(key, b)
		l.SetDeviation(key, b.Cluster, ledger.Deviation{Yields: []ledger.Yield{{ID: configMap(fmt.Sprint(i)), To: api.PlacementKey{Name: "shop"}}}}, noon)
	}
	spec := &hub.Placement{Spec: api.PlacementSpec{Strategy: api.RolloutStrategy{ApplyStrategy: &api.ApplyStrategy{WhenToApply: api.ApplyIfNotDrifted}}}}
	spec.Annotations = map[string]string{api.DriftAnnotation: "report"}
	r := failedResult(key, spec, l.Placement(key), "index out of range")
	p := r.placement
	if p.InternalError != "internal error: index out of range" || p.Stack == "" || p.Record.Index != 3 || len(p.Changed)+len(p.Unbind) > 0 || p.RecordChanged {
		t.Errorf("plan: %+v", p)
	}
	for _, c := range p.Clusters {
		released := c.Binding.Cluster != "b"
		if (c.work != nil) != released {
			t.Errorf("%s has the work %+v", c.Binding.Cluster, c.work)
			continue
		}
		if w := c.work; released && (!w.Keep || w.Remove || !w.Abandon || w.Revision != c.Binding.Assigned || w.Strategy.WhenToApply != api.ApplyIfNotDrifted || w.Drift != "report") {
			t.Errorf("%s has the work %+v", c.Binding.Cluster, w)
		}
		if len(c.Unusual().Deviation.Yields) != 1 {
			t.Errorf("%s claims %+v", c.Binding.Cluster, c.Unusual().Deviation)
		}
	}
	if p := failedResult(key, spec, nil, "no").placement; p.Record.Index != -1 || len(p.Clusters) > 0 {
		t.Errorf("a new placement: %+v", p)
	}
}
