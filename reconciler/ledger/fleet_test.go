package ledger

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

const ourSource = "git.example.com/fleet"

// found returns a report that a cluster answered and has these inventories.
func found(cluster string, minute int, owners ...protocol.Owner) protocol.ClusterSeen {
	holds := []protocol.InventorySeen{}
	for range owners {
		holds = append(holds, protocol.InventorySeen{Placement: web, Revision: v(1)})
	}
	return protocol.ClusterSeen{Cluster: cluster, At: at(minute), Healthy: true, Inventories: holds, Owners: append([]protocol.Owner{}, owners...)}
}

// ours returns a ledger of the fleet with this ID; the ID is not known yet if it is empty.
func ours(id string) *Ledger {
	l := New()
	l.SetFleet(protocol.Fleet{Name: "shop", ID: id, Source: ourSource})
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
	another := protocol.Owner{ID: "theirs", Source: "git.example.com/other"}
	sameSource := protocol.Owner{ID: "theirs", Source: ourSource}
	nameless, unknown := protocol.Owner{}, protocol.Owner{UnknownCommit: "c0ffee"}
	tests := map[string]struct {
		worked  bool // before this fleet's agent saw it
		owners  []protocol.Owner
		rivals  []protocol.Owner
		admits  []string
		takesUp bool
	}{
		"nothing there":                             {owners: nil},
		"our own":                                   {owners: []protocol.Owner{{ID: "ours", Source: ourSource}}, takesUp: true},
		"our own, before the source changed":        {owners: []protocol.Owner{{ID: "ours", Source: "git.example.com/moved"}}, takesUp: true},
		"another fleet":                             {owners: []protocol.Owner{another}, rivals: []protocol.Owner{another}},
		"another fleet beside our own":              {owners: []protocol.Owner{{ID: "ours", Source: ourSource}, another}, rivals: []protocol.Owner{another}},
		"our source, where we have not worked":      {owners: []protocol.Owner{sameSource}, admits: []string{"theirs"}, takesUp: true},
		"our source, where we have worked":          {worked: true, owners: []protocol.Owner{sameSource}, rivals: []protocol.Owner{sameSource}},
		"no ID, with commits that we have":          {owners: []protocol.Owner{nameless}, admits: []string{""}, takesUp: true},
		"no ID, with a commit that we do not have":  {owners: []protocol.Owner{unknown}, rivals: []protocol.Owner{unknown}},
		"no ID, where the ledger knows the cluster": {worked: true, owners: []protocol.Owner{unknown}, admits: []string{""}, takesUp: true},
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
			l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(3), Healthy: true})
			if got := l.Cluster("east").Rivals; !slices.Equal(got, test.rivals) {
				t.Errorf("after a probe that did not look, rivals: %v, want %v", got, test.rivals)
			}
		})
	}
}

// Two daemons of one repository start on an empty cluster at the same time. The one that finds
// the other's inventories after it had found none adopts nothing.
func TestFleetThatCameLaterIsRefused(t *testing.T) {
	l, other := ours("ours"), protocol.Owner{ID: "theirs", Source: ourSource}
	l.Fold(found("east", 1))
	for minute := 2; minute < 4; minute++ {
		l.Fold(found("east", minute, other))
		if got := l.Cluster("east").Rivals; !slices.Equal(got, []protocol.Owner{other}) || len(l.Adopted("east")) > 0 {
			t.Errorf("minute %d: rivals: %v, admitted: %q", minute, got, admitted(l, "east"))
		}
	}
	l.Adopt(protocol.Adoption{Cluster: "east", ID: "theirs", By: "sam"})
	l.Fold(found("east", 4, other))
	if got := l.Cluster("east").Rivals; len(got) > 0 {
		t.Errorf("rivals after the adoption: %v", got)
	}
}

// After a restart it is still known that a cluster had no inventories.
func TestFleetThatCameDuringARestartIsRefused(t *testing.T) {
	l, store, other := ours("ours"), Memory(), protocol.Owner{ID: "theirs", Source: ourSource}
	l.Fold(found("east", 1))
	if err := store.Save(l); err != nil {
		t.Fatal(err)
	}
	l, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	l.Fold(found("east", 2, other))
	if got := l.Cluster("east").Rivals; !slices.Equal(got, []protocol.Owner{other}) {
		t.Errorf("rivals: %v, admitted: %q", got, admitted(l, "east"))
	}
}

