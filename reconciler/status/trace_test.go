package status

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/world"
)

// traced returns a fleet of two clusters, one of which has a different version of an object.
func traced(t *testing.T, seen ...protocol.ObjectState) *Report {
	t.Helper()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	head, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "c0ffee", Time: now}, world.Files(t, `
clusters east/region=eu west/region=us
namespace web
configmap web/one plain
configmap web/two plain
envelope web/box holds docks/wrapped
override web/one to wide on eu
place web
`))
	if err != nil {
		t.Fatal(err)
	}
	in := plan.Input{InForce: head, Ledger: ledger.New(), Now: now, Memo: plan.NewMemo()}
	for _, c := range head.Clusters {
		in.Ledger.Fold(protocol.ClusterSeen{Cluster: c.Name, At: now, Healthy: true})
	}
	in.Ledger.Suspend(ledger.Suspension{Subject: ledger.Subject{Cluster: "west"}, By: "alice", Reason: "INC-1"})
	p := plan.Resolve(in)
	p.UpdateLedger(in.Ledger)
	in.Now = now.Add(time.Minute)
	for _, w := range p.Works["east"] {
		in.Ledger.Fold(protocol.WorkSeen{Cluster: "east", Placement: w.Placement, At: in.Now, WorkState: protocol.WorkState{Revision: w.Revision, Done: true, Total: len(w.Manifests), Exceptions: seen}})
	}
	p = plan.Resolve(in)
	return Build(Input{Plan: p, InForce: head, Ledger: in.Ledger, Now: in.Now})
}

// Without a cluster, the trace is that on the only cluster that has the object.
func TestTraceFindsTheOnlyCluster(t *testing.T) {
	r := traced(t)
	wanted := api.ObjectName{Kind: "ConfigMap", Namespace: "web", Name: "two"}
	if trace, _, err := r.Trace(wanted, ""); err != nil || trace.Cluster != "east" {
		t.Errorf("on one cluster: %+v, %v", trace, err)
	}
	r.plan.Works["west"] = r.plan.Works["east"]
	if _, _, err := r.Trace(wanted, ""); err == nil || err.Error() != "ConfigMap/web/two is on the clusters east, west; name one with --cluster" {
		t.Errorf("on two clusters: %v", err)
	}
	wanted.Name = "twwo"
	if _, _, err := r.Trace(wanted, ""); err == nil || err.Error() != "there is no object ConfigMap/web/twwo; did you mean ConfigMap/web/two?" {
		t.Errorf("on none: %v", err)
	}
}

// The trace of an object has its file, the placement that delivered it, and the overrides that
// changed it.
func TestTrace(t *testing.T) {
	two := api.ID{Kind: "ConfigMap", Namespace: "web", Name: "two"}
	r := traced(t, protocol.ObjectState{ID: two, Version: "v1", Applied: protocol.Verdict{Reason: api.ManifestApplyFailed, Cause: "denied"}})
	get := func(kind, name, cluster string) *Trace {
		t.Helper()
		trace, object, err := r.Trace(api.ObjectName{Kind: kind, Namespace: "web", Name: name}, cluster)
		if err != nil {
			t.Fatal(err)
		}
		if object.ID.Name != name {
			t.Errorf("the object is %v", object.ID)
		}
		return trace
	}
	one := get("cm", "one", "east")
	if one.Origin != "configmap-web-one.yaml:1" || one.Placement != "crp/web" || one.PlacementOrigin != "placement-web.yaml:1" || one.Revision != "c0ffee" {
		t.Errorf("it comes from %+v", one)
	}
	if !one.Overridden || strings.Join(one.Overrides, " ") != "ResourceOverride web/one (override-web-one.yaml:1)" {
		t.Errorf("overridden %t by %v", one.Overridden, one.Overrides)
	}
	if one.State != "applied and available" || !strings.Contains(one.Why, "picked by scheduling policy") {
		t.Errorf("it is %q because %q", one.State, one.Why)
	}
	if got := get("configmaps", "two", "east"); got.State != "not applied: denied" || got.Overridden || got.Overrides != nil {
		t.Errorf("the other is %+v", got)
	}
}

// Without a namespace an object is found if only one namespace has it, and otherwise they are named.
func TestTraceWithoutANamespace(t *testing.T) {
	r := traced(t)
	for name, want := range map[string]string{"wrapped": "docks", "two": "web", "web": ""} {
		kind := "cm"
		if want == "" {
			kind = "ns"
		}
		if trace, _, err := r.Trace(api.ObjectName{Kind: kind, Name: name}, "east"); err != nil || trace.Namespace != want || trace.Name != name {
			t.Errorf("%s is %+v: %v", name, trace, err)
		}
	}
	addLikeTwo(r, func(id *api.ID) { id.Namespace = "docks" })
	if _, _, err := r.Trace(api.ObjectName{Kind: "cm", Name: "two"}, "east"); err == nil || err.Error() != "cm/two is in the namespaces docks, web; name one with -n" {
		t.Errorf("of two: %v", err)
	}
}

// addLikeTwo adds an object to a cluster that is like another one except for its ID.
func addLikeTwo(r *Report, change func(id *api.ID)) {
	w := r.plan.Works["east"][0]
	again := *w.Manifests[slices.IndexFunc(w.Manifests, func(m *work.Manifest) bool { return m.ID.Name == "two" })]
	object := *again.Object
	change(&object.ID)
	again.Object = &object
	w.Manifests = append(w.Manifests, &again)
}

// Objects of the same name whose kinds have the same name too are told apart by the groups.
func TestTraceOfKindsWithTheSameName(t *testing.T) {
	r := traced(t)
	addLikeTwo(r, func(id *api.ID) { id.Group = "example.com" })
	for _, namespace := range []string{"", "web"} {
		const want = " may be ConfigMap./web/two or ConfigMap.example.com/web/two: write one of these"
		if _, _, err := r.Trace(api.ObjectName{Kind: "configmap", Namespace: namespace, Name: "two"}, "east"); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("in namespace %q: %v", namespace, err)
		}
		for _, group := range []string{"", "example.com"} {
			if got, _, err := r.Trace(api.ObjectName{Kind: "ConfigMap." + group, Namespace: namespace, Name: "two"}, "east"); err != nil || got.Group != group {
				t.Errorf("of the group %q in namespace %q: %+v, %v", group, namespace, got, err)
			}
		}
	}
}

// For an unknown name, the error suggests a similar one.
func TestTraceOfUnknownNames(t *testing.T) {
	r := traced(t)
	tests := map[string][3]string{
		"there is no cluster eest; did you mean east?":                                           {"cm", "one", "eest"},
		"there is no object on cluster east, configmap/web/onn; did you mean ConfigMap/web/one?": {"configmap", "onn", "east"},
		"there is no object on cluster west, cm/web/one, and no other either":                    {"cm", "one", "west"}, // suspended before anything was applied there
	}
	for want, q := range tests {
		if _, _, err := r.Trace(api.ObjectName{Kind: q[0], Namespace: "web", Name: q[1]}, q[2]); err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", q, err, want)
		}
	}
	if _, _, err := (&Report{}).Trace(api.ObjectName{Kind: "cm", Namespace: "web", Name: "one"}, "east"); err == nil {
		t.Error("an empty report knows it")
	}
}
