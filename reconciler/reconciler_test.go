package reconciler

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/reconciler/crashguard"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

// loadedCommit returns the result of loading a commit, given as the text of package world.
func (c *historyScene) loadedCommit(hash, message, text string) loaded {
	c.t.Helper()
	commit := hub.Commit{Hash: hash, Author: "Ada", Subject: "make " + hash, Message: message, Time: c.now}
	snapshot, err := hub.NewLoader(hub.Options{}).Load(commit, world.Files(c.t, text))
	if err != nil {
		c.t.Fatal(err)
	}
	return loaded{commit: commit, snapshot: snapshot}
}

func TestWhichCommitsComeInForce(t *testing.T) {
	const base = "clusters east\nnamespace web\nplace web"
	const allow = `if this is intended, add the trailer "Gitfleet-Allow-Delete: *" to the message of a commit` + "\n"
	for name, test := range map[string]struct {
		load func(c *historyScene) loaded
		// inForce is the commit in force afterwards, and newest the newest one.
		inForce, newest string
		history         string
		loadError       string
	}{
		"a good one": {func(c *historyScene) loaded { return c.loadedCommit("c2", "", base) },
			"c2", "c2", "commit inForce @c2 | Ada | make c2\n", ""},
		"the same again": {func(c *historyScene) loaded { return c.loadedCommit("c1", "", base) },
			"c1", "c1", "", ""},
		"one with problems": {func(c *historyScene) loaded {
			return loaded{commit: hub.Commit{Hash: "c2", Author: "Ada", Subject: "make c2"}, err: &hub.LoadError{Problems: problem.List{{Message: "it is wrong"}}}}
		}, "c1", "c2", "commit refused @c2 | Ada | make c2 | it is wrong\n", ""},
		"one that cannot be read": {func(c *historyScene) loaded {
			return loaded{commit: hub.Commit{Hash: "c2"}, err: errors.New("no such file")}
		},
			"c1", "c2", "commit refused @c2 | no such file\n", "no such file"},
		"one without clusters": {func(c *historyScene) loaded { return c.loadedCommit("c2", "", "namespace web\nplace web") },
			"c1", "c2", "commit refused @c2 | Ada | make c2 | the commit has no MemberCluster left, and every cluster would leave the fleet; " + allow, "the commit has no MemberCluster left"},
		"one without placements": {func(c *historyScene) loaded { return c.loadedCommit("c2", "", "clusters east") },
			"c1", "c2", "commit refused @c2 | Ada | make c2 | the commit has no placement left, and would remove everything from every cluster; " + allow, "the commit has no placement left"},
		"one without placements, allowed": {func(c *historyScene) loaded {
			return c.loadedCommit("c2", "empty\n\nGitfleet-Allow-Delete: *\n", "clusters east")
		},
			"c2", "c2", "commit inForce @c2 | Ada | make c2\n", ""},
		"one without placements, which was in force before a restart": {func(c *historyScene) loaded {
			l := c.loadedCommit("c2", "", "clusters east")
			l.resumed = true
			return l
		}, "c2", "c2", "commit inForce @c2 | Ada | make c2\n", ""},
		"one that no longer builds what was deployed": {func(c *historyScene) loaded {
			c.commits.inForce.Sources["web/base/kustomization.yaml"] = []string{}
			l := c.loadedCommit("c2", "", base)
			l.snapshot.Unused = []string{"web/base/kustomization.yaml"}
			return l
		}, "c1", "c2", "commit refused @c2 | Ada | make c2 | web/base/kustomization.yaml was deployed by the commit in force, and is now only a base or a component that no kustomization uses, " +
			"so its objects would be deleted; give them a namespace again, or if they are to be deleted, remove the kustomization\n", "web/base/kustomization.yaml was deployed"},
		"an older one that was loaded again": {func(c *historyScene) loaded {
			l := c.loadedCommit("c0", "", base)
			l.reloaded = true
			return l
		}, "c1", "c1", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newHistoryScene(t)
			c.commits.putInForce(c.loadedCommit("c1", "", base), c.ledger, c.now)
			c.seen("east", "")
			c.turn()
			c.text.Reset()
			c.commits.putInForce(test.load(c), c.ledger, c.now)
			if got := c.commits.inForce.Commit.Hash; got != test.inForce || c.ledger.InForce() != test.inForce || c.commits.source.InForce.Hash != test.inForce {
				t.Errorf("in force: %s, in the ledger %s, reported %s; want %s", got, c.ledger.InForce(), c.commits.source.InForce.Hash, test.inForce)
			}
			if c.commits.source.Newest.Hash != test.newest {
				t.Errorf("newest: %s, want %s", c.commits.source.Newest.Hash, test.newest)
			}
			if got := c.commits.source.LoadError; !strings.HasPrefix(got, test.loadError) || test.loadError == "" && got != "" {
				t.Errorf("load error %q, want %q", got, test.loadError)
			}
			c.tells(test.history)
		})
	}
}

