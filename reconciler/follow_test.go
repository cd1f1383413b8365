package reconciler

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A savedLedger is the ledger of a leader.
type savedLedger struct {
	mu      sync.Mutex // for the following
	ledger  *ledger.Ledger
	version string
	err     error
	reads   int
}

func (s *savedLedger) Newer(known string) (*ledger.Ledger, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.err != nil || s.version == known {
		return nil, known, s.err
	}
	return s.ledger, s.version, nil
}

func (*savedLedger) Leader() string { return "one" }

// set changes what a read returns.
func (s *savedLedger) set(version string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.err = version, err
}

// countReads returns the number of reads since the last time.
func (s *savedLedger) countReads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.reads
	s.reads = 0
	return n
}

// publishedReports are the reports that a standby has published.
type publishedReports struct {
	mu   sync.Mutex
	list []*status.Report
}

func (p *publishedReports) add(r *status.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, r)
}

// take returns the reports since the last time.
func (p *publishedReports) take() []*status.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.list
	p.list = nil
	return list
}

// A fetchedSource has some commits, and no new ones.
type fetchedSource struct {
	crashingSource
	commits map[string]bool
}

func (s *fetchedSource) Commit(_ context.Context, hash string) (gitsource.Commit, error) {
	if !s.commits[hash] {
		return gitsource.Commit{}, errors.New("no such commit")
	}
	return gitsource.Commit{Hash: hash}, nil
}

// newStandby returns the chronicle of a standby, and the reports that it publishes.
func newStandby(t *testing.T) (c *chronicle, leader *savedLedger, source *fetchedSource, reports *publishedReports) {
	c, leader = newChronicle(t), &savedLedger{ledger: ledger.New(), version: "1"}
	source, reports = &fetchedSource{commits: map[string]bool{}}, &publishedReports{}
	source.t = t
	c.ledger, c.cfg.Source = nil, source
	c.cfg.Publish = reports.add
	return c, leader, source, reports
}

// A standby reports the leader's decisions about the commit in the leader's ledger. It loads that
// commit once it is fetched, and reports nothing before.
func TestAStandbyReportsTheCommitInForceOfTheLeader(t *testing.T) {
	c, leader, source, reports := newStandby(t)
	c.cfg.Now = func() time.Time { return c.now }
	c.guard, c.cfg.Past = NewCrashGuard("", c.cfg.Log), hub.NewLoader(hub.Options{})
	from := &follower{Reconciler: c.Reconciler, leader: leader}
	published := func() bool {
		t.Helper()
		from.readLedger()
		return from.publish(t.Context(), c.now)
	}
	if published() {
		t.Error("reported without a commit in force")
	}
	leader.ledger.SetInForce("c1")
	if published() || c.past.loading != "" {
		t.Error("reported, or requested a commit that is not fetched")
	}
	source.commits["c1"] = true
	if published() || c.past.loading != "c1" {
		t.Error("reported before the commit is loaded, or did not request it")
	}
	c.past.add(c.loadedCommit("c1", "", "clusters east\nnamespace web\nplace web"), c.now, c.cfg.Log)
	from.newestLoaded(loaded{commit: hub.Commit{Hash: "c2"}, snapshot: &hub.Snapshot{Commit: hub.Commit{Hash: "c2"}}})
	if !published() {
		t.Fatal("not reported")
	}
	list := reports.take()
	if len(list) != 1 {
		t.Fatalf("%d reports", len(list))
	}
	r := list[0]
	if r.InForce.Commit.Hash != "c1" || r.Source.InForce.Hash != "c1" || r.Source.Newest.Hash != "c2" || *r.Standby != (status.Standby{Leader: "one", AsOf: c.now}) {
		t.Errorf("in force %s, source %+v, standby %+v", r.InForce.Commit.Hash, r.Source, r.Standby)
	}
	if c.past.snapshots["c2"] == nil {
		t.Error("the newest commit, which the leader may put in force, was dropped")
	}
}

// The ledger is read every ledgerInterval. A report is published when it has changed, and every
// refreshAfter; none while the ledger cannot be read.
func TestHowOftenAStandbyReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, leader, _, reports := newStandby(t)
		c.cfg.Now = time.Now
		c.past.snapshots["c1"] = c.loadedCommit("c1", "", "clusters east\nnamespace web\nplace web").snapshot
		leader.ledger.SetInForce("c1")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Follow(ctx, leader) }()
		step := func(wait time.Duration, want int) {
			t.Helper()
			leader.countReads()
			time.Sleep(wait)
			synctest.Wait()
			if n, reads := len(reports.take()), leader.countReads(); n != want || reads != int(wait/ledgerInterval) {
				t.Errorf("after %s: %d reports and %d reads, want %d and %d", wait, n, reads, want, wait/ledgerInterval)
			}
		}
		synctest.Wait()
		if n := len(reports.take()); n != 1 {
			t.Errorf("%d reports at the start", n)
		}
		step(refreshAfter-ledgerInterval, 0)
		step(ledgerInterval, 1)
		leader.set("2", nil)
		step(ledgerInterval, 1)
		leader.set("2", errors.New("timeout"))
		step(2*refreshAfter, 0)
		leader.set("2", nil)
		step(ledgerInterval, 1)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
