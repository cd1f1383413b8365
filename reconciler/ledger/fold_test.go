package ledger

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// drawObservations draws reports that a member may have sent in an hour, about clusters and
// placements, each at a different minute.
func drawObservations(t *rapid.T) []protocol.Observation {
	var all []protocol.Observation
	for minute := range rapid.IntRange(1, 20).Draw(t, "observations") {
		cluster := rapid.SampledFrom([]string{"east", "west", "nowhere"}).Draw(t, "cluster")
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			o := protocol.ClusterSeen{
				Cluster: cluster, At: at(minute), Healthy: rapid.Bool().Draw(t, "healthy"), UID: "uid-" + cluster,
				Properties: map[string]string{"nodes": fmt.Sprint(rapid.IntRange(1, 2).Draw(t, "nodes"))}, Namespaces: []string{"default"},
			}
			if !o.Healthy {
				o.Error = "no answer"
			}
			all = append(all, o)
		case 1:
			all = append(all, fine(cluster, rapid.IntRange(1, 2).Draw(t, "revision"), minute))
		case 2:
			all = append(all, failing(cluster, rapid.IntRange(1, 2).Draw(t, "revision"), minute))
		}
	}
	return all
}

// facts returns the content of a ledger without times.
func facts(t testing.TB, l *Ledger) string {
	bare := New()
	for _, name := range l.Clusters() {
		c := *l.Cluster(name)
		bare.clusters[name] = &Cluster{ClusterSeen: c.ClusterSeen}
	}
	for _, key := range l.Placements() {
		bare.SetPlacement(key, Placement{})
		for _, e := range l.Placement(key).Entries() {
			next := Entry{Binding: e.Binding}
			if e.Seen != nil {
				seen := *e.Seen
				seen.Exceptions = slices.Clone(seen.Exceptions)
				for i := range seen.Exceptions {
					seen.Exceptions[i].Applied.Since = noon
				}
				next.Seen = &seen
			}
			bare.placements[key].entries.put(&next)
		}
	}
	return dump(t, bare)
}

// The order and repetition of observations does not matter: the newest about each subject
// counts. Reports about placements that do not hold the cluster are dropped.
func TestFoldInAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		said := drawObservations(rt)
		straight, mixed := bound(), bound()
		for _, o := range said {
			straight.Fold(o)
		}
		often := rapid.Permutation(append(slices.Clone(said), said...)).Draw(rt, "order")
		for _, o := range often {
			mixed.Fold(o)
		}
		if got, want := facts(t, mixed), facts(t, straight); got != want {
			rt.Fatalf("mixed:\n%s\nin order:\n%s", got, want)
		}
		if len(straight.Placement(web).Entries()) != 2 {
			rt.Fatal("an observation made a binding")
		}
	})
}

// Folding an observation a second time changes nothing and reports no change.
func TestFoldTwiceIsFoldOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		said := drawObservations(rt)
		l := bound()
		for _, o := range said {
			l.Fold(o)
		}
		before, version := dump(t, l), l.changes
		for _, o := range said {
			if l.Fold(o) {
				rt.Fatalf("%+v is said to be news", o)
			}
		}
		if got := dump(t, l); got != before || l.changes != version {
			rt.Fatalf("told twice:\n%s\nonce:\n%s", got, before)
		}
	})
}

// Reports of different members can be interleaved in any way.
func TestMembersDoNotDisturbEachOther(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		said := drawObservations(rt)
		straight, apart := bound(), bound()
		by := map[string][]protocol.Observation{}
		for _, o := range said {
			straight.Fold(o)
			by[clusterOf(o)] = append(by[clusterOf(o)], o)
		}
		for _, cluster := range rapid.Permutation(slices.Sorted(maps.Keys(by))).Draw(rt, "order") {
			for _, o := range by[cluster] {
				apart.Fold(o)
			}
		}
		if got, want := dump(t, apart), dump(t, straight); got != want {
			rt.Fatalf("member by member:\n%s\nas it came:\n%s", got, want)
		}
	})
}

func clusterOf(o protocol.Observation) string {
	if c, ok := o.(protocol.ClusterSeen); ok {
		return c.Cluster
	}
	return o.(protocol.WorkSeen).Cluster
}

// Fold does not change its argument, which members continue to use.
func TestFoldLeavesTheObservationAlone(t *testing.T) {
	o := failing("east", 1, 1)
	bound().Fold(o)
	if !o.Exceptions[0].Applied.Since.IsZero() {
		t.Error("a time was written into the observation")
	}
}

