package plan

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
)

// configMap returns the ID of a ConfigMap.
func configMap(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "web", Name: name} }

// manifestsOf returns manifests of ConfigMaps.
func manifestsOf(names ...string) []*work.Manifest {
	var out []*work.Manifest
	for _, name := range names {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("v1")
		object.SetKind("ConfigMap")
		out = append(out, &work.Manifest{Object: &api.Object{ID: configMap(name), Content: object}})
	}
	return out
}

func namesOf(ms []*work.Manifest) string {
	var names []string
	for _, m := range ms {
		names = append(names, m.ID.Name)
	}
	return strings.Join(names, " ")
}

// Works with the same manifests in memory are the same, even if their lists are different: lists
// without yielded objects are built each time the owners are decided.
func TestWorksWithTheSameManifestsAreTheSame(t *testing.T) {
	all := manifestsOf("a", "b")
	for name, test := range map[string]struct {
		a, b *work.Work
		want bool
	}{
		"one list":                {&work.Work{Manifests: all}, &work.Work{Manifests: all}, true},
		"two lists":               {&work.Work{Manifests: all, Awaited: all}, &work.Work{Manifests: slices.Clone(all), Awaited: slices.Clone(all)}, true},
		"fewer manifests":         {&work.Work{Manifests: all}, &work.Work{Manifests: all[:1]}, false},
		"loaded again":            {&work.Work{Manifests: all}, &work.Work{Manifests: manifestsOf("a", "b")}, false},
		"other awaited manifests": {&work.Work{Awaited: all}, &work.Work{Awaited: manifestsOf("a", "b")}, false},
	} {
		if got := sameWork(test.a, test.b); got != test.want {
			t.Errorf("%s: the same: %t, want %t", name, got, test.want)
		}
	}
}

// Content is awaited if the cluster is not assigned the same objects, whatever their content.
func TestAwaitedContent(t *testing.T) {
	one, two := manifestsOf("a", "b"), manifestsOf("a", "c")
	for i, test := range []struct {
		now, latest []*work.Manifest
		change      func(*OnCluster)
		want        bool
	}{
		{nil, nil, nil, false}, {nil, one, nil, true}, {one, one, nil, false}, {one, manifestsOf("a", "b"), nil, false},
		{one, two, nil, true}, {one[:1], one, nil, true},
		{one, two, func(c *OnCluster) { c.Binding.Unscheduled = true }, false}, {one, two, func(c *OnCluster) { c.Binding.Removing = true }, false},
	} {
		c := &OnCluster{Binding: &placement.Binding{}, Content: &work.Rendered{Manifests: test.latest}}
		if test.change != nil {
			test.change(c)
		}
		if got := awaitedContent(c, test.now) != nil; got != test.want {
			t.Errorf("%d: %s is awaited: %t", i, namesOf(test.latest), got)
		}
	}
}

// The final work has the latest content without the objects that are left to other placements.
func TestFinalWork(t *testing.T) {
	strategy := &api.ApplyStrategy{WhenToApply: api.ApplyIfNotDrifted}
	p := &Placement{Key: api.PlacementKey{Name: "web"}, Spec: &hub.Placement{Spec: api.PlacementSpec{Strategy: api.RolloutStrategy{ApplyStrategy: strategy}}}}
	latest := placement.Revision{Commit: "v2", Hash: "2"}
	for name, test := range map[string]struct {
		yielded []string
		want    string
	}{
		"nothing is left": {nil, "a b c"},
		"one is left":     {[]string{"b"}, "a c"},
		"all are left":    {[]string{"c", "a", "b"}, ""},
		"an object that it does not have is left": {[]string{"x"}, "a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &OnCluster{Binding: &placement.Binding{}, latest: &latest, Content: &work.Rendered{Manifests: manifestsOf("a", "b", "c")}}
			for _, m := range manifestsOf(test.yielded...) {
				c.change(func(in *Circumstances) { in.Yielded = append(in.Yielded, Yielded{Manifest: m}) })
			}
			w := p.FinalWork(c)
			if w.Placement != p.Key || w.Revision != latest || w.Strategy != *strategy || namesOf(w.Manifests) != test.want {
				t.Errorf("%s: %s at %v with %v", w.Placement, namesOf(w.Manifests), w.Revision, w.Strategy)
			}
			if namesOf(c.Content.Manifests) != "a b c" {
				t.Error("the content has changed")
			}
		})
	}
}