// A commit was first seen when its load began, however long it has waited for the turn, but not
// after it came into force if the clock was set back meanwhile.
func TestWhenTheCommitInForceWasFirstSeen(t *testing.T) {
	c := newHistoryScene(t)
	for name, test := range map[string]struct{ seen, want time.Duration }{
		"before the turn":    {-time.Minute, -time.Minute},
		"the clock set back": {time.Hour, 0},
	} {
		l := c.loadedCommit(name, "", "clusters east\nnamespace web\nplace web")
		l.seen, l.took = c.now.Add(test.seen), time.Second
		c.commits.putInForce(l, c.ledger, c.now)
		if want := c.now.Add(test.want); !c.commits.inForceSeenAt.Equal(want) {
			t.Errorf("%s: first seen at %s, want %s", name, c.commits.inForceSeenAt, want)
		}
	}
}

// A refused commit's problems end with the next good one.
func TestAGoodCommitEndsTheProblems(t *testing.T) {
	c := newHistoryScene(t)
	c.commits.putInForce(loaded{commit: hub.Commit{Hash: "c1"}, err: crashguard.ErrFatal}, c.ledger, c.now)
	if !c.commits.newestCrashed || c.commits.source.LoadError == "" {
		t.Errorf("fatal %t, error %q", c.commits.newestCrashed, c.commits.source.LoadError)
	}
	c.commits.putInForce(c.loadedCommit("c2", "", "clusters east\nnamespace web\nplace web"), c.ledger, c.now)
	if c.commits.newestCrashed || c.commits.source.LoadError != "" || c.commits.source.Problems != nil {
		t.Errorf("fatal %t, error %q, problems %v", c.commits.newestCrashed, c.commits.source.LoadError, c.commits.source.Problems)
	}
}

// An empty ledger waits until each declared cluster has reported, or until rebuildTimeout.
func TestAnEmptyLedgerWaitsForInventories(t *testing.T) {
	for name, test := range map[string]struct {
		rebuilding bool
		seen       []string
		after      time.Duration
		wait       bool
	}{
		"the ledger is not empty":   {false, nil, 0, false},
		"no cluster has reported":   {true, nil, 0, true},
		"one cluster has reported":  {true, []string{"east"}, 0, true},
		"all have reported":         {true, []string{"east", "west"}, 0, false},
		"almost at the timeout":     {true, nil, rebuildTimeout - 1, true},
		"at the timeout":            {true, nil, rebuildTimeout, false},
		"one is there, one is late": {true, []string{"west"}, rebuildTimeout, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newHistoryScene(t)
			c.commit("c1", "clusters east west\nnamespace web\nplace web")
			c.rebuilding, c.started = test.rebuilding, c.now
			for _, name := range test.seen {
				c.ledger.Fold(protocol.ClusterSeen{Cluster: name, At: c.now, Healthy: true})
			}
			if got := c.waitingForInventories(c.now.Add(test.after)); got != test.wait || c.rebuilding != test.wait {
				t.Errorf("waits %t, rebuilding %t; want %t", got, c.rebuilding, test.wait)
			}
		})
	}
}

