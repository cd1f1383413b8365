package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A fleet was observed at the latest time in the statuses of its clusters, whichever field has it.
func TestTimeOfTheObservation(t *testing.T) {
	at := func(minutes int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)) }
	for name, test := range map[string]struct {
		statuses []api.MemberClusterStatus
		want     int // minutes after noon
	}{
		"no clusters":          {nil, 60},
		"no status":            {[]api.MemberClusterStatus{{}}, 60},
		"a heartbeat":          {[]api.MemberClusterStatus{{AgentStatus: []api.AgentStatus{{LastReceivedHeartbeat: at(5)}}}}, 5},
		"a property":           {[]api.MemberClusterStatus{{Properties: map[string]api.PropertyValue{"nodes": {ObservationTime: at(6)}}}}, 6},
		"the resource usage":   {[]api.MemberClusterStatus{{ResourceUsage: api.ResourceUsage{ObservationTime: at(7)}}}, 7},
		"a condition":          {[]api.MemberClusterStatus{{Conditions: []metav1.Condition{{LastTransitionTime: at(8)}}}}, 8},
		"an agent's condition": {[]api.MemberClusterStatus{{AgentStatus: []api.AgentStatus{{LastReceivedHeartbeat: at(5), Conditions: []metav1.Condition{{LastTransitionTime: at(9)}}}}}}, 9},
		"the latest of all":    {[]api.MemberClusterStatus{{Conditions: []metav1.Condition{{LastTransitionTime: at(3)}}}, {Conditions: []metav1.Condition{{LastTransitionTime: at(4)}, {LastTransitionTime: at(2)}}}}, 4},
	} {
		var clusters []hub.ObservedCluster
		for i, s := range test.statuses {
			m := &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}, Status: s}
			clusters = append(clusters, hub.ObservedCluster{Cluster: &hub.Cluster{MemberCluster: m}})
		}
		if got := NewFleet(clusters, at(60).Time).at; !got.Equal(at(test.want).Time) {
			t.Errorf("%s: %s, want %s", name, got, at(test.want))
		}
	}
}

