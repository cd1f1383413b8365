package ledger

import (
	"errors"
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
)

const ourSource = "git.example.com/fleet"

// found returns a report that a cluster answered and has these inventories.
func found(cluster string, minute int, owners ...Owner) ClusterSeen {
	holds := []InventorySeen{}
	for range owners {
		holds = append(holds, InventorySeen{Placement: web, Revision: v(1)})
	}
	return ClusterSeen{Cluster: cluster, At: at(minute), Healthy: true, Holds: holds, Owners: append([]Owner{}, owners...)}
}

// ours returns a ledger of the fleet with this ID; the ID is not known yet if it is empty.
func ours(id string) *Ledger {
	l := New()
	l.SetFleet(Fleet{Name: "shop", ID: id, Source: ourSource})
	return l
}

// admitted returns the IDs of the fleets whose inventories on a cluster this fleet adopts.
func admitted(l *Ledger, cluster string) (ids []string) {
	for _, a := range l.Adopted(cluster) {
		ids = append(ids, a.ID)
	}
	return ids
}

// worksOn adds a report of an agent on a cluster.
func worksOn(l *Ledger, cluster string) {
	l.SetPlacement(web, Placement{Generation: 1})
	l.Bind(web, placement.Binding{Cluster: cluster, Assigned: v(1), AssignedAt: noon})
	l.Fold(fine(cluster, 1, 1))
}

func TestInventoriesOfAnotherFleetAreRefused(t *testing.T) {
	another := Owner{ID: "theirs", Source: "git.example.com/other"}
	sameSource := Owner{ID: "theirs", Source: ourSource}
	nameless, unknown := Owner{}, Owner{UnknownCommit: "c0ffee"}
	tests := map[string]struct {
		worked  bool // before this fleet's agent saw it
		owners  []Owner
		rivals  []Owner
		admits  []string
		takesUp bool
	}{
		"nothing there":                             {owners: nil},
		"our own":                                   {owners: []Owner{{ID: "ours", Source: ourSource}}, takesUp: true},
		"our own, before the source changed":        {owners: []Owner{{ID: "ours", Source: "git.example.com/moved"}}, takesUp: true},
		"another fleet":                             {owners: []Owner{another}, rivals: []Owner{another}},
		"another fleet beside our own":              {owners: []Owner{{ID: "ours", Source: ourSource}, another}, rivals: []Owner{another}},
		"our source, where we have not worked":      {owners: []Owner{sameSource}, admits: []string{"theirs"}, takesUp: true},
		"our source, where we have worked":          {worked: true, owners: []Owner{sameSource}, rivals: []Owner{sameSource}},
		"no ID, with commits that we have":          {owners: []Owner{nameless}, admits: []string{""}, takesUp: true},
		"no ID, with a commit that we do not have":  {owners: []Owner{unknown}, rivals: []Owner{unknown}},
		"no ID, where the ledger knows the cluster": {worked: true, owners: []Owner{unknown}, admits: []string{""}, takesUp: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := ours("ours")
			if test.worked {
				worksOn(l, "east")
			}
			l.Fold(found("east", 2, test.owners...))
			if got := l.Cluster("east").Rivals; !slices.Equal(got, test.rivals) {
				t.Errorf("rivals: %v, want %v", got, test.rivals)
			}
			if got := admitted(l, "east"); !slices.Equal(got, test.admits) {
				t.Errorf("admitted: %q, want %q", got, test.admits)
			}
			if got := l.Placement(web) != nil; got != (test.takesUp || test.worked) {
				t.Errorf("what it holds was taken up: %v", got)
			}
			l.Fold(ClusterSeen{Cluster: "east", At: at(3), Healthy: true})
			if got := l.Cluster("east").Rivals; !slices.Equal(got, test.rivals) {
				t.Errorf("after a probe that did not look, rivals: %v, want %v", got, test.rivals)
			}
		})
	}
}

// Two daemons of one repository start on an empty cluster at the same time. The one that finds
// the other's inventories after it had found none adopts nothing.
func TestFleetThatCameLaterIsRefused(t *testing.T) {
	l, other := ours("ours"), Owner{ID: "theirs", Source: ourSource}
	l.Fold(found("east", 1))
	for minute := 2; minute < 4; minute++ {
		l.Fold(found("east", minute, other))
		if got := l.Cluster("east").Rivals; !slices.Equal(got, []Owner{other}) || len(l.Adopted("east")) > 0 {
			t.Errorf("minute %d: rivals: %v, admitted: %q", minute, got, admitted(l, "east"))
		}
	}
	l.Adopt(Adoption{Cluster: "east", ID: "theirs", By: "sam"})
	l.Fold(found("east", 4, other))
	if got := l.Cluster("east").Rivals; len(got) > 0 {
		t.Errorf("rivals after the adoption: %v", got)
	}
}

// After a restart it is still known that a cluster had no inventories.
func TestFleetThatCameDuringARestartIsRefused(t *testing.T) {
	l, store, other := ours("ours"), Memory(), Owner{ID: "theirs", Source: ourSource}
	l.Fold(found("east", 1))
	if err := store.Save(l); err != nil {
		t.Fatal(err)
	}
	l, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	l.Fold(found("east", 2, other))
	if got := l.Cluster("east").Rivals; !slices.Equal(got, []Owner{other}) {
		t.Errorf("rivals: %v, admitted: %q", got, admitted(l, "east"))
	}
}