// Of observations the newest per subject is kept, with what only an earlier one has. Commits are
// all kept, in order.
func TestEventsAreKept(t *testing.T) {
	c := newHistoryScene(t)
	at := func(n int) time.Time { return c.now.Add(time.Duration(n) * time.Second) }
	c.inbox.observe(protocol.ClusterSeen{Cluster: "east", At: at(1), Healthy: true, Namespaces: []string{"web"}})
	c.inbox.observe(protocol.ClusterSeen{Cluster: "west", At: at(1)})
	c.inbox.observe(protocol.ClusterSeen{Cluster: "east", At: at(2), Healthy: true})
	c.inbox.observe(protocol.WorkSeen{Cluster: "east", Placement: web, At: at(1), WorkState: protocol.WorkState{Incidents: &protocol.Incidents{Deletions: []protocol.Deletion{{}}}}})
	c.inbox.observe(protocol.WorkSeen{Cluster: "east", Placement: web, At: at(3)})
	for i := range 3 {
		c.inbox.addLoaded(loaded{commit: hub.Commit{Hash: fmt.Sprint("c", i)}, past: i == 1})
	}
	if c.cfg.Metrics.waiting.Load() == 0 {
		t.Error("no event waits")
	}
	got := c.inbox.drain()
	if east := got.seen[observedSubject{cluster: "east"}].(protocol.ClusterSeen); len(got.seen) != 3 || !east.At.Equal(at(2)) || !slices.Equal(east.Namespaces, []string{"web"}) {
		t.Errorf("%d observations, east %+v", len(got.seen), east)
	}
	if w := got.seen[observedSubject{"east", web}].(protocol.WorkSeen); !w.At.Equal(at(3)) || len(w.Unusual().Deletions) != 1 {
		t.Errorf("web on east: %+v", w)
	}
	if len(got.commits) != 2 || got.commits[0].commit.Hash != "c0" || got.commits[1].commit.Hash != "c2" || len(got.pastCommits) != 1 {
		t.Errorf("commits %v, past %v", got.commits, got.pastCommits)
	}
	if again := c.inbox.drain(); len(again.seen)+len(again.commits)+len(again.pastCommits) > 0 || c.cfg.Metrics.waiting.Load() != 0 {
		t.Errorf("drained twice: %+v", again)
	}
}

// Observations of agents that were stopped are dropped, and those of clusters come before those of
// their works.
func TestObservationsAreFoldedInOrder(t *testing.T) {
	c := newSettled(t)
	c.agents.members["east"] = &runningMember{member: idle{}}
	c.now = c.now.Add(time.Minute)
	c.observations.fold(c.ledger, &c.agents, map[observedSubject]protocol.Observation{
		{"east", web}:     protocol.WorkSeen{Cluster: "east", Placement: web, At: c.now, WorkState: protocol.WorkState{Revision: c.last.Works["east"][0].Revision, Done: true, Total: 1, Exceptions: []protocol.ObjectState{weak("crashes")}}},
		{cluster: "east"}: protocol.ClusterSeen{Cluster: "east", At: c.now, Error: "timeout"},
		{cluster: "west"}: protocol.ClusterSeen{Cluster: "west", At: c.now, Error: "timeout"},
	}, c.now)
	c.tells("member unreachable east | timeout\ncluster unavailable crp/web east #0 @c1 | ConfigMap/web/one: crashes\n")
}

// While a member reconnects, neither the conditions of a placement change, nor when they did, and there are no events.
func TestReportsWhileAMemberReconnects(t *testing.T) {
	c := newSettled(t)
	var report *status.Report
	c.cfg.Now, c.cfg.Source, c.cfg.Publish = func() time.Time { return c.now }, quietSource{}, func(r *status.Report) { report = r.Whole() }
	c.cfg.Member = func(*hub.Cluster, func(protocol.Observation)) Member { return idle{} }
	turn := func(done bool) *status.Report {
		c.now = c.now.Add(time.Minute)
		c.inbox.observe(protocol.WorkSeen{Cluster: "east", Placement: web, At: c.now, WorkState: protocol.WorkState{Revision: c.last.Works["east"][0].Revision, Done: done, Total: 2}})
		c.Reconciler.turn(t.Context())
		return report
	}
	c.Reconciler.turn(t.Context())
	settled := turn(true)
	if got := settled.Placements[0].Status.Conditions; len(got) != 6 || got[5].Type != "ClusterResourcePlacementAvailable" || got[5].Status != "True" {
		t.Fatalf("not available: %+v", got)
	}
	for _, done := range []bool{false, false, true} {
		now := turn(done)
		if !reflect.DeepEqual(now.Placements[0].Status, settled.Placements[0].Status) || !reflect.DeepEqual(now.Details[0].Clusters, settled.Details[0].Clusters) {
			t.Errorf("a report that is complete: %t\n%+v %+v\nwant\n%+v %+v", done, now.Placements[0].Status, now.Details[0], settled.Placements[0].Status, settled.Details[0])
		}
		if len(now.Events) != len(settled.Events) {
			t.Errorf("a report that is complete: %t, events %+v, want %+v", done, now.Events, settled.Events)
		}
	}
	if east := c.ledger.Placement(web).Entry("east"); !east.SeenAt().Equal(c.now) {
		t.Errorf("the reports were not read: %+v", east)
	}
}

