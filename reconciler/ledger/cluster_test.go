package ledger

import (
	"maps"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// declares makes a commit declare some member clusters.
func declares(l *Ledger, names ...string) {
	all := map[api.ID]DeclaredHashes{}
	for _, name := range names {
		all[memberID(name)] = DeclaredHashes{Hash: name}
	}
	l.Declare("c1", at(0), maps.All(all))
}

// Of two names of one cluster, the second is refused: the one that is not in the claim on the
// cluster, or under which the cluster was seen later.
func TestSecondNameOfAClusterIsRefused(t *testing.T) {
	tests := map[string]struct {
		seen []protocol.ClusterSeen
		want map[string]string // the holder of the cluster, by the name that is refused
	}{
		"two clusters":              {[]protocol.ClusterSeen{{Cluster: "a", UID: "1"}, {Cluster: "b", UID: "2"}}, nil},
		"no identity":               {[]protocol.ClusterSeen{{Cluster: "a"}, {Cluster: "b"}}, nil},
		"one cluster":               {[]protocol.ClusterSeen{{Cluster: "b", UID: "1"}, {Cluster: "a", UID: "1"}}, map[string]string{"a": "b"}},
		"three names":               {[]protocol.ClusterSeen{{Cluster: "c", UID: "1"}, {Cluster: "b", UID: "1"}, {Cluster: "a", UID: "1"}}, map[string]string{"a": "c", "b": "c"}},
		"a claim decides":           {[]protocol.ClusterSeen{{Cluster: "b", UID: "1", Owners: []protocol.Owner{}, Claimant: "a"}, {Cluster: "a", UID: "1"}}, map[string]string{"b": "a"}},
		"the claimant is silent":    {[]protocol.ClusterSeen{{Cluster: "b", UID: "1", Owners: []protocol.Owner{}, Claimant: "a"}}, map[string]string{"b": "a"}},
		"the claimant has another":  {[]protocol.ClusterSeen{{Cluster: "a", UID: "2"}, {Cluster: "b", UID: "1", Owners: []protocol.Owner{}, Claimant: "a"}}, nil},
		"a claim of nobody":         {[]protocol.ClusterSeen{{Cluster: "b", UID: "1", Owners: []protocol.Owner{}, Claimant: "gone"}}, nil},
		"a claim without a UID":     {[]protocol.ClusterSeen{{Cluster: "a", UID: "1"}, {Cluster: "b", Owners: []protocol.Owner{}, Claimant: "a"}}, map[string]string{"b": "a"}},
		"it leads to another again": {[]protocol.ClusterSeen{{Cluster: "a", UID: "1"}, {Cluster: "b", UID: "1"}, {Cluster: "b", UID: "2"}}, nil},
		"a kubeconfig was replaced": {[]protocol.ClusterSeen{{Cluster: "a", UID: "1"}, {Cluster: "b", UID: "2"}, {Cluster: "a", UID: "2"}}, map[string]string{"a": "b"}},
		"both were exchanged":       {[]protocol.ClusterSeen{{Cluster: "a", UID: "1"}, {Cluster: "b", UID: "2"}, {Cluster: "a", UID: "2"}, {Cluster: "b", UID: "1"}}, nil},
		"a cluster was rebuilt":     {[]protocol.ClusterSeen{{Cluster: "a", UID: "1"}, {Cluster: "a", UID: "2"}}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := New()
			declares(l, "a", "b", "c")
			for i, o := range test.seen {
				o.At, o.Healthy = at(i), true
				l.Fold(o)
			}
			again := readAgain(t, l)
			for _, cluster := range []string{"a", "b", "c"} {
				holder := l.SameAs(cluster)
				if holder != test.want[cluster] || again.SameAs(cluster) != holder {
					t.Errorf("%s is the same as %q, after a restart as %q, want %q", cluster, holder, again.SameAs(cluster), test.want[cluster])
				}
				if why := l.Refusal(cluster); (why != "") != (holder != "") || !strings.Contains(why, holder) {
					t.Errorf("refused: %q", why)
				}
				if m := l.Membership(cluster); m.SameAs != holder || m.UID != "" && holder != "" {
					t.Errorf("membership of %s: %+v", cluster, m)
				}
			}
		})
	}
}