// A probe that has read only some facts does not remove the others.
func TestProbeKeepsWhatItDidNotLookAt(t *testing.T) {
	l := New()
	l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(0), Healthy: true, UID: "u", Properties: map[string]string{"nodes": "3"}, Namespaces: []string{"web"}})
	if l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(1), Healthy: true}) {
		t.Error("a probe without news is said to be news")
	}
	c := l.Cluster("east")
	if c.UID != "u" || c.Properties["nodes"] != "3" || !slices.Equal(c.Namespaces, []string{"web"}) || c.LastSeen != at(1) || c.Joined != at(0) {
		t.Errorf("after a short probe: %+v", c)
	}
	if !l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(2), Error: "no answer"}) || !l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(3), Healthy: true, Namespaces: []string{}}) {
		t.Error("news is not said to be news")
	}
	if c := l.Cluster("east"); c.Since != at(3) || len(c.Namespaces) != 0 {
		t.Errorf("after an outage: %+v", c)
	}
}

// What only an earlier observation has read is added to a later one, and nothing else.
func TestObservationsAfterEarlierOnes(t *testing.T) {
	whole := protocol.ClusterSeen{
		Cluster: "east", At: at(0), Healthy: true, UID: "u", Properties: map[string]string{"nodes": "3"}, Namespaces: []string{"web"},
		Inventories: []protocol.InventorySeen{{Placement: web}}, Owners: []protocol.Owner{{ID: "theirs"}},
	}
	with := func(change func(*protocol.ClusterSeen)) protocol.ClusterSeen {
		o := whole
		change(&o)
		return o
	}
	for name, test := range map[string]struct{ earlier, later, want protocol.ClusterSeen }{
		"the later one read nothing": {whole, protocol.ClusterSeen{Cluster: "east", At: at(1), Error: "no answer"}, with(func(o *protocol.ClusterSeen) { o.At, o.Healthy, o.Error = at(1), false, "no answer" })},
		"it read everything":         {protocol.ClusterSeen{UID: "old", Properties: map[string]string{}, Namespaces: []string{"old"}}, whole, whole},
		"nothing is there any more":  {whole, protocol.ClusterSeen{Namespaces: []string{}, Inventories: []protocol.InventorySeen{}, Owners: []protocol.Owner{}}, protocol.ClusterSeen{UID: "u", Properties: whole.Properties, Namespaces: []string{}, Inventories: []protocol.InventorySeen{}, Owners: []protocol.Owner{}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.later.After(test.earlier); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v\nwant %+v", got, test.want)
			}
		})
	}
}

// A checkpoint undoes suspensions, adoptions and changes of placements. They are still saved,
// since a save may have failed halfway.
func TestCheckpoint(t *testing.T) {
	l := ours("ours")
	l.SetPlacement(web, Placement{Rebuilt: true})
	l.Suspend(Suspension{Subject: Subject{Cluster: "east"}, By: "sam"})
	l.Fold(found("west", 1, protocol.Owner{ID: "theirs", Source: "git.example.com/other"}))
	if err := Memory().Save(l); err != nil {
		t.Fatal(err)
	}
	before, undo := dump(t, l), l.Checkpoint()
	l.Resume(Subject{Cluster: "east"}, at(9))
	l.Suspend(Suspension{Subject: Subject{Placement: web}, By: "sam"})
	l.ResumeRollout(web, at(2))
	l.SetPlacement(web, Placement{})
	l.Adopt(protocol.Adoption{Cluster: "west", ID: "theirs"})
	l.AddEvents([]Event{happened("east", "up", 2)})
	if dump(t, l) == before {
		t.Fatal("nothing has changed")
	}
	if undo(); dump(t, l) != before || !l.Urgent() {
		t.Errorf("undone: %s\nwant: %s", dump(t, l), before)
	}
}

// ForbiddenSince is kept while any permission is missing, and each change of the missing
// permissions counts as a change.
func TestMissingPermissionsAreNews(t *testing.T) {
	l := New()
	steps := []struct {
		forbidden []string
		news      bool
		since     time.Time
		says      string
	}{
		{nil, true, time.Time{}, ""},
		{[]string{"list configmaps"}, true, at(1), "permissions are missing: list configmaps: grant them to the user whose credentials gitfleet uses there"},
		{[]string{"list configmaps"}, false, at(1), "permissions are missing: list configmaps: grant"},
		{[]string{"get namespaces", "list configmaps"}, true, at(1), "permissions are missing: get namespaces; list configmaps: grant"},
		{nil, true, time.Time{}, ""},
		{[]string{"list configmaps"}, true, at(5), "permissions are missing: list configmaps: grant"},
	}
	for i, step := range steps {
		news := l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(i), Healthy: true, Forbidden: step.forbidden})
		c := l.Cluster("east")
		if news != step.news || c.ForbiddenSince != step.since || !strings.HasPrefix(c.Denied(), step.says) || step.says == "" && c.Denied() != "" {
			t.Errorf("%d: news %t, since %s: %q", i, news, c.ForbiddenSince, c.Denied())
		}
	}
}

