package ledger

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A decision about a drift is about the fields and the values, whoever changed them and whenever.
func TestFingerprintOfADrift(t *testing.T) {
	change := func(path, hub, member string, more ...func(*api.Difference)) api.Difference {
		d := api.Difference{PatchDetail: api.PatchDetail{Path: path, ValueInHub: hub, ValueInMember: member}}
		for _, f := range more {
			f(&d)
		}
		return d
	}
	by := func(manager string) func(*api.Difference) {
		return func(d *api.Difference) {
			d.By = []api.Actor{{Manager: manager, Time: time.Unix(int64(len(manager)), 0)}}
		}
	}
	asJSON := func(hub, member string) func(*api.Difference) {
		return func(d *api.Difference) { d.HubJSON, d.MemberJSON = json.RawMessage(hub), json.RawMessage(member) }
	}
	first := []api.Difference{change("/data/a", "1", "2", by("kubectl")), change("/data/b", "1", "2")}
	for name, test := range map[string]struct {
		other []api.Difference
		same  bool
	}{
		"the same":                 {[]api.Difference{change("/data/a", "1", "2", by("kubectl")), change("/data/b", "1", "2")}, true},
		"by another, at a time":    {[]api.Difference{change("/data/a", "1", "2", by("controller")), change("/data/b", "1", "2", by("me"))}, true},
		"another value there":      {[]api.Difference{change("/data/a", "1", "3"), change("/data/b", "1", "2")}, false},
		"another value in Git":     {[]api.Difference{change("/data/a", "0", "2"), change("/data/b", "1", "2")}, false},
		"another field":            {[]api.Difference{change("/data/a", "1", "2"), change("/data/c", "1", "2")}, false},
		"one field less":           {[]api.Difference{change("/data/a", "1", "2")}, false},
		"a number that was a text": {[]api.Difference{change("/data/a", "1", "2", asJSON("1", "2")), change("/data/b", "1", "2")}, false},
		"none":                     {nil, false},
	} {
		if got := Fingerprint(first, "") == Fingerprint(test.other, ""); got != test.same {
			t.Errorf("%s: the same fingerprint: %t", name, got)
		}
	}
}

// A cluster that another fleet holds is not written to, and the reason says what to do.
func TestRefusal(t *testing.T) {
	for name, test := range map[string]struct {
		rivals []Owner
		want   []string // what the reason contains; none if there is none
	}{
		"nobody else":    {nil, nil},
		"another":        {[]Owner{{ID: "0123456789abcdef", Source: "https://git.example.com/other"}}, []string{"(id 01234567, from https://git.example.com/other)", "gitfleet adopt-fleet 01234567 --cluster east"}},
		"one without ID": {[]Owner{{}}, []string{"(id none, from a repository that it does not name)", "gitfleet adopt-fleet none --cluster east"}},
		"a short ID":     {[]Owner{{ID: "0123"}}, []string{"(id 0123, "}},
	} {
		t.Run(name, func(t *testing.T) {
			l := New()
			l.clusters["east"] = &Cluster{ClusterSeen: ClusterSeen{Cluster: "east"}, Rivals: test.rivals}
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

// A rollout goes on from its start to its end.
func TestRollingOut(t *testing.T) {
	at := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		p    Placement
		want bool
	}{
		"not yet": {Placement{}, false}, "started": {Placement{RolloutStarted: at}, true},
		"finished": {Placement{RolloutStarted: at, RolloutFinished: at.Add(time.Second)}, false},
	} {
		if got := test.p.RollingOut(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A content came into force no later than the next one that was recorded.
func TestRevisedAt(t *testing.T) {
	p := Placement{Revisions: []Revised{{Index: 3, At: time.Unix(300, 0)}, {Index: 5, At: time.Unix(500, 0)}}}
	for index, want := range map[int]time.Time{0: time.Unix(300, 0), 3: time.Unix(300, 0), 4: time.Unix(500, 0), 5: time.Unix(500, 0), 6: {}} {
		if got := p.RevisedAt(index); !got.Equal(want) {
			t.Errorf("the content %d came at %s, want %s", index, got, want)
		}
	}
}

// An agent gets the drifts of its cluster, by placement, and nothing of placements without any.
func TestDriftsOfACluster(t *testing.T) {
	l, web, quiet := New(), api.PlacementKey{Name: "web"}, api.PlacementKey{Name: "quiet"}
	d := Drift{ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}, State: api.DriftHeld}
	for _, key := range []api.PlacementKey{web, quiet} {
		l.SetPlacement(key, Placement{Generation: 1})
		for _, cluster := range []string{"east", "west"} {
			l.Bind(key, placement.Binding{Cluster: cluster})
		}
	}
	l.Fold(WorkSeen{Cluster: "east", Placement: web, At: time.Unix(1, 0), Drifts: []Drift{d}})
	l.Fold(WorkSeen{Cluster: "east", Placement: quiet, At: time.Unix(1, 0)})
	if got := l.Drifts("east"); len(got) != 1 || len(got[web]) != 1 || got[web][0].ID != d.ID {
		t.Errorf("east: %+v", got)
	}
	if got := l.Drifts("west"); len(got) != 0 {
		t.Errorf("west: %+v", got)
	}
}
