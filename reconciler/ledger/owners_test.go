package ledger

import (
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// The inventories of another ID from the same source are adopted only if they can be those of
// this fleet, whose ledger was lost: neither this fleet has worked there or seen the cluster
// otherwise, nor do other clusters have a third ID.
func TestInventoriesThatAreAdopted(t *testing.T) {
	theirs, third := protocol.Owner{ID: "theirs", Source: ourSource}, protocol.Owner{ID: "third", Source: ourSource}
	old, unknown := protocol.Owner{}, protocol.Owner{UnknownCommit: "c0ffee"}
	seen := func(all ...protocol.ClusterSeen) func(*Ledger) {
		return func(l *Ledger) {
			for _, o := range all {
				l.Fold(o)
			}
		}
	}
	tests := map[string]struct {
		before func(*Ledger)
		owner  protocol.Owner
		adopts bool
	}{
		"the cluster is new":                       {seen(), theirs, true},
		"it was there, and was not read":           {seen(protocol.ClusterSeen{Cluster: "east", At: at(0), Healthy: true}), theirs, true},
		"it had no inventories":                    {seen(found("east", 0)), theirs, false},
		"it had only ours":                         {seen(found("east", 0, protocol.Owner{ID: "ours", Source: ourSource})), theirs, false},
		"another cluster had none":                 {seen(found("west", 0)), theirs, true},
		"another cluster has ours":                 {seen(found("west", 0, protocol.Owner{ID: "ours", Source: ourSource})), theirs, true},
		"another cluster has the same":             {seen(found("west", 0, theirs)), theirs, true},
		"another cluster has some without an ID":   {seen(found("west", 0, protocol.Owner{Source: ourSource})), theirs, true},
		"another cluster has a third":              {seen(found("west", 0, third)), theirs, false},
		"another cluster has one of other source":  {seen(found("west", 0, protocol.Owner{ID: "third", Source: "git.example.com/other"})), theirs, true},
		"it was refused while there was a third":   {func(l *Ledger) { seen(found("west", 0, third), found("east", 0, theirs))(l); l.ForgetCluster("west") }, theirs, false},
		"an agent has worked there":                {func(l *Ledger) { worksOn(l, "east") }, theirs, false},
		"an agent has worked on another":           {func(l *Ledger) { worksOn(l, "west") }, theirs, true},
		"it was bound, and no agent has reported":  {func(l *Ledger) { l.SetPlacement(web, Placement{}); l.Bind(web, placement.Binding{Cluster: "east"}) }, theirs, true},
		"no ID, and the cluster had none":          {seen(found("east", 0)), old, true},
		"an unknown commit, and worked on another": {func(l *Ledger) { worksOn(l, "west") }, unknown, false},
		"an unknown commit, and only bound":        {func(l *Ledger) { l.SetPlacement(web, Placement{}); l.Bind(web, placement.Binding{Cluster: "east"}) }, unknown, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l, wantAdopted, wantRivals := ours("ours"), []protocol.Adoption{{Cluster: "east", ID: test.owner.ID, At: at(5)}}, []protocol.Owner(nil)
			if !test.adopts {
				wantAdopted, wantRivals = nil, []protocol.Owner{test.owner}
			}
			test.before(l)
			l.Fold(found("east", 5, test.owner))
			if got := l.Adopted("east"); !slices.Equal(got, wantAdopted) {
				t.Errorf("adopted %v, want %v", got, wantAdopted)
			}
			if got := l.Cluster("east").Rivals; !slices.Equal(got, wantRivals) {
				t.Errorf("rivals %v, want %v", got, wantRivals)
			}
		})
	}
}

// An adoption ends when the cluster has no inventories of that ID any more, and only for that
// cluster. Without the name of a fleet, nothing is adopted or refused.
func TestAdoptionEndsOnItsClusterOnly(t *testing.T) {
	l, theirs, own := ours("ours"), protocol.Owner{ID: "theirs", Source: ourSource}, protocol.Owner{ID: "ours", Source: ourSource}
	for _, cluster := range []string{"east", "west"} {
		l.Fold(found(cluster, 1, theirs))
	}
	l.Fold(found("east", 2, own))
	if east, west := admitted(l, "east"), admitted(l, "west"); len(east) > 0 || !slices.Equal(west, []string{"theirs"}) {
		t.Errorf("adopted on east %q, on west %q", east, west)
	}
	l.Fold(protocol.ClusterSeen{Cluster: "west", At: at(3), Error: "no answer"})
	if got := admitted(l, "west"); len(got) != 1 {
		t.Errorf("a probe that read nothing has ended the adoption: %q", got)
	}
	nameless := New()
	nameless.Fold(found("east", 1, theirs))
	if c := nameless.Cluster("east"); len(c.Rivals) > 0 || len(nameless.Adopted("east")) > 0 || nameless.Refusal("east") != "" {
		t.Errorf("without a name: rivals %v, adopted %v", c.Rivals, nameless.Adopted("east"))
	}
}