// A countingStore counts saves.
type countingStore struct {
	ledger.Store
	saves int
	err   error
}

func (s *countingStore) Save(l *ledger.Ledger) error {
	s.saves++
	if s.err != nil {
		return s.err
	}
	return s.Store.Save(l)
}

// Observations are saved saveDelay after the first of them, and again after that time if the save
// fails; a turn without events is due after resyncPeriod.
func TestWhenTheLoopSavesAndWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSettled(t)
		store := &countingStore{Store: ledger.Memory()}
		c.cfg.Store, c.cfg.Now, c.cfg.Source, c.cfg.Publish = store, func() time.Time { return c.now }, quietSource{}, func(*status.Report) {}
		c.cfg.Member = func(*hub.Cluster, func(protocol.Observation)) Member { return idle{} }
		turn := func(saves int, wait time.Duration) {
			t.Helper()
			store.saves = 0
			if got := c.Reconciler.turn(t.Context()); got != wait || store.saves != saves {
				t.Errorf("%d saves, and the next turn after %s; want %d, %s", store.saves, got, saves, wait)
			}
		}
		probe := func() {
			c.inbox.observe(protocol.ClusterSeen{Cluster: "east", At: c.now, Healthy: true, Properties: map[string]string{"p": c.now.String()}})
		}
		c.Reconciler.turn(t.Context())
		c.saver.save(c.ledger)
		c.saver.due = time.Time{}
		c.now = c.now.Add(resyncPeriod)
		turn(0, resyncPeriod)
		probe()
		turn(0, saveDelay)
		c.now = c.now.Add(saveDelay / 2)
		probe()
		turn(0, saveDelay/2)
		c.now = c.now.Add(saveDelay / 2)
		store.err = errors.New("full")
		turn(1, saveDelay)
		store.err = nil
		c.now = c.now.Add(saveDelay)
		turn(1, resyncPeriod-3*saveDelay/2)
		c.rebuilding, c.started = true, c.now // nothing is saved until the cluster west has reported
		c.ledger.ForgetCluster("west")
		probe()
		turn(0, time.Second)
	})
}

// A quietSource has no new commit.
type quietSource struct{ Source }

func (quietSource) Status() gitsource.Status { return gitsource.Status{} }

// Times in the future become past when the clock was set back.
func TestTheClockIsSetBack(t *testing.T) {
	c := newSettled(t)
	c.cfg.Now = func() time.Time { return c.now }
	c.Reconciler.now()
	before := c.ledger.Cluster("east").At
	c.now = c.now.Add(-time.Hour)
	now := c.Reconciler.now()
	if got := c.ledger.Cluster("east").At; !before.After(now) || got.After(now) {
		t.Errorf("observed at %s, and it is %s", got, now)
	}
}

// The ID of the fleet is that of the ledger; for an empty ledger it is determined later.
func TestTheFleetKeepsItsID(t *testing.T) {
	for name, test := range map[string]struct {
		saved      string
		rebuilding bool
		want       string
	}{
		"saved":          {"old", false, "old"},
		"not saved":      {"", false, "new"},
		"an empty one":   {"", true, ""},
		"saved, rebuilt": {"old", true, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newHistoryScene(t)
			c.cfg.Fleet, c.rebuilding = protocol.Fleet{Name: "prod", ID: "new"}, test.rebuilding
			c.ledger.SetFleet(protocol.Fleet{Name: "prod", ID: test.saved})
			c.setFleet()
			if got := c.ledger.Fleet(); got != (protocol.Fleet{Name: "prod", ID: test.want}) {
				t.Errorf("fleet %+v, want the ID %q", got, test.want)
			}
		})
	}
}