// fleetOf reads the clusters of a file.
func fleetOf(t *testing.T, clusters ...string) *Fleet {
	t.Helper()
	var text string
	for _, c := range clusters {
		text += "---\n{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, " + c + ", spec: {identity: {kind: User, name: fleet}}}\n"
	}
	read, err := hub.ReadClusters("fleet.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return NewFleet(read, noon)
}

// A checkout without MemberClusters has those of the file. Names in clusterNames that the file has
// are no longer warned of.
func TestFleetOfACheckoutWithoutClusters(t *testing.T) {
	f := fleetOf(t, "metadata: {name: a}", "metadata: {name: b}")
	o, err := Of(Input{Snapshot: snapshot(t, "v1", "namespace web\nplace web on a,c\n"), Observed: f, Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range o.Plan.Members {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("the fleet has %v", names)
	}
	var fields []string
	for _, w := range o.Warnings {
		fields = append(fields, w.Field)
	}
	if !slices.Equal(fields, []string{"spec.policy.clusterNames[1]"}) {
		t.Errorf("warnings %v", o.Warnings)
	}
	// The snapshot of the checkout stays as it is.
	if s := snapshot(t, "v1", "namespace web\nplace web on a,c\n"); f.declare(s) == s || len(s.Clusters) > 0 || len(s.Warnings) != 2 {
		t.Errorf("the checkout has %d clusters and the warnings %v", len(s.Clusters), s.Warnings)
	}
}

// A field of an observed cluster comes from the file if the file has it, and otherwise from the
// checkout. In a file that the daemon wrote, the checkout takes precedence.
func TestObservedFieldsTakePrecedence(t *testing.T) {
	property := func(name string) string { return api.PropertyAnnotationPrefix + name }
	meta := func(labels, annotations map[string]string, taints ...api.Taint) *api.MemberCluster {
		m := &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: labels, Annotations: annotations}}
		m.Spec.Taints = taints
		return m
	}
	gpu, spot := api.Taint{Key: "gpu"}, api.Taint{Key: "spot"}
	declared := meta(map[string]string{"region": "eu", "tier": "1"}, map[string]string{property("price"): "3", property("size"): "1"}, gpu)
	for name, test := range map[string]struct {
		seen       *api.MemberCluster
		labels     map[string]string
		properties map[string]string
		taint      string
	}{
		"nothing in the file": {meta(nil, nil), map[string]string{"region": "eu", "tier": "1"}, map[string]string{"price": "3", "size": "1"}, "gpu"},
		"in the file": {meta(map[string]string{"region": "us"}, map[string]string{property("price"): "4"}, spot),
			map[string]string{"region": "us", "tier": "1"}, map[string]string{"price": "4", "size": "1"}, "spot"},
		"a copy by the daemon": {meta(map[string]string{"region": "us"}, map[string]string{api.PathAnnotation: "a.yaml", property("price"): "4", property("old"): "1"}, spot),
			map[string]string{"region": "eu", "tier": "1"}, map[string]string{"price": "3", "size": "1"}, "gpu"},
	} {
		t.Run(name, func(t *testing.T) {
			j := joinedFleet{snapshot: &hub.Snapshot{}, clusters: map[string]placement.Cluster{}, at: noon}
			j.add(&hub.Cluster{MemberCluster: declared}, hub.ObservedCluster{Cluster: &hub.Cluster{MemberCluster: test.seen}})
			c := j.clusters["a"]
			values := map[string]string{}
			for name, q := range c.Properties {
				values[name] = q.String()
			}
			if !maps.Equal(c.Labels, test.labels) || !maps.Equal(values, test.properties) || len(c.Taints) != 1 || c.Taints[0].Key != test.taint {
				t.Errorf("labels %v, properties %v, taints %v", c.Labels, values, c.Taints)
			}
			if declared.Labels["region"] != "eu" || len(declared.Annotations) != 2 {
				t.Error("the declared cluster has changed")
			}
		})
	}
}

// A cluster without a status counts as healthy. With one, or marked for deletion, its status decides
// whether it is eligible.
func TestEligibilityOfObservedClusters(t *testing.T) {
	for name, test := range map[string]struct{ metadata, want string }{
		"no status":           {"metadata: {name: a}", ""},
		"an empty status":     {"metadata: {name: a}, status: {}", "cluster is not connected to the fleet: member agent not online yet"},
		"marked for deletion": {`metadata: {name: a, deletionTimestamp: "2026-11-20T11:00:00Z"}`, "cluster has left the fleet"},
	} {
		f := fleetOf(t, test.metadata)
		j := f.join(snapshot(t, "v1", "clusters a\nnamespace web\nplace web\n"))
		if got := j.clusters["a"].Ineligible; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if leaving := f.leaving()["a"]; leaving != strings.Contains(test.metadata, "deletion") {
			t.Errorf("%s: leaving: %t", name, leaving)
		}
	}
}

// A placement does not keep a cluster of an earlier plan that is marked for deletion.
func TestLeavingClustersAreNotKept(t *testing.T) {
	const text = "clusters a b\nnamespace web\nplace web pick 1\n"
	first, err := Of(Input{Snapshot: snapshot(t, "v1", text), Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	before := first.Describe()
	for deleted, want := range map[string]string{"": "b", "b": "a", "a": "b"} {
		var clusters []string
		for _, name := range []string{"a", "b"} {
			metadata := "metadata: {name: " + name + "}"
			if name == deleted {
				metadata = `metadata: {name: ` + name + `, deletionTimestamp: "2026-11-20T11:00:00Z"}`
			}
			clusters = append(clusters, metadata)
		}
		o, err := Of(Input{Snapshot: snapshot(t, "v2", text), Observed: fleetOf(t, clusters...), Before: &before, Now: noon})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(o.Describe().Placements[0].Selected(), " "); got != want {
			t.Errorf("with %q deleted, %s is selected, want %s", deleted, got, want)
		}
	}
}

// The placements of an earlier plan hold its clusters, with the spec of the commit in force if they still
// exist. One that was only a candidate of a rename is new.
func TestEarlierPlanInTheLedger(t *testing.T) {
	head := snapshot(t, "v2", "clusters a b\nnamespace web\nplace web\n")
	d := Document{Commit: "v1", Placements: []Placement{
		with(on("crp/web", "b", "!c", "a"), func(p *Placement) { p.Abandons = true }),
		on("crp/gone", "a"),
		with(on("crp/kept", "a"), func(p *Placement) { p.Unclear = "why" }),
		with(on("crp/new"), func(p *Placement) { p.Unclear = "why" }),
	}}
	l := ledger.New()
	d.bind(l, head, map[string]bool{"a": true}, noon)
	var got []string
	for _, key := range l.Placements() {
		record := l.Placement(key)
		text := key.Name
		for _, b := range record.Bindings() {
			text += fmt.Sprintf(" %s/%d@%s", b.Cluster, b.Order, b.Assigned.Commit)
		}
		if record.Abandon {
			text += " abandons"
		}
		if (record.SpecHash == head.Placements[0].SpecHash) != (key.Name == "web") {
			t.Errorf("%s has the spec %q", key, record.SpecHash)
		}
		got = append(got, text)
	}
	if text := strings.Join(got, ", "); text != "gone, kept, web b/1@v1 abandons" {
		t.Errorf("the ledger has %s", text)
	}
}

// The objects that a placement of an earlier plan holds are those that it selected and those that it
// has on a cluster, and not those of other placements.
func TestOwnedObjectsOfAnEarlierPlan(t *testing.T) {
	web := with(on("crp/web", "a"), func(p *Placement) {
		p.SelectedResources = []Resource{{Version: "v1", Kind: "Namespace", Name: "web"}}
	})
	d := &Document{Placements: []Placement{web, on("crp/empty")}, Clusters: []Cluster{
		{Name: "a", Objects: []Object{object("one", "crp/web"), object("two", "crp/unknown")}},
		{Name: "b", Objects: []Object{object("three", "crp/web")}},
	}}
	got := d.owned()
	var names []string
	for _, id := range got[web.key()] {
		names = append(names, id.String())
	}
	slices.Sort(names)
	if want := []string{"ConfigMap/web/one", "ConfigMap/web/three", "Namespace/web"}; !slices.Equal(names, want) {
		t.Errorf("crp/web holds %v, want %v", names, want)
	}
	if ids, known := got[api.PlacementKey{Name: "empty"}]; !known || len(ids) > 0 || len(got) != 2 {
		t.Errorf("holdings %v", got)
	}
	if of := d.objects(web.key(), "a"); len(of) != 1 || of[0].Name != "one" {
		t.Errorf("objects on a: %v", of)
	}
	if (*Document)(nil).objects(web.key(), "a") != nil {
		t.Error("a document that does not exist has objects")
	}
}

// After an earlier plan, clusters have the present content except for the objects of other
// placements, a rename is no change of the spec, and the content of a deleted placement is not known.
func TestSettledLedger(t *testing.T) {
	const objects = "clusters a\nnamespace web\nconfigmap web/one x\nnamespace shop\n"
	first, err := Of(Input{Snapshot: snapshot(t, "v1", objects+"place old of shop\nplace gone of web\nplace also of web\n"), Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	before := first.Describe()
	in := healthy(snapshot(t, "v2", objects+"place new of shop\nplace also of web\n"), noon)
	before.bind(in.Ledger, in.InForce, nil, noon)
	in.Owned, in.Lost = before.owned(), map[string]error{"v1": errNotRead}
	p := plan.Resolve(in)
	before.renamed(p.Renames).settle(in.Ledger, p)
	for name, want := range map[string]string{"new": "latest", "also": "latest", "gone": "unknown", "old": "unknown"} {
		record := in.Ledger.Placement(api.PlacementKey{Name: name})
		got := "missing"
		for _, b := range record.Bindings() {
			switch c := find(p, name).On("a"); {
			case !b.HasRevision():
				got = "unknown"
			case b.Assigned == c.Latest() && b.Assigned.Hash != earlierHash:
				got = "latest"
			}
		}
		if got != want {
			t.Errorf("the content of %s is %s, want %s", name, got, want)
		}
	}
	if record := in.Ledger.Placement(api.PlacementKey{Name: "new"}); record.SpecHash == "" {
		t.Error("the rename counts as a change of the spec")
	}
}

// find returns a placement of a plan.
func find(p *plan.Plan, name string) *plan.Placement {
	for p := range p.Placements.Values() {
		if p.Key.Name == name {
			return p
		}
	}
	return nil
}

// Equivalent policies have no changed settings.
func TestEquivalentPolicies(t *testing.T) {
	before := &api.PlacementSpec{Policy: &api.PlacementPolicy{PlacementType: api.PickAll, TopologySpreadConstraints: []api.TopologySpreadConstraint{{TopologyKey: "zone", WhenUnsatisfiable: api.DoNotSchedule}}}}
	after := &api.PlacementSpec{Policy: &api.PlacementPolicy{PlacementType: api.PickAll, TopologySpreadConstraints: []api.TopologySpreadConstraint{{TopologyKey: "zone"}}}}
	if got := settingChanges(before, after); got != nil {
		t.Errorf("changes %+v", got)
	}
	after.Policy.TopologySpreadConstraints[0].TopologyKey = "region"
	if got := settingChanges(before, after); len(got) != 1 || got[0].Field != "policy.topologySpreadConstraints" {
		t.Errorf("changes %+v", got)
	}
}

// A placement that is gone keeps its earlier description, except that it was renamed before.
func TestEarlierRenamesAreNotDescribedAgain(t *testing.T) {
	earlier := with(on("crp/web", "a"), func(p *Placement) { p.RenamedFrom, p.PolicyHash = "crp/old", "hash" })
	o := &Forecast{Plan: &plan.Plan{}, before: &Document{Placements: []Placement{on("crp/api"), earlier}}}
	got := o.possiblyRenamed(&plan.Placement{Key: earlier.key(), Unclear: "why"})
	if got.RenamedFrom != "" || got.Unclear != "why" || got.PolicyHash != "hash" {
		t.Errorf("%+v", got)
	}
}
