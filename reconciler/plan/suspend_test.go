package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

const members, app, placed = "clusters east west\n", "namespace shop\nconfigmap shop/settings ", "\nplace web of shop unavailable 100%\n"

func settings() api.ID { return api.ID{Kind: "ConfigMap", Namespace: "shop", Name: "settings"} }

// suspendedScene returns a fleet that has applied v1 of one placement, with suspensions, and v2 as
// the head.
func suspendedScene(t *testing.T, suspensions ...ledger.Suspension) *scene {
	s := newScene(t)
	s.commit("v1", nil, []byte(members+app+"1"+placed))
	s.do([]string{"seen", "east", "west"})
	s.do([]string{"plan"})
	s.do([]string{"done"})
	for _, x := range suspensions {
		s.in.Ledger.Suspend(x)
	}
	s.commit("v2", nil, []byte(members+app+"2"+placed))
	return s
}

func onCluster(t *testing.T, p *Plan, cluster string) *work.Work {
	t.Helper()
	works := p.Works[cluster]
	if len(works) != 1 {
		t.Fatalf("%s has %d works", cluster, len(works))
	}
	return works[0]
}

// Suspended clusters keep their content, and their works and waiting reasons have the suspension.
// Other clusters are updated.
func TestSuspendedClustersAreNotUpdated(t *testing.T) {
	web := api.PlacementKey{Name: "web"}
	tests := map[string]struct {
		s       ledger.Subject
		updated []string
	}{
		"a placement":               {ledger.Subject{Placement: web}, nil},
		"a placement on a cluster":  {ledger.Subject{Placement: web, Cluster: "east"}, []string{"west"}},
		"a cluster":                 {ledger.Subject{Cluster: "west"}, []string{"east"}},
		"another placement":         {ledger.Subject{Placement: api.PlacementKey{Name: "other"}}, []string{"east", "west"}},
		"an object":                 {ledger.Subject{Object: settings()}, []string{"east", "west"}},
		"an object of that cluster": {ledger.Subject{Object: settings(), Cluster: "east"}, []string{"east", "west"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := suspendedScene(t, ledger.Suspension{Subject: test.s, By: "alice", Reason: "INC-1"})
			p := s.resolve()
			for _, cluster := range []string{"east", "west"} {
				w := onCluster(t, p, cluster)
				updates := slices.Contains(test.updated, cluster)
				if got := w.Revision.Commit == "v2"; got != updates {
					t.Errorf("%s is at %s", cluster, w.Revision.Commit)
				}
				c := p.Placements.At(0).On(cluster)
				if got := c.Waits; updates != (got == "") || !updates && got != "suspended by alice: INC-1" {
					t.Errorf("%s is held: %q", cluster, got)
				}
				if whole := w.Suspended != ""; whole == updates || whole != (c.Unusual().Suspended != "") {
					t.Errorf("the work of %s has the suspension %q, and the plan %q", cluster, w.Suspended, c.Unusual().Suspended)
				}
				suspended := test.s.Object != (api.ID{}) && (test.s.Cluster == "" || test.s.Cluster == cluster)
				if got := w.SuspendedReason(settings()) != ""; got != (suspended || !updates) {
					t.Errorf("%s: the object is suspended: %q", cluster, w.SuspendedReason(settings()))
				}
			}
		})
	}
}

// A suspension ends at its time, which is the wake time of the plan.
func TestSuspensionsExpire(t *testing.T) {
	until := noon.Add(time.Hour)
	s := suspendedScene(t, ledger.Suspension{Subject: ledger.Subject{Cluster: "east"}, By: "alice", Until: until})
	if p := s.resolve(); !p.Wake.Equal(until) || onCluster(t, p, "east").Revision.Commit != "v1" {
		t.Errorf("wake is %s; %s", p.Wake, describe(p))
	}
	s.do([]string{"done"})
	s.in.Now = until
	if p := s.resolve(); onCluster(t, p, "east").Revision.Commit != "v2" || onCluster(t, p, "east").Suspended != "" {
		t.Errorf("after its end:\n%s", describe(p))
	}
}

// A placement that is removed from Git stays on suspended clusters until the suspension ends. A
// cluster that is removed from Git is not released while it is suspended.
func TestSuspendedContentIsNotRemoved(t *testing.T) {
	s := suspendedScene(t, ledger.Suspension{Subject: ledger.Subject{Cluster: "east"}, By: "alice"})
	s.commit("v3", nil, []byte(members+app+"2"))
	p := s.resolve()
	if east := onCluster(t, p, "east"); east.Remove || len(east.Manifests) != 2 || east.Suspended == "" {
		t.Errorf("the work of east is %+v", east)
	}
	if west := onCluster(t, p, "west"); !west.Remove {
		t.Errorf("the work of west is %+v", west)
	}
	s.in.Ledger.Resume(ledger.Subject{Cluster: "east"}, s.in.Now)
	if east := onCluster(t, s.resolve(), "east"); !east.Remove {
		t.Errorf("resumed, the work of east is %+v", east)
	}

	s = suspendedScene(t, ledger.Suspension{Subject: ledger.Subject{Cluster: "east"}, By: "alice"})
	s.commit("v3", nil, []byte("clusters west\n"+app+"2"+placed))
	if p := s.resolve(); len(p.Left) != 0 {
		t.Errorf("suspended clusters that are released: %v", p.Left)
	}
	s.in.Ledger.Resume(ledger.Subject{Cluster: "east"}, s.in.Now)
	if p := s.resolve(); !slices.Equal(p.Left, []string{"east"}) {
		t.Errorf("resumed, the clusters %v are released", p.Left)
	}
}

// A rollout that a failed update has stopped continues when a user resumes it.
func TestResumingAStoppedRollout(t *testing.T) {
	s := suspendedScene(t)
	s.commit("v2", nil, []byte(members+app+"2"+strings.Replace(placed, "100%", "1", 1)))
	s.resolve()
	s.do([]string{"fail", "web", "east"})
	if p := s.resolve(); onCluster(t, p, "west").Revision.Commit != "v1" || p.Placements.At(0).Rollout.Stopped != "east" {
		t.Fatalf("not stopped:\n%s", describe(p))
	}
	s.in.Now = s.in.Now.Add(time.Second)
	s.in.Ledger.ResumeRollout(api.PlacementKey{Name: "web"}, s.in.Now)
	if p := s.resolve(); p.Placements.At(0).Rollout.Stopped != "" {
		t.Errorf("still stopped:\n%s", describe(p))
	}
}