// After the ledger was lost, the ID of the fleet is the one in all inventories of the members,
// if they agree. Inventories are recorded only after that.
func TestLostFleetIDIsFound(t *testing.T) {
	old := Owner{ID: "old", Source: ourSource}
	older := Owner{ID: "older", Source: ourSource}
	another := Owner{ID: "theirs", Source: "git.example.com/other"}
	tests := map[string]struct {
		east, west []Owner
		id         string
		rivals     map[string][]Owner
	}{
		"nothing was there": {id: "fresh"},
		"one names it":      {east: []Owner{old}, id: "old"},
		"all name it":       {east: []Owner{old}, west: []Owner{old}, id: "old"},
		"beside another":    {east: []Owner{old}, west: []Owner{another}, id: "old", rivals: map[string][]Owner{"west": {another}}},
		"only another":      {west: []Owner{another}, id: "fresh", rivals: map[string][]Owner{"west": {another}}},
		"they disagree":     {east: []Owner{old}, west: []Owner{older}, id: "fresh", rivals: map[string][]Owner{"east": {old}, "west": {older}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := ours("")
			l.Fold(found("east", 1, test.east...))
			l.Fold(found("west", 1, test.west...))
			l.Fold(ClusterSeen{Cluster: "east", At: at(2), Healthy: true})
			if !l.Pending() || len(l.Placements()) > 0 {
				t.Errorf("something was taken up before the ID was known: %v", l.Placements())
			}
			l.ResolveID("fresh")
			if got := l.Fleet().ID; got != test.id || l.Pending() {
				t.Errorf("the ID is %q, want %q", got, test.id)
			}
			for _, c := range []string{"east", "west"} {
				if got := l.Cluster(c).Rivals; !slices.Equal(got, test.rivals[c]) {
					t.Errorf("rivals on %s: %v, want %v", c, got, test.rivals[c])
				}
				free := len(test.rivals[c]) == 0 && len(map[string][]Owner{"east": test.east, "west": test.west}[c]) > 0
				if p := l.Placement(web); (p != nil && p.Entry(c) != nil) != free {
					t.Errorf("what %s holds was taken up: %v, want %v", c, !free, free)
				}
			}
			l.ResolveID("another")
			if l.Fleet().ID != test.id {
				t.Errorf("settled twice, the ID is %q", l.Fleet().ID)
			}
		})
	}
}

// A cluster that did not answer when the ledger was lost, and whose inventories have the old
// ID, is adopted until they have the new ID. A fleet that comes later with the old ID is
// another fleet.
func TestAdmissionEndsWithTheTakeover(t *testing.T) {
	l := ours("ours")
	old := Owner{ID: "old", Source: ourSource}
	l.Fold(found("east", 1, old))
	worksOn(l, "east")
	l.Fold(found("east", 2, old, Owner{ID: "ours", Source: ourSource}))
	if c := l.Cluster("east"); len(c.Rivals) > 0 || !slices.Equal(admitted(l, "east"), []string{"old"}) {
		t.Errorf("halfway through: rivals %v, admitted %q", c.Rivals, admitted(l, "east"))
	}
	l.Fold(found("east", 3, Owner{ID: "ours", Source: ourSource}))
	if len(admitted(l, "east")) > 0 {
		t.Errorf("afterwards: admitted %q", admitted(l, "east"))
	}
	l.Fold(found("east", 4, old))
	if got := l.Cluster("east").Rivals; !slices.Equal(got, []Owner{old}) {
		t.Errorf("taken by somebody else: rivals %v", got)
	}
}

func TestAdopt(t *testing.T) {
	l := ours("ours")
	another := Owner{ID: "theirs", Source: "git.example.com/other"}
	l.Fold(found("east", 1, another))
	undo := l.Checkpoint()
	l.Adopt(Adoption{Cluster: "east", ID: "theirs", By: "sam", At: at(2)})
	if len(l.Cluster("east").Rivals) > 0 || !slices.Equal(admitted(l, "east"), []string{"theirs"}) || len(admitted(l, "west")) > 0 {
		t.Errorf("adopted: rivals %v, admitted %q", l.Cluster("east").Rivals, admitted(l, "east"))
	}
	undo()
	if got := l.Cluster("east").Rivals; !slices.Equal(got, []Owner{another}) || len(admitted(l, "east")) > 0 {
		t.Errorf("taken back: rivals %v, admitted %q", got, admitted(l, "east"))
	}
	l.Adopt(Adoption{Cluster: "east", ID: "theirs", By: "sam", At: at(2)})
	l.Fold(found("east", 3, another))
	if len(l.Cluster("east").Rivals) > 0 || l.Placement(web).Entry("east") == nil {
		t.Error("what was adopted was not taken up")
	}
}

// The fleet is stored, and can be read without the rest of the ledger. A store of a version
// without IDs has the default name of that version.
func TestFleetIsStored(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if f, err := s.Fleet(); err != nil || f != (Fleet{}) {
		t.Errorf("an empty store: %v, %v", f, err)
	}
	l := ours("ours")
	l.Fold(found("east", 1, Owner{ID: "theirs", Source: "git.example.com/other"}))
	l.Adopt(Adoption{Cluster: "east", ID: "theirs", By: "sam", At: at(2)})
	want := dump(t, l)
	if err := errors.Join(s.Save(l), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if f, err := s.Fleet(); err != nil || f != l.Fleet() {
		t.Errorf("the fleet is %v, %v", f, err)
	}
	again, err := s.Load()
	if err != nil || dump(t, again) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, dump(t, again), want)
	}
}