// After the ledger was lost, the ID of the fleet is the one in all inventories of the members,
// if they agree. Inventories are recorded only after that.
func TestLostFleetIDIsFound(t *testing.T) {
	old := protocol.Owner{ID: "old", Source: ourSource}
	older := protocol.Owner{ID: "older", Source: ourSource}
	another := protocol.Owner{ID: "theirs", Source: "git.example.com/other"}
	tests := map[string]struct {
		east, west []protocol.Owner
		id         string
		rivals     map[string][]protocol.Owner
	}{
		"nothing was there": {id: "fresh"},
		"one names it":      {east: []protocol.Owner{old}, id: "old"},
		"all name it":       {east: []protocol.Owner{old}, west: []protocol.Owner{old}, id: "old"},
		"beside another":    {east: []protocol.Owner{old}, west: []protocol.Owner{another}, id: "old", rivals: map[string][]protocol.Owner{"west": {another}}},
		"only another":      {west: []protocol.Owner{another}, id: "fresh", rivals: map[string][]protocol.Owner{"west": {another}}},
		"they disagree":     {east: []protocol.Owner{old}, west: []protocol.Owner{older}, id: "fresh", rivals: map[string][]protocol.Owner{"east": {old}, "west": {older}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := ours("")
			l.Fold(found("east", 1, test.east...))
			l.Fold(found("west", 1, test.west...))
			l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(2), Healthy: true})
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
				free := len(test.rivals[c]) == 0 && len(map[string][]protocol.Owner{"east": test.east, "west": test.west}[c]) > 0
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
	old := protocol.Owner{ID: "old", Source: ourSource}
	l.Fold(found("east", 1, old))
	worksOn(l, "east")
	l.Fold(found("east", 2, old, protocol.Owner{ID: "ours", Source: ourSource}))
	if c := l.Cluster("east"); len(c.Rivals) > 0 || !slices.Equal(admitted(l, "east"), []string{"old"}) {
		t.Errorf("halfway through: rivals %v, admitted %q", c.Rivals, admitted(l, "east"))
	}
	l.Fold(found("east", 3, protocol.Owner{ID: "ours", Source: ourSource}))
	if len(admitted(l, "east")) > 0 {
		t.Errorf("afterwards: admitted %q", admitted(l, "east"))
	}
	l.Fold(found("east", 4, old))
	if got := l.Cluster("east").Rivals; !slices.Equal(got, []protocol.Owner{old}) {
		t.Errorf("taken by somebody else: rivals %v", got)
	}
}

func TestAdopt(t *testing.T) {
	l := ours("ours")
	another := protocol.Owner{ID: "theirs", Source: "git.example.com/other"}
	l.Fold(found("east", 1, another))
	undo := l.Checkpoint()
	l.Adopt(protocol.Adoption{Cluster: "east", ID: "theirs", By: "sam", At: at(2)})
	if len(l.Cluster("east").Rivals) > 0 || !slices.Equal(admitted(l, "east"), []string{"theirs"}) || len(admitted(l, "west")) > 0 {
		t.Errorf("adopted: rivals %v, admitted %q", l.Cluster("east").Rivals, admitted(l, "east"))
	}
	undo()
	if got := l.Cluster("east").Rivals; !slices.Equal(got, []protocol.Owner{another}) || len(admitted(l, "east")) > 0 {
		t.Errorf("taken back: rivals %v, admitted %q", got, admitted(l, "east"))
	}
	l.Adopt(protocol.Adoption{Cluster: "east", ID: "theirs", By: "sam", At: at(2)})
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
	if f, err := s.Fleet(); err != nil || f != (protocol.Fleet{}) {
		t.Errorf("an empty store: %v, %v", f, err)
	}
	l := ours("ours")
	l.Fold(found("east", 1, protocol.Owner{ID: "theirs", Source: "git.example.com/other"}))
	l.Adopt(protocol.Adoption{Cluster: "east", ID: "theirs", By: "sam", At: at(2)})
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

// A cluster that another fleet holds is not written to, and the reason says what to do.
func TestRefusal(t *testing.T) {
	for name, test := range map[string]struct {
		rivals []protocol.Owner
		want   []string // what the reason contains; none if there is none
	}{
		"nobody else":    {nil, nil},
		"another":        {[]protocol.Owner{{ID: "0123456789abcdef", Source: "https://git.example.com/other"}}, []string{"(id 01234567, from https://git.example.com/other)", "gitfleet adopt-fleet 01234567 --cluster east"}},
		"one without ID": {[]protocol.Owner{{}}, []string{"(id none, from a repository that it does not name)", "gitfleet adopt-fleet none --cluster east"}},
		"a short ID":     {[]protocol.Owner{{ID: "0123"}}, []string{"(id 0123, "}},
	} {
		t.Run(name, func(t *testing.T) {
			l := New()
			l.clusters["east"] = &Cluster{ClusterSeen: protocol.ClusterSeen{Cluster: "east"}, Rivals: test.rivals}
			got := l.Refusal("east")
			if (got == "") != (test.want == nil) {
				t.Errorf("%q", got)
			}
			for _, part := range test.want {
				if !strings.Contains(got, part) {
					t.Errorf("%q does not contain %q", got, part)
				}
			}
			if l.Refusal("west") != "" {
				t.Error("an unknown cluster is refused")
			}
		})
	}
}
