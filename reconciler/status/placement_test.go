package status

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
)

// The status has the selected clusters in the order of the decisions, then an entry without a name
// for each missing cluster. If the scheduler was not called, it has the clusters that are kept.
func TestClustersOfAPlacement(t *testing.T) {
	picked := func(names ...string) (out []placement.Decision) {
		for _, name := range names {
			out = append(out, placement.Decision{Cluster: name, Selected: true, Reason: "picked " + name})
		}
		return out
	}
	rejected := func(names ...string) (out []placement.Decision) {
		for _, name := range names {
			out = append(out, placement.Decision{Cluster: name, Reason: name + " is not eligible"})
		}
		return out
	}
	tests := map[string]struct {
		change func(p *plan.Placement)
		want   []string
	}{
		"in the order of the decisions": {func(p *plan.Placement) {
			p.Schedule = placement.Outcome{Decisions: picked("west", "east"), Found: 2, Wanted: 2}
		}, []string{"west: picked west", "east: picked east"}},
		"a selected cluster that is not bound": {func(p *plan.Placement) {
			p.Schedule = placement.Outcome{Decisions: picked("north", "east"), Found: 2, Wanted: 2}
		}, []string{"east: picked east"}},
		"rejected clusters are not missing": {func(p *plan.Placement) {
			p.Schedule = placement.Outcome{Decisions: slices.Concat(picked("east"), rejected("a", "b")), Found: 1, Wanted: 1}
		}, []string{"east: picked east"}},
		"one is missing": {func(p *plan.Placement) {
			p.Schedule = placement.Outcome{Decisions: slices.Concat(picked("east"), rejected("a", "b")), Found: 1, Wanted: 2}
		}, []string{"east: picked east", ": a is not eligible"}},
		"more are missing than were rejected": {func(p *plan.Placement) {
			p.Schedule = placement.Outcome{Decisions: slices.Concat(picked("east"), rejected("a")), Found: 1, Wanted: 9}
		}, []string{"east: picked east", ": a is not eligible"}},
		"more are found than wanted": {func(p *plan.Placement) {
			p.Schedule = placement.Outcome{Decisions: slices.Concat(picked("east", "west"), rejected("a")), Found: 2, Wanted: 1}
		}, []string{"east: picked east", "west: picked west"}},
		"invalid selectors keep the clusters": {func(p *plan.Placement) {
			p.Selection.Invalid, p.Schedule.Decisions = "invalid", rejected("a")
			p.Clusters[0].Binding.Reason = "picked earlier"
		}, []string{"east: picked earlier", "west: the cluster keeps what it holds"}},
		"an internal error keeps the clusters": {func(p *plan.Placement) {
			p.InternalError = "panic"
			p.Clusters[0].Binding.Unscheduled = true
		}, []string{"west: the cluster keeps what it holds"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(assigned("east", nil), assigned("west", nil))
			test.change(b.p)
			var got []string
			for _, c := range b.clusters("3", nil) {
				got = append(got, c.ClusterName+": "+c.Conditions[0].Message)
				if want := c.ClusterName != ""; (c.Conditions[0].Status == metav1.ConditionTrue) != want || (c.ObservedResourceIndex == "3") != want {
					t.Errorf("status of %q: %+v", c.ClusterName, c)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// Clusters are missing since the condition Scheduled became false.
func TestSinceWhenAClusterIsMissing(t *testing.T) {
	earlier := noon.Add(-time.Hour)
	for name, test := range map[string]struct {
		record *ledger.Placement
		want   time.Time
	}{
		"without a record": {nil, noon},
		"since earlier":    {&ledger.Placement{Transitions: map[string]ledger.Transition{"ClusterResourcePlacementScheduled": {Status: "False", Time: earlier}}}, earlier},
		"since now":        {&ledger.Placement{Transitions: map[string]ledger.Transition{"ClusterResourcePlacementScheduled": {Status: "True", Time: earlier}}}, noon},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder()
			b.record = test.record
			c := b.missing(placement.Decision{Reason: "tainted"})
			if len(c) != 1 || c[0].Type != api.Scheduled || textOf(&c[0]) != "False ScheduleFailed: tainted" || !c[0].LastTransitionTime.Time.Equal(test.want) {
				t.Errorf("%+v, want it since %s", c, test.want)
			}
		})
	}
}

// The last transition of a condition is when its status changed, also before a restart; it does
// not depend on the reason and the message.
func TestTransitionTimes(t *testing.T) {
	earlier := noon.Add(-time.Hour)
	scheduled := func(status string) map[string]ledger.Transition {
		return map[string]ledger.Transition{api.Scheduled: {Status: status, Time: earlier}}
	}
	for name, test := range map[string]struct {
		cluster string
		record  *ledger.Placement
		entry   *ledger.Entry
		want    time.Time
		changed bool
	}{
		"never recorded":                   {"", &ledger.Placement{}, nil, noon, true},
		"the same status":                  {"", &ledger.Placement{Transitions: scheduled("True")}, nil, earlier, false},
		"another status":                   {"", &ledger.Placement{Transitions: scheduled("False")}, nil, noon, true},
		"on a cluster, the same status":    {"east", &ledger.Placement{Transitions: scheduled("False")}, &ledger.Entry{Transitions: scheduled("True")}, earlier, false},
		"on a cluster, another status":     {"east", &ledger.Placement{Transitions: scheduled("True")}, &ledger.Entry{Transitions: scheduled("False")}, noon, true},
		"on a cluster that is not bound":   {"east", &ledger.Placement{Transitions: scheduled("True")}, nil, noon, true},
		"the placement is not in a record": {"", nil, nil, noon.Add(-2 * time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder()
			b.p.Record.Created = noon.Add(-2 * time.Hour)
			if test.record != nil {
				b.in.Ledger.SetPlacement(b.p.Key, *test.record)
				if test.entry != nil {
					b.in.Ledger.Bind(b.p.Key, placement.Binding{Cluster: test.cluster})
					b.in.Ledger.SetTransitions(b.p.Key, test.cluster, test.entry.Transitions)
				}
				b.record = b.in.Ledger.Placement(b.p.Key)
			}
			set := b.newConditionSet(test.cluster, -1)
			set.add(api.Scheduled, conditions.True("Because", "of "+name))
			c := b.finish(set, test.cluster)
			if !c[0].LastTransitionTime.Time.Equal(test.want) || c[0].ObservedGeneration != 2 {
				t.Errorf("%+v, want it since %s for generation 2", c[0], test.want)
			}
			if changed := len(b.transitions) > 0; changed != test.changed {
				t.Errorf("transitions to record: %+v, want some: %t", b.transitions, test.changed)
			}
			if test.changed && (b.transitions[0].Cluster != test.cluster || b.transitions[0].To[api.Scheduled] != (ledger.Transition{Status: "True", Time: test.want})) {
				t.Errorf("transition %+v", b.transitions[0])
			}
		})
	}
}

// Conditions that have changed at the same times share their transitions, also if others have changed in between.
func TestEqualTransitionsAreShared(t *testing.T) {
	var all sharedTransitions
	at := func(now time.Time, status metav1.ConditionStatus) uintptr {
		b := newBuilder()
		b.in.Now, b.record = now, &ledger.Placement{}
		set := b.newConditionSet("", -1)
		set.add(api.Scheduled, conditions.Value{Status: status, Reason: "r", Message: "m"})
		return reflect.ValueOf(all.of(set.list)).Pointer()
	}
	first, later, untrue := at(noon, metav1.ConditionTrue), at(noon.Add(time.Second), metav1.ConditionTrue), at(noon, metav1.ConditionFalse)
	if first == later || first == untrue || first != at(noon, metav1.ConditionTrue) || len(all.Recent) != 3 {
		t.Errorf("%v", all)
	}
}

// A condition that is gone is a change to record.
func TestALostConditionIsRecorded(t *testing.T) {
	b := newBuilder()
	b.in.Ledger.SetPlacement(b.p.Key, ledger.Placement{Transitions: map[string]ledger.Transition{
		api.Scheduled: {Status: "True", Time: noon}, api.DeletionsBlocked: {Status: "True", Time: noon},
	}})
	b.record = b.in.Ledger.Placement(b.p.Key)
	set := b.newConditionSet("", -1)
	set.add(api.Scheduled, conditions.True("r", "m"))
	b.finish(set, "")
	if len(b.transitions) != 1 || len(b.transitions[0].To) != 1 {
		t.Errorf("transitions %+v", b.transitions)
	}
}

// With the documented names, the older conditions are added to the current ones.
func TestDocumentedConditions(t *testing.T) {
	scheduled := func(c []metav1.Condition) string {
		var out []string
		for i := range c {
			switch strings.TrimPrefix(c[i].Type, api.PlacementPrefix) {
			case api.Synchronized, api.ResourceScheduled, api.ResourceApplied:
				out = append(out, c[i].Type+"="+textOf(&c[i]))
			}
		}
		return strings.Join(out, "; ")
	}
	applied := func(exceptions ...protocol.ObjectState) *plan.OnCluster { return assigned("east", done(exceptions...)) }
	const picked = `ResourceScheduled=True ScheduleSucceeded: picked east; `
	for name, test := range map[string]struct {
		cluster      *plan.OnCluster
		onCluster    string
		onPlacement  string
		unscheduled  bool
		currentNames bool
	}{
		"applied": {
			cluster: applied(), onCluster: picked + "ResourceApplied=True ApplySucceeded: Successfully applied resources",
			onPlacement: "ClusterResourcePlacementSynchronized=True SynchronizeSucceeded: All 1 cluster(s) are synchronized to the latest resources on the hub cluster",
		},
		"being applied": {
			cluster: assigned("east", &protocol.WorkState{}), onCluster: picked + "ResourceApplied=False ApplyInProgress: Resources are being applied",
			onPlacement: "ClusterResourcePlacementSynchronized=True SynchronizeSucceeded: All 1 cluster(s) are synchronized to the latest resources on the hub cluster",
		},
		"not applied": {
			cluster:     applied(objectState("one", refused, protocol.Verdict{})),
			onCluster:   picked + "ResourceApplied=False ApplyFailed: Failed to apply manifests, please check the `failedPlacements` status",
			onPlacement: "ClusterResourcePlacementSynchronized=True SynchronizeSucceeded: All 1 cluster(s) are synchronized to the latest resources on the hub cluster",
		},
		"waiting": {
			cluster:     change(applied(), func(c *plan.OnCluster) { c.Binding.Assigned, c.Waits = oldContent, "maxUnavailable 1 reached" }),
			onCluster:   strings.TrimSuffix(picked, "; "),
			onPlacement: "ClusterResourcePlacementSynchronized=False RolloutNotStartedYet: The rollout is being blocked by the rollout strategy in 1 cluster(s)",
		},
		"missing":       {cluster: applied(), unscheduled: true, onCluster: "ResourceScheduled=False ScheduleFailed: not east"},
		"current names": {cluster: applied(), currentNames: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(test.cluster)
			if !test.currentNames {
				b.in.Conditions = DocumentedConditions
			}
			b.p.Schedule = placement.Outcome{Fulfilled: true, Wanted: 1, Found: 1, Decisions: []placement.Decision{{Cluster: "east", Selected: true, Reason: `picked "east"`}}}
			if test.unscheduled {
				b.p.Schedule = placement.Outcome{Wanted: 1, Decisions: []placement.Decision{{Cluster: "east", Reason: `not "east"`}}}
			}
			s := b.status()
			if got := scheduled(b.clusters("3", nil)[0].Conditions); got != test.onCluster {
				t.Errorf("on the cluster:\n%s\nwant\n%s", got, test.onCluster)
			}
			if got := scheduled(s.Conditions); got != test.onPlacement {
				t.Errorf("of the placement:\n%s\nwant\n%s", got, test.onPlacement)
			}
		})
	}
}

// The metadata of a placement says where it comes from and what happened to it.
func TestMetadataOfAPlacement(t *testing.T) {
	b := newBuilder()
	b.p.Spec.Origin = api.Origin{Path: "web.yaml", Line: 3}
	b.p.Spec.Labels, b.p.Spec.Annotations = map[string]string{"team": "shop"}, map[string]string{"note": "x"}
	plain := b.meta()
	if plain.Name != "web" || plain.Generation != 2 || !plain.CreationTimestamp.Time.Equal(noon.Add(-time.Hour)) || plain.Labels["team"] != "shop" ||
		len(plain.Annotations) != 2 || plain.Annotations["note"] != "x" || plain.Annotations[api.PathAnnotation] != "web.yaml:3" {
		t.Errorf("metadata %+v", plain)
	}
	b.p.Record.Commit = "v7"
	b.p.Record.Formerly = []api.PlacementKey{{Name: "a"}, {Name: "b"}}
	b.in.Ledger.Suspend(ledger.Suspension{Subject: ledger.Subject{Placement: b.p.Key}, By: "jo", Reason: "INC-1", Until: noon.Add(time.Hour)})
	all := b.meta().Annotations
	if all[api.CommitAnnotation] != "v7" || all[api.RenamedFromAnnotation] != "crp/b" || all[api.SuspendedAnnotation] != "suspended by jo until 2026-03-01T13:00:00Z: INC-1" {
		t.Errorf("annotations %v", all)
	}
	b.in.Now = noon.Add(time.Hour)
	if got, found := b.meta().Annotations[api.SuspendedAnnotation]; found {
		t.Errorf("after the suspension has ended: %q", got)
	}
	if len(b.p.Spec.Annotations) != 1 {
		t.Errorf("the annotations of the manifest were changed: %v", b.p.Spec.Annotations)
	}
}

// The condition DeletionsHeld counts the objects and clusters, names the first object and says what
// to do. Deletions that a commit has allowed since do not count.
func TestDeletionsBlocked(t *testing.T) {
	braking := func(cluster string, objects ...string) *plan.OnCluster {
		seen := done()
		seen.Incidents = &protocol.Incidents{}
		for _, name := range objects {
			seen.Incidents.BlockedDeletions = append(seen.Incidents.BlockedDeletions, protocol.BlockedDeletion{ID: api.ID{Kind: "Namespace", Name: name}, Why: "it is not empty"})
		}
		return assigned(cluster, seen)
	}
	allowed := func(c *plan.OnCluster) { c.DeleteAllowed = true }
	const advice = `: it is not empty; if that is a mistake, correct the placement or put back what was removed; otherwise add the trailer "Gitfleet-Allow-Delete: crp/web" to the message of a commit`
	for name, test := range map[string]struct {
		clusters []*plan.OnCluster
		want     string
	}{
		"none":                   {[]*plan.OnCluster{braking("east"), assigned("west", nil)}, ""},
		"on two of three":        {[]*plan.OnCluster{braking("east"), braking("north", "b", "c"), braking("west", "d")}, "Deleting 3 object(s) on 2 cluster(s) is blocked, such as Namespace/b on north" + advice},
		"allowed by a commit":    {[]*plan.OnCluster{change(braking("east", "a"), allowed)}, ""},
		"allowed on one of them": {[]*plan.OnCluster{change(braking("east", "a"), allowed), braking("west", "b")}, "Deleting 1 object(s) on 1 cluster(s) is blocked, such as Namespace/b on west" + advice},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(test.clusters...)
			v, held := conditions.DeletionsBlocked(b.p, test.clusters...)
			if held != (test.want != "") || v.Message != test.want {
				t.Errorf("%t: %s\nwant %s", held, v.Message, test.want)
			}
			if held && (v.Status != metav1.ConditionTrue || v.Reason != api.AllowedByNoCommit) {
				t.Errorf("%+v", v)
			}
		})
	}
}

// A status that is shown in a namespace needs a placement that selects the namespace.
func TestStatusInANamespace(t *testing.T) {
	namespace := func(name string) []api.ResourceSelectorTerm {
		return []api.ResourceSelectorTerm{{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "x"}, {Kind: "Namespace", Name: name}}
	}
	for name, test := range map[string]struct {
		terms    []api.ResourceSelectorTerm
		selected string // the name of the selected namespace
		want     string
	}{
		"selected":              {namespace("shop"), "shop", "True StatusSyncSucceeded: Successfully created or updated ClusterResourcePlacementStatus in namespace 'shop'"},
		"does not exist":        {namespace("shop"), "", `False StatusSyncFailed: Failed to create or update ClusterResourcePlacementStatus: the placement does not select the namespace "shop"`},
		"selected by its label": {namespace(""), "shop", "False StatusSyncFailed: Failed to create or update ClusterResourcePlacementStatus: the placement names no namespace"},
		"no namespace":          {nil, "", "False StatusSyncFailed: Failed to create or update ClusterResourcePlacementStatus: the placement names no namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder()
			b.p.Spec.Spec.ResourceSelectors, b.p.Spec.Spec.StatusReportingScope = test.terms, api.NamespaceAccessible
			selected := []api.ResourceIdentifier{{Group: "x", Kind: "Namespace", Name: "shop"}}
			if test.selected != "" {
				selected = append(selected, api.ResourceIdentifier{Kind: "Namespace", Name: test.selected})
			}
			conditions := b.conditions(&api.PlacementStatus{SelectedResources: selected})
			last := conditions[len(conditions)-1]
			if last.Type != "ClusterResourcePlacementStatusSynced" || textOf(&last) != test.want {
				t.Errorf("%s %s\nwant %s", last.Type, textOf(&last), test.want)
			}
			of := &api.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", CreationTimestamp: metav1.NewTime(noon)}, Status: api.PlacementStatus{Conditions: conditions}}
			m := b.mirror(of, nil)
			if shown := strings.HasPrefix(test.want, "True"); (m != nil) != shown {
				t.Fatalf("shown: %+v", m)
			}
			if m != nil && (m.Namespace != "shop" || m.Name != "web" || len(m.SourceStatus.Conditions) != len(conditions)-1 || !m.LastUpdatedTime.Time.Equal(noon)) {
				t.Errorf("shown: %+v", m)
			}
		})
	}
}