// Inventories that are read while the ID of the fleet is not known are taken up once it is, also
// after a probe that read nothing and a restart. They are taken up once.
func TestInventoriesWaitForTheFleetID(t *testing.T) {
	l := ours("")
	l.Fold(found("east", 1, protocol.Owner{ID: "old", Source: ourSource}))
	l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(2), Error: "no answer"})
	l = saveAndLoad(t, Memory(), l)
	if l.Placement(web) != nil {
		t.Fatal("taken up before the ID is known")
	}
	l.ResolveID("fresh")
	e := l.Placement(web).Entry("east")
	want := placement.Binding{Cluster: "east", Assigned: v(1), AssignedAt: at(2), Risked: true, WasAvailable: true}
	if e == nil || e.Binding != want || e.Seen != nil || l.Cluster("east").Inventories != nil || !l.Urgent() {
		t.Fatalf("taken up as %+v, want %+v", e, want)
	}
	l.Unbind(web, "east")
	if l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(2), Error: "no answer"}) || l.Placement(web).Entry("east") != nil {
		t.Error("an earlier reading was taken up again")
	}
}

// What a cluster of another fleet holds is not taken up later, unless it is read again after the
// adoption.
func TestRivalsInventoriesAreNotTakenUp(t *testing.T) {
	l, another := ours("ours"), protocol.Owner{ID: "theirs", Source: "git.example.com/other"}
	l.Fold(found("east", 1, another))
	l.Adopt(protocol.Adoption{Cluster: "east", ID: "theirs", By: "sam", At: at(2)})
	if l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(3), Healthy: true}); len(l.Placements()) > 0 {
		t.Errorf("taken up without another reading: %v", l.Placements())
	}
	version := l.PlacementsVersion()
	if !l.Fold(found("east", 4, another)) || l.Placement(web).Entry("east") == nil || l.PlacementsVersion() == version {
		t.Error("what was adopted is not taken up")
	}
}

// A change of each fact about a cluster, and nothing else, is a change that counts for a plan.
func TestFactsOfAClusterThatCount(t *testing.T) {
	whole := protocol.ClusterSeen{Cluster: "east", At: at(1), Healthy: true, UID: "u", Properties: map[string]string{"nodes": "3"}, Namespaces: []string{"web"}, Owners: []protocol.Owner{}}
	for name, test := range map[string]struct {
		change func(*protocol.ClusterSeen)
		want   bool
	}{
		"the time":          {func(o *protocol.ClusterSeen) { o.At = at(9) }, false},
		"an earlier time":   {func(o *protocol.ClusterSeen) { o.At, o.Healthy = at(0), false }, false},
		"the same time":     {func(o *protocol.ClusterSeen) { o.UID = "other" }, true},
		"health":            {func(o *protocol.ClusterSeen) { o.Healthy = false }, true},
		"the error":         {func(o *protocol.ClusterSeen) { o.Error = "no answer" }, true},
		"what is not read":  {func(o *protocol.ClusterSeen) { o.Unread = "forbidden" }, true},
		"credentials":       {func(o *protocol.ClusterSeen) { o.Unrenewed = "expired" }, true},
		"a property":        {func(o *protocol.ClusterSeen) { o.Properties = map[string]string{"nodes": "4"} }, true},
		"unread properties": {func(o *protocol.ClusterSeen) { o.Properties = nil }, false},
		"no properties":     {func(o *protocol.ClusterSeen) { o.Properties = map[string]string{} }, true},
		"a namespace":       {func(o *protocol.ClusterSeen) { o.Namespaces = []string{"web", "shop"} }, true},
		"unread namespaces": {func(o *protocol.ClusterSeen) { o.Namespaces = nil }, false},
		"an owner":          {func(o *protocol.ClusterSeen) { o.Owners = []protocol.Owner{{ID: "theirs"}} }, true},
		"an inventory":      {func(o *protocol.ClusterSeen) { o.Inventories = []protocol.InventorySeen{{Placement: quay}} }, true},
		"a known inventory": {func(o *protocol.ClusterSeen) {
			o.Inventories = []protocol.InventorySeen{{Placement: web, Revision: v(7)}}
		}, false},
		"an unread UID":       {func(o *protocol.ClusterSeen) { o.UID = "" }, false},
		"missing permissions": {func(o *protocol.ClusterSeen) { o.Forbidden = []string{"list pods"} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := bound()
			l.Fold(whole)
			o, before := whole, l.Cluster("east")
			test.change(&o)
			version, copied := before.Version(), *before
			if got := l.Fold(o); got != test.want {
				t.Errorf("news: %t, want %t", got, test.want)
			}
			// An inventory changes a placement, and not the cluster.
			if got := l.Cluster("east").Version() != version; got != (test.want && o.Inventories == nil) {
				t.Errorf("the version has changed: %t", got)
			}
			if !equalities.DeepEqual(copied.ClusterSeen, before.ClusterSeen) {
				t.Error("the previous record was changed")
			}
		})
	}
}