// The cause of a deletion names the commit that led to it.
func TestDeleteCause(t *testing.T) {
	b := placement.Binding{Assigned: placement.Revision{Commit: "v2"}, Circumstances: &placement.Circumstances{RemovedBy: "v3"}}
	removing := b
	removing.Removing = true
	spec := &hub.Placement{}
	for name, test := range map[string]struct {
		p    Placement
		b    placement.Binding
		want work.Cause
	}{
		"renamed":  {Placement{Record: ledger.Placement{Into: api.PlacementKey{Name: "shop"}}}, b, work.Cause{Commit: "v3", Why: "no longer selected since the placement was renamed to crp/shop"}},
		"deleted":  {Placement{}, b, work.Cause{Commit: "v3", Why: "the placement was deleted"}},
		"leaving":  {Placement{Spec: spec}, removing, work.Cause{Commit: "v3", Why: "the placement no longer selects the cluster"}},
		"new work": {Placement{Spec: spec}, b, work.Cause{Commit: "v2", Why: "no longer in the placement's content"}},
	} {
		if got := deleteCause(&test.p, &test.b); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// The works of a cluster are replaced when one of them changes, and are the same list otherwise.
func TestOnlyChangedWorksAreReplaced(t *testing.T) {
	of := func(name string, clusters ...string) *Placement {
		p := &Placement{Key: api.PlacementKey{Name: name}}
		for _, c := range clusters {
			cluster, commit, _ := strings.Cut(c, "=")
			on := &OnCluster{Binding: &placement.Binding{Cluster: cluster}}
			if commit != "" {
				on.work = &work.Work{Placement: p.Key, Revision: placement.Revision{Commit: commit}}
			}
			p.Clusters = append(p.Clusters, on)
		}
		return p
	}
	because := func(p *Placement, why string) *Placement {
		for _, c := range p.Clusters {
			c.work.Cause.Why = why
		}
		return p
	}
	a, b := of("a", "east=v1", "west=v1"), of("b", "east=v1", "north", "west=v1")
	for name, test := range map[string]struct {
		now      []*Placement
		replaced []string          // clusters with new lists
		want     map[string]string // what they have then
	}{
		"nothing":                    {[]*Placement{a, b}, nil, nil},
		"an equal plan":              {[]*Placement{a, of("b", "east=v1", "west=v1")}, nil, nil},
		"another cause":              {[]*Placement{a, because(of("b", "east=v1", "west=v1"), "renamed")}, []string{"east", "west"}, map[string]string{"east": "a=v1 b=v1", "west": "a=v1 b=v1"}},
		"another revision":           {[]*Placement{a, of("b", "east=v2", "west=v1")}, []string{"east"}, map[string]string{"east": "a=v1 b=v2"}},
		"a cluster is removed":       {[]*Placement{a, of("b", "west=v1")}, []string{"east"}, map[string]string{"east": "a=v1"}},
		"a cluster is added":         {[]*Placement{a, of("b", "east=v1", "north=v1", "west=v1")}, []string{"north"}, map[string]string{"north": "b=v1"}},
		"a placement is removed":     {[]*Placement{b}, []string{"east", "west"}, map[string]string{"east": "b=v1", "west": "b=v1"}},
		"a placement is added":       {[]*Placement{a, of("ab", "west=v1"), b}, []string{"west"}, map[string]string{"west": "a=v1 ab=v1 b=v1"}},
		"all placements are removed": {nil, []string{"east", "west"}, map[string]string{"east": "", "west": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			first := &Plan{Placements: sharedlist.Of(a, b)}
			first.Works = worksOf(first, &Plan{Works: map[string][]*work.Work{}})
			before, now := first.Works, worksOf(&Plan{Placements: sharedlist.Of(test.now...)}, first)
			for _, cluster := range []string{"east", "north", "west"} {
				replaced := !ledger.Identical(before[cluster], now[cluster])
				if replaced != slices.Contains(test.replaced, cluster) {
					t.Errorf("the works of %s are replaced: %t", cluster, replaced)
				}
				var has []string
				for _, w := range now[cluster] {
					has = append(has, w.Placement.Name+"="+w.Revision.Commit)
				}
				if got := strings.Join(has, " "); replaced && got != test.want[cluster] {
					t.Errorf("%s has %s, want %s", cluster, got, test.want[cluster])
				}
			}
		})
	}
}