// A status is shown in a namespace only for cluster-scoped placements that ask for it, and it is
// the same object while nothing has changed.
func TestStatusInANamespaceStaysTheSameObject(t *testing.T) {
	b := newBuilder()
	b.p.Spec.Spec.ResourceSelectors = []api.ResourceSelectorTerm{{Kind: "Namespace", Name: "shop"}}
	synced := metav1.Condition{Type: "ClusterResourcePlacementStatusSynced", Status: metav1.ConditionTrue}
	object := func(message string) *api.ClusterResourcePlacement {
		return &api.ClusterResourcePlacement{Status: api.PlacementStatus{Conditions: []metav1.Condition{{Type: "ClusterResourcePlacementScheduled", Message: message}, synced}}}
	}
	first := object("a")
	if m := b.mirror(first, nil); m != nil {
		t.Errorf("nobody asked for it: %+v", m)
	}
	b.p.Spec.Spec.StatusReportingScope = api.NamespaceAccessible
	old := &placementEntry{cluster: first}
	old.mirror = b.mirror(first, nil)
	if old.mirror == nil {
		t.Fatal("it is not shown")
	}
	if m := b.mirror(first, old); m != old.mirror {
		t.Error("another object for the same placement")
	}
	if m := b.mirror(object("a"), old); m != old.mirror {
		t.Error("another object for an equal status")
	}
	if m := b.mirror(object("b"), old); m == old.mirror || m == nil {
		t.Errorf("the same object for another status: %+v", m)
	}
	b.p.Spec.Spec.ResourceSelectors[0].Name = "docs"
	if m := b.mirror(object("a"), old); m == nil || m.Namespace != "docs" {
		t.Errorf("in another namespace: %+v", m)
	}
	b.p.Key.Namespace = "shop"
	if m := b.mirror(object("c"), old); m != nil {
		t.Errorf("of a namespaced placement: %+v", m)
	}
}