// readAgain returns a ledger as it is read from its records.
func readAgain(t *testing.T, l *Ledger) *Ledger {
	t.Helper()
	store := Memory()
	if err := store.Save(l); err != nil {
		t.Fatal(err)
	}
	again, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// Inventories that were found under a refused name are not that member's, until the name that
// holds the cluster is gone.
func TestRefusedNameHoldsNothing(t *testing.T) {
	key := api.PlacementKey{Name: "web"}
	holds := []protocol.InventorySeen{{Placement: key, Revision: placement.Revision{Commit: "c1", Hash: "h1"}}}
	l := New()
	declares(l, "a", "b")
	l.Fold(protocol.ClusterSeen{Cluster: "a", At: at(0), Healthy: true, UID: "1", Inventories: holds, Owners: []protocol.Owner{}, Claimant: "a"})
	l.Fold(protocol.ClusterSeen{Cluster: "b", At: at(1), Healthy: true, UID: "1", Inventories: holds, Owners: []protocol.Owner{}, Claimant: "a"})
	if l.HasBinding("b") || !l.HasBinding("a") {
		t.Fatal("a refused name holds something")
	}
	declares(l, "b")
	if l.SameAs("b") != "a" {
		t.Error("a name holds the cluster before the other one has left")
	}
	l.RenameCluster("a", "b")
	e := l.Placement(key).Entry("b")
	if l.SameAs("b") != "" || l.Cluster("a") != nil || l.HasBinding("a") || e == nil || !e.Binding.Inherited {
		t.Errorf("after the rename: %+v", e)
	}
	if m := l.Membership("b"); m.UID != "1" || m.Formerly != "a" {
		t.Errorf("membership: %+v", m)
	}
}

// A renamed cluster keeps its bindings, stops and suspensions.
func TestRenamedClusterKeepsItsRecords(t *testing.T) {
	key := api.PlacementKey{Name: "web"}
	l := New()
	l.SetPlacement(key, Placement{Stops: []placement.Stop{{Cluster: "a"}, {Cluster: "c"}}})
	l.Bind(key, placement.Binding{Cluster: "a", Policy: "p", Assigned: placement.Revision{Hash: "h1"}})
	l.Fold(protocol.ClusterSeen{Cluster: "a", At: at(0), Healthy: true, UID: "1"})
	l.Fold(protocol.ClusterSeen{Cluster: "b", At: at(1), Healthy: true, UID: "1"})
	l.Fold(protocol.WorkSeen{Cluster: "a", Placement: key, At: at(1), WorkState: protocol.WorkState{Done: true}})
	l.Suspend(Suspension{Subject: Subject{Cluster: "a"}})
	l.RenameCluster("a", "b")
	p := readAgain(t, l).Placement(key)
	e := p.Entry("b")
	if e == nil || e.Binding.Cluster != "b" || e.Binding.Policy != "" || e.Binding.Assigned.Hash != "h1" || e.Seen == nil {
		t.Fatalf("entry: %+v", e)
	}
	if p.Entry("a") != nil || len(p.Stops) != 2 || p.Stops[0].Cluster != "b" || p.Stops[1].Cluster != "c" {
		t.Errorf("stops: %+v", p.Stops)
	}
	if _, suspended := l.Suspension(Subject{Cluster: "b"}); !suspended {
		t.Error("the suspension has ended")
	}
}

// An agent starts with the version of its cluster and the serial numbers of its inventories, as last
// reported. An inventory that is being removed may be gone.
func TestRecordOfAMember(t *testing.T) {
	l := New()
	l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(0), Healthy: true, UID: "1", Version: 222})
	l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(1), Healthy: true}) // a probe that did not read it
	for name, removing := range map[string]bool{"web": false, "going": true} {
		p := api.PlacementKey{Name: name}
		l.SetPlacement(p, Placement{})
		l.Bind(p, placement.Binding{Cluster: "east", Removing: removing})
		l.Fold(protocol.WorkSeen{Cluster: "east", Placement: p, At: at(0), Inventory: 7})
	}
	r := RecordOf(l, "east")
	if r.UID != "1" || r.Version != 222 || !maps.Equal(r.Inventories, map[api.PlacementKey]uint64{{Name: "web"}: 7}) {
		t.Errorf("%+v", r)
	}
	if r := RecordOf(l, "west"); r.UID != "" || r.Version != 0 || len(r.Inventories) > 0 {
		t.Errorf("of a member that is not known: %+v", r)
	}
}

