package status

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
)

// The state of an object is what the member reported about it; an object that a complete report
// does not mention is applied and available.
func TestStateOfATracedObject(t *testing.T) {
	exception := func(applied, available protocol.Verdict, change func(o *protocol.ObjectState)) protocol.ObjectState {
		o := protocol.ObjectState{ID: objectOne, Applied: applied, Available: available}
		if change != nil {
			change(&o)
		}
		return o
	}
	for name, test := range map[string]struct {
		seen *protocol.WorkState
		want string
	}{
		"nothing is reported":   {nil, "the cluster has not reported this revision yet"},
		"being applied":         {&protocol.WorkState{}, "being applied"},
		"not mentioned":         {done(objectState("two", refused, protocol.Verdict{})), "applied and available"},
		"refused":               {done(exception(refused, protocol.Verdict{}, nil)), "not applied: admission webhook denied"},
		"waiting":               {done(exception(refused, protocol.Verdict{}, func(o *protocol.ObjectState) { o.Pending = true })), "not applied yet: admission webhook denied"},
		"not available":         {done(exception(yes, notReady, nil)), "applied, not available yet: 1 of 2 replicas"},
		"failed":                {done(exception(yes, notReady, func(o *protocol.ObjectState) { o.Failure = "no image" })), "applied, and failed: no image"},
		"different":             {done(exception(yes, yes, nil)), "applied and available; it differs from Git"},
		"mentioned in progress": {&protocol.WorkState{Exceptions: []protocol.ObjectState{exception(yes, notReady, nil)}}, "applied, not available yet: 1 of 2 replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stateOf(test.seen, objectOne); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// A placement is on a cluster for the reason of the decision, or of the binding if the cluster is
// no longer selected.
func TestReasonOfACluster(t *testing.T) {
	c := assigned("east", nil)
	c.Binding.Reason = "picked earlier"
	for name, test := range map[string]struct {
		decisions []placement.Decision
		want      string
	}{
		"selected":           {[]placement.Decision{{Cluster: "west", Selected: true, Reason: "w"}, {Cluster: "east", Selected: true, Reason: "e"}}, "e"},
		"no longer selected": {[]placement.Decision{{Cluster: "east", Reason: "tainted"}}, "picked earlier"},
		"without a decision": {nil, "picked earlier"},
	} {
		p := newBuilder(c).p
		p.Schedule.Decisions = test.decisions
		if got := reasonOf(p, c); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// The overrides of an object are those of the cluster that select the object itself or, if they
// are cluster-scoped, its namespace. The object is overridden if it differs from the selected one.
func TestOverridesOfAnObject(t *testing.T) {
	clusterOverride := func(name string, terms ...api.ResourceSelectorTerm) *hub.ClusterOverride {
		return &hub.ClusterOverride{
			ClusterResourceOverride: &api.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: api.ClusterResourceOverrideSpec{ClusterResourceSelectors: terms}},
			Origin:                  api.Origin{Path: name + ".yaml", Line: 1},
		}
	}
	override := func(namespace, name string, terms ...api.ResourceSelector) *hub.Override {
		return &hub.Override{
			ResourceOverride: &api.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: api.ResourceOverrideSpec{ResourceSelectors: terms}},
			Origin:           api.Origin{Path: name + ".yaml", Line: 1},
		}
	}
	namespace := func(name string) api.ResourceSelectorTerm {
		return api.ResourceSelectorTerm{Kind: "Namespace", Name: name}
	}
	one := api.ResourceSelector{Kind: "ConfigMap", Name: "one"}
	r := &Report{InForce: &hub.Snapshot{
		ClusterOverrides: []*hub.ClusterOverride{
			clusterOverride("ns", namespace("web")), clusterOverride("other-ns", namespace("docs")), clusterOverride("elsewhere", namespace("web")), clusterOverride("all-ns", namespace("")),
		},
		Overrides: []*hub.Override{
			override("web", "one", one), override("web", "two", api.ResourceSelector{Kind: "ConfigMap", Name: "two"}), override("docs", "one", one), override("web", "unused", one),
		},
	}}
	c := assigned("east", nil)
	c.Content.ClusterOverrides = []string{"ns", "other-ns", "all-ns"}
	c.Content.Overrides = []api.NamespacedName{{Namespace: "web", Name: "one"}, {Namespace: "web", Name: "two"}, {Namespace: "docs", Name: "one"}}
	p := newBuilder(c).p
	m := configMap("one")
	m.Hash = "changed"
	for name, test := range map[string]struct {
		selected []*api.Object
		changed  bool
	}{
		"changed":      {[]*api.Object{{ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "two"}, Hash: "x"}, {ID: m.ID, Hash: "as in Git"}}, true},
		"unchanged":    {[]*api.Object{{ID: m.ID, Hash: "changed"}}, false},
		"not selected": {nil, false}, // it is in an envelope
	} {
		p.Selection.Objects = test.selected
		names, changed := r.overrides(p, c, m)
		if want := []string{"ClusterResourceOverride ns (ns.yaml:1)", "ResourceOverride web/one (one.yaml:1)"}; !slices.Equal(names, want) || changed != test.changed {
			t.Errorf("%s: %q, %t; want %q, %t", name, names, changed, want, test.changed)
		}
	}
}

// The digest of the placed objects changes with each content, error and yielded object on a cluster
// that stays, and with nothing else.
func TestPlacedDigest(t *testing.T) {
	digest := func(change func(p *plan.Placement)) string {
		p := newBuilder(assigned("east", done()), assigned("west", nil)).p
		change(p)
		return (&Report{plan: &plan.Plan{Placements: sharedlist.Of(p)}}).PlacedDigest()
	}
	first := digest(func(*plan.Placement) {})
	for name, test := range map[string]struct {
		change func(p *plan.Placement)
		same   bool
	}{
		"another report of the member": {func(p *plan.Placement) { p.Clusters[0].Entry = &ledger.Entry{} }, true},
		"another assigned revision":    {func(p *plan.Placement) { p.Clusters[0].Binding.Assigned = oldContent }, true},
		"another content":              {func(p *plan.Placement) { p.Clusters[0].Content.Hash = "h9" }, false},
		"an error":                     {func(p *plan.Placement) { p.Clusters[0].Err = errors.New("x") }, false},
		"a yielded object": {func(p *plan.Placement) {
			p.Clusters[0].Circumstances = &plan.Circumstances{Yielded: []plan.Yielded{{}}}
		}, false},
		"a cluster that leaves": {func(p *plan.Placement) { p.Clusters[0].Binding.Unscheduled = true }, false},
		"another key":           {func(p *plan.Placement) { p.Key.Name = "api" }, false},
	} {
		if got := digest(test.change); (got == first) != test.same {
			t.Errorf("%s: the same digest: %t", name, got == first)
		}
	}
	if (&Report{}).PlacedDigest() != "" {
		t.Error("a digest without a plan")
	}
}

// The tree has the objects of the assigned content if that is known, and those that cannot be sent.
func TestTreeOfACluster(t *testing.T) {
	content := func(c *plan.OnCluster) {
		c.Content.Manifests = []*work.Manifest{configMap("one")}
		c.Content.Refused = []work.Refused{{Manifest: configMap("two"), Cause: "it is there twice"}}
	}
	for name, test := range map[string]struct {
		cluster *plan.OnCluster
		want    []string
	}{
		"known":               {change(assigned("east", done()), content), []string{"one available ", "two failed Failed to apply the manifest (error: it is there twice)"}},
		"being removed":       {change(change(assigned("east", done()), content), func(c *plan.OnCluster) { c.Binding.Removing = true }), nil},
		"nothing is assigned": {change(change(assigned("east", done()), content), func(c *plan.OnCluster) { c.Binding.Assigned = placement.Revision{} }), nil},
		"of another commit":   {change(change(assigned("east", done()), content), func(c *plan.OnCluster) { c.Binding.Assigned = oldContent }), nil},
		"cannot be rendered":  {change(change(assigned("east", done()), content), func(c *plan.OnCluster) { c.Err = errors.New("x") }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			tree := treeCluster(test.cluster)
			for _, o := range tree.Objects {
				got = append(got, fmt.Sprintf("%s %s %s", o.Name, o.State, o.Message))
			}
			if !slices.Equal(got, test.want) || tree.Objects == nil || tree.Commit != test.cluster.Binding.Assigned.Commit {
				t.Errorf("%q at %q, want %q", got, tree.Commit, test.want)
			}
		})
	}
}

// A name that is similar to an existing one, or to its last part, is suggested; short names are not
// compared.
func TestSuggestedNames(t *testing.T) {
	exist := []string{"crp/website", "crp/api", "rp/shop/frontend"}
	for name, want := range map[string]string{
		"crp/webste": "crp/website", "webste": "crp/website", "fronted": "rp/shop/frontend", "crp/xyzzyx": "", "something": "", "ap": "", "ape": "",
	} {
		if got := (&UnknownError{Name: name, Exist: exist}).suggestion(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Of two records of drift of an object, a trace has the one that differs now, and of those the change.
func TestDriftThatMatters(t *testing.T) {
	added, held, repaired, ended := Drift{State: api.DriftAdded, Addition: true}, Drift{State: api.DriftHeld}, Drift{State: api.DriftRepaired}, Drift{State: api.DriftEnded, Addition: true}
	for name, test := range map[string]struct{ less, more Drift }{
		"additions beside a reverted change":     {repaired, added},
		"a change beside additions":              {added, held},
		"a reverted change beside old additions": {ended, repaired},
	} {
		if !matters(&test.more, &test.less) || matters(&test.less, &test.more) || !matters(&test.less, nil) {
			t.Error(name)
		}
	}
}