// UnrenewedSince is kept while replaced credentials cannot be used, for whatever reason.
func TestUnusableCredentialsHaveATime(t *testing.T) {
	l := New()
	for i, step := range []struct {
		unrenewed string
		since     time.Time
	}{{"", time.Time{}}, {"no such file", at(1)}, {"Unauthorized", at(1)}, {"", time.Time{}}, {"Unauthorized", at(4)}} {
		l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(i), Healthy: true, Unrenewed: step.unrenewed})
		if c := l.Cluster("east"); c.UnrenewedSince != step.since || !strings.HasSuffix(c.Outdated(), step.unrenewed) || (c.Outdated() == "") != (step.unrenewed == "") {
			t.Errorf("%d: since %s: %q", i, c.UnrenewedSince, c.Outdated())
		}
	}
}

// A ledger without bindings of a cluster takes them from the cluster's inventories, which never
// replace existing bindings.
func TestRebuiltFromWhatClustersHold(t *testing.T) {
	l := New()
	old := api.PlacementKey{Name: "old"}
	holds := func(minute int) protocol.ClusterSeen {
		return protocol.ClusterSeen{Cluster: "east", At: at(minute), Healthy: true, Inventories: []protocol.InventorySeen{
			{Placement: web, Revision: v(1)}, {Placement: old, Revision: v(7), Abandon: true},
		}}
	}
	if !l.Fold(holds(1)) {
		t.Error("a rebuilt ledger is said to be no news")
	}
	b := l.Placement(web).Entry("east").Binding
	if b.Assigned != v(1) || b.AssignedAt != at(1) || b.Policy != "" {
		t.Errorf("rebuilt: %+v", b)
	}
	if p := l.Placement(old); !p.Abandon || !p.Rebuilt || p.Index != -1 || p.Generation != 0 {
		t.Errorf("rebuilt: %+v", p)
	}

	store := Memory()
	if err := store.Save(l); err != nil {
		t.Fatal(err)
	}
	if again, err := store.Load(); err != nil || !again.Placement(web).Rebuilt {
		t.Errorf("that it was rebuilt is forgotten: %v", err)
	}
	if !strings.Contains(dump(t, l), `"Found":true`) { // as earlier versions write and read it
		t.Errorf("the field Found is missing:\n%s", dump(t, l))
	}

	b.Assigned, b.Policy = v(2), "policy"
	l.Bind(web, b)
	l.SetPlacement(web, Placement{Generation: 1})
	before := dump(t, l)
	if l.Fold(holds(1)) || dump(t, l) != before {
		t.Error("a ledger that knows was rebuilt")
	}
	east := holds(2)
	east.Cluster = "west"
	if l.Fold(east); l.Placement(web).Entry("west") == nil || l.Placement(web).Rebuilt {
		t.Errorf("of what was decided one more cluster is found: %+v", l.Placement(web))
	}
}

// Entries with equal reports share one, whatever differs in the times and in the serial numbers of the inventories, also after a restart.
// One that says anything else of the objects, or has exceptions or incidents, is not shared.
func TestEqualReportsAreShared(t *testing.T) {
	l, store, report := New(), Memory(), protocol.WorkState{Revision: v(1), Done: true, Total: 2}
	l.SetPlacement(web, Placement{})
	bind := func(cluster string, n int, report protocol.WorkState) {
		l.Bind(web, placement.Binding{Cluster: cluster, Assigned: v(1), AssignedAt: at(0)})
		l.Fold(protocol.WorkSeen{Cluster: cluster, Placement: web, At: at(n), Inventory: uint64(n), WorkState: report})
	}
	bind("east", 1, report)
	bind("west", 2, report)
	for range 2 {
		p := l.Placement(web)
		if east, west := p.Entry("east"), p.Entry("west"); east.Seen != west.Seen || !reflect.DeepEqual(*east.Seen, report) || !west.SeenAt().Equal(at(2)) || RecordOf(l, "west").Inventories[web] != 2 {
			t.Errorf("%+v is not %+v", east, west)
		}
		l = saveAndLoad(t, store, l)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[protocol.WorkState]()) {
		if len(field.Index) > 1 {
			continue // a part of another field
		}
		other := report
		switch in := reflect.ValueOf(&other).Elem().FieldByIndex(field.Index); in.Kind() {
		case reflect.Bool:
			in.SetBool(!in.Bool())
		case reflect.Int:
			in.SetInt(7)
		case reflect.Slice:
			in.Set(reflect.MakeSlice(in.Type(), 1, 1))
		case reflect.Pointer:
			in.Set(reflect.New(in.Type().Elem()))
		default:
			other.Revision.Labels = "tier=gold"
		}
		bind("north", 3, report)
		bind("north", 4, other)
		if e := l.Placement(web).Entry("north"); reflect.DeepEqual(*e.Seen, report) {
			t.Errorf("the report with another %s is shared", field.Name)
		}
	}
}