// Whoever reads all clusters once needs only those that are listed afterwards, unless the list says that it is not complete.
func TestClustersSince(t *testing.T) {
	seen := func(name string, change func(*protocol.ClusterSeen)) func(*Ledger) {
		o := protocol.ClusterSeen{Cluster: name, At: at(1), Healthy: true, UID: name}
		change(&o)
		return func(l *Ledger) { l.Fold(o) }
	}
	same := func(*protocol.ClusterSeen) {}
	for name, test := range map[string]struct {
		do       func(*Ledger)
		want     string
		complete bool
	}{
		"nothing":         {func(*Ledger) {}, "", true},
		"the same report": {seen("east", same), "east", true},
		"an outage":       {seen("east", func(o *protocol.ClusterSeen) { o.Healthy = false }), "east", true},
		"a rival":         {seen("east", func(o *protocol.ClusterSeen) { o.Owners = []protocol.Owner{{ID: "other"}} }), "east", true},
		"two of them":     {func(l *Ledger) { seen("west", same)(l); seen("east", same)(l) }, "west east", true},
		"a new cluster":   {seen("north", same), "", false},
		"another UID":     {seen("east", func(o *protocol.ClusterSeen) { o.UID = "west" }), "", false},
		"a claim":         {seen("east", func(o *protocol.ClusterSeen) { o.Owners, o.Claimant = []protocol.Owner{}, "west" }), "", false},
		"one is gone":     {func(l *Ledger) { l.ForgetCluster("west") }, "", false},
		"a suspension":    {func(l *Ledger) { l.Suspend(Suspension{Subject: Subject{Cluster: "east"}}) }, "", false},
		"a resumed one":   {func(l *Ledger) { l.Resume(Subject{Cluster: "west"}, at(2)) }, "", false},
		"another fleet":   {func(l *Ledger) { l.SetFleet(protocol.Fleet{Name: "other"}) }, "", false},
		"a commit": {func(l *Ledger) {
			l.Declare("v1", at(2), maps.All(map[api.ID]DeclaredHashes{memberID("east"): {Hash: "1"}}))
		}, "", false},
		"the clock": {func(l *Ledger) { l.Rebase(at(2)) }, "", false},
		"many reports": {func(l *Ledger) {
			for range maxReplaced {
				seen("east", same)(l)
			}
		}, "", false},
		"what was undone": {func(l *Ledger) { undo := l.Checkpoint(); l.ForgetCluster("east"); ClustersSince(l, 0); undo() }, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			l := New()
			seen("east", same)(l)
			seen("west", same)(l)
			l.Suspend(Suspension{Subject: Subject{Cluster: "west"}})
			seen("west", same)(l)
			_, version, _ := ClustersSince(l, 0)
			test.do(l)
			names, next, complete := ClustersSince(l, version)
			if got := strings.Join(names, " "); complete != test.complete || got != test.want {
				t.Errorf("%q, complete: %t", got, complete)
			}
			if names, _, complete := ClustersSince(l, next); len(names) > 0 || !complete {
				t.Errorf("%q afterwards, complete: %t", names, complete)
			}
			if _, _, complete := ClustersSince(New(), next); complete {
				t.Error("the version counts for another ledger")
			}
		})
	}
}
