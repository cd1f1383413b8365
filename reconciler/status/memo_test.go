package status_test

import (
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

// renewed returns the names of the objects whose pointers have changed between two reports. It
// reads all lists of pointers in a report.
func renewed(before, after *status.Report) []string {
	old := map[any]bool{}
	eachPointer(before, func(p any) { old[p] = true })
	var out []string
	eachPointer(after, func(p any) {
		if old[p] {
			return
		}
		switch o := p.(type) {
		case *status.Detail:
			out = append(out, o.Placement)
		case metav1.Object:
			out = append(out, path.Join(o.GetNamespace(), o.GetName()))
		}
	})
	return out
}

// eachPointer calls do with each item of the lists of pointers in a report that was built.
func eachPointer(r *status.Report, do func(any)) {
	for p := range r.EachClusterResourcePlacement() {
		do(p)
	}
	for p := range r.EachResourcePlacement() {
		do(p)
	}
	for s := range r.EachPlacementStatus() {
		do(s)
	}
	of := reflect.ValueOf(r).Elem()
	for i := range of.NumField() {
		list := of.Field(i)
		if !of.Type().Field(i).IsExported() || list.Kind() != reflect.Slice || list.Type().Elem().Kind() != reflect.Pointer {
			continue
		}
		for j := range list.Len() {
			do(list.Index(j).Interface())
		}
	}
}

// The pointers of two reports differ exactly for the objects that have changed. So changes can
// be found without comparing everything.
func TestOnlyChangedObjectsHaveNewPointers(t *testing.T) {
	s := settled(t, 10, 5)
	two := world.Files(t, "clusters c0000 c0001\nnamespace p0000\nnamespace p0001\nplace p0000\nplace p0001\n")
	tests := []struct {
		name   string
		happen func()
		want   []string
	}{
		{"nothing", func() {}, nil},
		{"a member says the same again", func() { s.says("c0003", s.last.Works["c0003"][0], 0) }, nil},
		{"a member says something new", func() { s.says("c0003", s.last.Works["c0003"][2], 1) }, []string{"p0002", "crp/p0002"}},
		{"a member has not applied all", func() {
			w := s.last.Works["c0003"][2]
			missing := []protocol.ObjectState{{ID: w.Manifests[0].ID, Pending: true}}
			s.in.Ledger.Fold(protocol.WorkSeen{Cluster: "c0003", Placement: w.Placement, At: s.now, WorkState: protocol.WorkState{Revision: w.Revision, Done: true, Total: len(w.Manifests), Exceptions: missing}})
		}, []string{"p0002"}},
		{"a member reconnects", func() {
			w := s.last.Works["c0003"][3]
			s.in.Ledger.Fold(protocol.WorkSeen{Cluster: "c0003", Placement: w.Placement, At: s.now, WorkState: protocol.WorkState{Revision: w.Revision, Total: len(w.Manifests)}})
		}, []string{"crp/p0003"}}, // whose budget does not rely on what was available before
		{"a cluster is seen again", func() {
			s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: "c0004", At: s.now, Healthy: true})
		}, []string{"c0004"}},
		{"a cluster is down", func() {
			s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: "c0004", At: s.now, Error: "no route to host"})
		}, []string{"c0004"}},
		{"a commit that removes most", func() { s.commit("v2", two) }, []string{"c0000", "c0001"}},
		{"a commit that changes one of two", func() {
			s.commit("v3", world.Files(t, "clusters c0000 c0001\nnamespace p0000\nnamespace p0001\nconfigmap p0001/new\nplace p0000\nplace p0001\n"))
		}, []string{"p0001", "crp/p0001"}},
	}
	for _, test := range tests {
		before := s.build()
		s.now = s.now.Add(time.Second)
		test.happen()
		s.resolve()
		after := s.build()
		s.remember(after)
		got := renewed(before, after)
		if test.name == "a commit that removes most" {
			continue // what is left of the fleet is another fleet
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: new are %v, want %v", test.name, got, test.want)
		}
	}
}

// A placement that is not decided yet has the time since when.
func TestPendingConditionKeepsItsTime(t *testing.T) {
	s := newScene(t)
	s.commit("v1", world.Files(t, "clusters a\nnamespace web\nplace web\n"))
	var since time.Time
	for range 3 {
		s.now = s.now.Add(time.Second)
		r := s.memo.Build(status.Input{Plan: plan.Pending(s.in.InForce), InForce: s.in.InForce, Ledger: s.in.Ledger, Now: s.now})
		c := slices.Collect(r.EachClusterResourcePlacement())[0].Status.Conditions[0]
		if since.IsZero() {
			since = c.LastTransitionTime.Time
		}
		if c.Reason != api.SchedulePending || !c.LastTransitionTime.Time.Equal(since) {
			t.Errorf("%s since %s, not %s", c.Reason, c.LastTransitionTime, since)
		}
	}
}

// Unchanged placements cost next to nothing, however many there are.
func TestUnchangedPlacementsAreNotBuiltAgain(t *testing.T) {
	cost := func(placements int) float64 {
		s := settled(t, 3, placements)
		return testing.AllocsPerRun(5, func() { s.build() })
	}
	if few, many := cost(3), cost(150); many > few+10 {
		t.Errorf("%.0f allocations for 150 placements, %.0f for 3", many, few)
	}
}

// Clients read a report while the next one, which shares much with it, is built. The race detector fails this test if what they
// share is written to.
func TestReportsAreReadWhileTheNextIsBuilt(t *testing.T) {
	s := settled(t, 3, 3)
	before := s.build()
	var readers sync.WaitGroup
	readers.Go(func() {
		for range 20 {
			before.Whole()
		}
	})
	for range 20 {
		s.build()
	}
	readers.Wait()
}

// The report says which objects wait for the garbage collector; a change of that is an event.
func TestObjectsThatWaitForTheGarbageCollector(t *testing.T) {
	const collects = " (until the garbage collector has deleted what was made of it)"
	s := settled(t, 1, 1)
	w := s.last.Works["c0000"][0]
	web, db := api.ID{Group: "apps", Kind: "Deployment", Namespace: "p0000", Name: "web"}, api.ID{Kind: "Secret", Namespace: "p0000", Name: "db"}
	for _, collecting := range [][]api.ID{nil, {web}, {web, db}} {
		s.now = s.now.Add(time.Second)
		s.in.Ledger.Fold(protocol.WorkSeen{Cluster: "c0000", Placement: w.Placement, At: s.now, WorkState: protocol.WorkState{Revision: w.Revision, Incidents: &protocol.Incidents{Lingering: []api.ID{web, db}, Collecting: collecting}}})
		s.resolve()
		var got []string
		for _, text := range s.build().Whole().Details[0].Clusters[0].Lingering {
			if strings.HasSuffix(text, collects) {
				got = append(got, strings.TrimSuffix(text, collects))
			}
		}
		var want []string
		for _, id := range collecting {
			want = append(want, id.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("it waits with the collector for %q, want %q", got, want)
		}
	}
}
