package reconciler

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/world"
)

// A historyScene runs turns of a loop with given commits and reports of members, and has the
// resulting history as text.
type historyScene struct {
	*Reconciler
	t    *testing.T
	now  time.Time
	memo *plan.Memo
	last *plan.Plan
	text strings.Builder
}

func newHistoryScene(t *testing.T) *historyScene {
	c := &historyScene{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), memo: plan.NewMemo()}
	c.Reconciler = New(Config{Record: c.record, Store: ledger.Memory(), Log: slog.New(slog.DiscardHandler)})
	c.ledger = ledger.New()
	return c
}

// newSettled returns a historyScene in which east and west have applied the placement of the
// commit c1, and forgets the history so far.
func newSettled(t *testing.T) *historyScene {
	c := newHistoryScene(t)
	c.commit("c1", fmt.Sprintf(small, "a"))
	c.seen("east", "")
	c.seen("west", "")
	c.turns(1)
	c.turn()
	c.text.Reset()
	return c
}

func (c *historyScene) record(entries ...history.Entry) {
	for _, e := range entries {
		line := fmt.Sprintf("%s %s", e.Kind, e.Event)
		for _, part := range []string{e.Placement, e.Cluster} {
			if part != "" {
				line += " " + part
			}
		}
		if e.Revision != "" {
			line += " #" + e.Revision
		}
		if e.Commit != "" {
			line += " @" + e.Commit
		}
		for _, part := range []string{e.By, e.Author, e.Subject, e.Message} {
			if part != "" {
				line += " | " + part
			}
		}
		c.text.WriteString(line + "\n")
	}
}

// tells compares the history since the last call.
func (c *historyScene) tells(want string) {
	c.t.Helper()
	want = strings.ReplaceAll(strings.TrimPrefix(want, "\n"), "\t", "")
	if got := c.text.String(); got != want {
		c.t.Errorf("the history says\n%s\nwant\n%s", got, want)
	}
	c.text.Reset()
}

func (c *historyScene) commit(hash, text string) {
	c.t.Helper()
	head, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: hash, Author: "Ada", Subject: "make " + hash, Time: c.now}, world.Files(c.t, text))
	if err != nil {
		c.t.Fatal(err)
	}
	c.commits.inForce = head
	c.commits.past.snapshots[hash] = head
}

// turn plans once and records the result.
func (c *historyScene) turn() {
	c.now = c.now.Add(time.Second)
	c.last = plan.Resolve(plan.Input{InForce: c.commits.inForce, Past: c.commits.past.snapshots, Ledger: c.ledger, Now: c.now, Memo: c.memo})
	c.record(occurrence.Entries(slices.Concat(occurrence.OfPlan(c.last, c.ledger, c.commits.inForce.Commit)...))...)
	c.last.UpdateLedger(c.ledger)
}

// turns runs some turns, after each of which both clusters report that they have done what they
// were sent.
func (c *historyScene) turns(n int) {
	for range n {
		c.turn()
		c.says("east")
		c.says("west")
	}
}

func (c *historyScene) observe(s observedSubject, o protocol.Observation) {
	c.observations.foldObservation(c.ledger, s, o)
	c.observations.publish()
}

func (c *historyScene) seen(cluster, failure string) {
	c.now = c.now.Add(time.Second)
	c.observe(observedSubject{cluster: cluster}, protocol.ClusterSeen{Cluster: cluster, At: c.now, Healthy: failure == "", Error: failure})
}

// says makes a member report its work as it was last sent.
func (c *historyScene) says(cluster string, exceptions ...protocol.ObjectState) {
	c.now = c.now.Add(time.Second)
	for _, w := range c.last.Works[cluster] {
		c.observe(observedSubject{cluster, w.Placement}, protocol.WorkSeen{Cluster: cluster, Placement: w.Placement, At: c.now, WorkState: protocol.WorkState{Revision: w.Revision, Done: true, Removed: w.Remove, Total: len(w.Manifests), Exceptions: exceptions}})
	}
}

var one = api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}

func broken(reason, message string) protocol.ObjectState {
	return protocol.ObjectState{ID: one, Version: "v1", Applied: protocol.Verdict{Reason: reason, Cause: message}}
}

func weak(message string) protocol.ObjectState {
	return protocol.ObjectState{ID: one, Version: "v1", Applied: protocol.Verdict{OK: true}, Available: protocol.Verdict{Reason: "NotYet", Cause: message}}
}

const small = "clusters east west\nnamespace web\nconfigmap web/one %s\nplace web unavailable 1"

// The history has each step of a change once: the commit, the revision, the cluster and the
// result.
func TestTheHistoryOfAChange(t *testing.T) {
	c := newHistoryScene(t)
	c.commit("c1", fmt.Sprintf(small, "a"))
	c.seen("east", "")
	c.seen("west", "connection refused")
	c.tells(`
		member joined east
		member unreachable west | connection refused
	`)
	c.seen("west", "connection refused")
	c.seen("west", "")
	c.seen("west", "")
	c.tells(`
		member joined west
	`)
	c.turn()
	c.tells(`
		placement revised crp/web #0 @c1 | Ada | make c1
		cluster assigned crp/web east #0 @c1
		cluster assigned crp/web west #0 @c1
	`)
	c.says("east")
	c.says("east")
	c.says("west", weak("not ready"))
	c.tells(`
		cluster applied crp/web east #0 @c1
		cluster available crp/web east #0 @c1
		cluster applied crp/web west #0 @c1
	`)
	c.says("west", broken("ApplyFailed", "denied"))
	c.says("west", broken("ApplyFailed", "denied again"))
	c.says("west")
	c.tells(`
		cluster failed crp/web west #0 @c1 | ConfigMap/web/one: denied
		cluster applied crp/web west #0 @c1
		cluster available crp/web west #0 @c1
	`)
	c.says("west", weak("crashes"))
	c.says("west")
	c.tells(`
		cluster unavailable crp/web west #0 @c1 | ConfigMap/web/one: crashes
		cluster available crp/web west #0 @c1
	`)
	c.turn()
	c.seen("east", "timeout")
	c.seen("east", "")
	c.tells(`
		member unreachable east | timeout
		member ready east
	`)
}

// New content is a new revision, and the history has an entry when it is assigned to a cluster.
// A commit with the same content adds no entry.
func TestTheHistoryOfARollout(t *testing.T) {
	c := newSettled(t)
	c.commit("c2", fmt.Sprintf(small, "a")+"\nnamespace other")
	c.turn()
	c.tells("")
	c.commit("c3", fmt.Sprintf(small, "b"))
	c.turn()
	c.turn()
	c.tells(`
		placement revised crp/web #1 @c3 | Ada | make c3
		cluster assigned crp/web east #1 @c3
	`)
	c.says("east")
	c.turn()
	c.tells(`
		cluster applied crp/web east #1 @c3
		cluster available crp/web east #1 @c3
		cluster assigned crp/web west #1 @c3
	`)
}

// The history has an entry when a staged update run or one of its stages begins or ends, and when another run takes its place.
func TestTheHistoryOfARun(t *testing.T) {
	const staged = "clusters east/env=canary west/env=prod\nnamespace web\nconfigmap web/one %s\nplace web external\n" +
		"strategy careful canary/env=canary none/env=none prod/env=prod/after\nrun %s of web by careful"
	c := newHistoryScene(t)
	c.commit("c1", fmt.Sprintf(staged, "a", "r1"))
	c.seen("east", "")
	c.seen("west", "")
	c.text.Reset()
	c.turn()
	c.tells(`
		placement revised crp/web #0 @c1 | Ada | make c1
		cluster assigned crp/web east #0 @c1
		placement runStarted crp/web @c1 | run r1
	`)
	c.says("east")
	c.text.Reset()
	c.turn()
	c.tells(`
		cluster assigned crp/web west #0 @c1
		placement stageFinished crp/web @c1 | run r1, stage canary
	`)
	c.commit("c2", fmt.Sprintf(staged, "b", "r2"))
	c.turn()
	c.tells(`
		placement revised crp/web #1 @c2 | Ada | make c2
		cluster assigned crp/web east #1 @c2
		placement runSuperseded crp/web @c1 | run r1: run r2 has taken its place
		placement runStarted crp/web @c2 | run r2
	`)
}

// The history of a removed placement is complete.
func TestTheHistoryOfAnEnd(t *testing.T) {
	c := newSettled(t)
	c.commit("c2", "clusters east west\nnamespace shop\nplace other of shop on east")
	c.turns(3)
	for _, want := range []string{
		"placement removing crp/web @c2 | Ada | make c2\n", "cluster removing crp/web east", "cluster removing crp/web west",
		"cluster removed crp/web east\n", "placement removed crp/web @c2 | Ada | make c2\n", "placement revised crp/other #0 @c2",
	} {
		if strings.Count(c.text.String(), want) != 1 {
			t.Errorf("it does not say %q once:\n%s", want, &c.text)
		}
	}
}

// The history has one entry for a rename under each name of the placement, and none for
// a removal or a new assignment.
func TestTheHistoryOfARename(t *testing.T) {
	c := newSettled(t)
	c.commit("c2", "clusters east west\nnamespace web\nconfigmap web/one a\nplace shop of web unavailable 1")
	c.turns(3)
	c.tells(`
		placement renamed crp/web @c2 | Ada | make c2 | it is crp/shop from now on
		placement renamed crp/shop @c2 | Ada | make c2 | it was crp/web until now
	`)
}

// The history does not report a cluster that lacks permissions as unreachable, nor
// objects as failed whose apply got no answer.
func TestTheHistoryOfAClusterThatCannotBeUsed(t *testing.T) {
	c := newHistoryScene(t)
	c.commit("c1", fmt.Sprintf(small, "a"))
	c.seen("east", "")
	c.turn()
	c.text.Reset()
	unanswered := broken(api.ManifestApplyFailed, "the cluster is unreachable: connection refused")
	unanswered.Pending = true
	c.says("east", unanswered)
	c.seen("east", "connection refused")
	c.tells("member unreachable east | connection refused\n")
	denied := func(healthy bool, permissions ...string) {
		c.now = c.now.Add(time.Second)
		c.observe(observedSubject{cluster: "east"}, protocol.ClusterSeen{Cluster: "east", At: c.now, Healthy: healthy, Forbidden: permissions})
	}
	denied(false, "list configmaps")
	denied(false, "list configmaps")
	c.tells("member forbidden east | permissions are missing: list configmaps: grant them to the user whose credentials gitfleet uses there\n")
	denied(true)
	c.tells("member ready east\n")
	denied(true, "patch deployments.apps")
	denied(true)
	c.tells("member forbidden east | permissions are missing: patch deployments.apps: grant them to the user whose credentials gitfleet uses there\nmember ready east\n")
}

// Actions of users are recorded with their names once they are saved. An action that is refused
// or cannot be saved is not recorded.
func TestTheHistoryOfPersons(t *testing.T) {
	c := newHistoryScene(t)
	c.commit("c1", fmt.Sprintf(small, "a"))
	c.seen("east", "")
	c.turn()
	c.text.Reset()
	give := func(order Order, do func(*orderRun, Order) (string, error)) {
		c.runOrders(t.Context(), []queuedOrder{{Order: order, do: do, done: make(chan answer, 1)}}, c.now)
		c.sendAnswers()
	}
	give(Order{Subject: "crp/web", Cluster: "east", Reason: "INC-1", By: "ada"}, (*orderRun).suspend)
	give(Order{Subject: "crp/web", By: "ada"}, (*orderRun).suspend) // without a reason
	give(Order{Subject: "crp/web", Cluster: "east", By: "bob"}, (*orderRun).resume)
	c.tells(`
		action suspended crp/web east | ada | INC-1
		action resumed crp/web east | bob | it was suspended by ada: INC-1
	`)
	c.cfg.Store = fullStore{}
	give(Order{Subject: "crp/web", Reason: "INC-2", By: "ada"}, (*orderRun).suspend)
	c.cfg.Store = ledger.Memory()
	give(Order{Subject: "cluster/west", Reason: "INC-3", By: "ada", Until: c.now.Truncate(time.Hour).Add(time.Hour)}, (*orderRun).suspend)
	c.tells(`
		action suspended west | ada | INC-3, until 2026-03-01T13:00:00Z
	`)
}

// A fullStore fails to save.
type fullStore struct{ ledger.Store }

func (fullStore) Save(*ledger.Ledger) error { return errors.New("no space left on device") }

// An approval in a file is recorded once, by who signed the commit that last changed the file, and by nobody without signatures. It
// does not matter who signed the commit in force.
func TestApprovalsByCommitAreOfTheSigner(t *testing.T) {
	const run = "clusters east/region=eu west/region=us\nnamespace web\nconfigmap web/one a\nplace web external\nstrategy slow canary/region=eu/before rest/region=us\nrun web-1 of web by slow"
	for _, signed := range []bool{false, true} {
		c := newHistoryScene(t)
		c.commit("c1", run)
		c.seen("east", "")
		c.seen("west", "")
		c.turns(3)
		c.text.Reset()
		c.commit("c3", run+"\napprove web-1 before canary")
		c.commits.inForce.Commit.Signer = "carol (SHA256:y)"
		want := ""
		if signed {
			c.commits.inForce.Signed = map[string]hub.Commit{"approval-web-1-before-canary.yaml": {Hash: "c2", Signer: "bob (SHA256:x)"}}
			want = "web-1-before-canary by bob (SHA256:x), who signed commit c2"
		}
		c.turns(3)
		record := c.ledger.Placement(api.PlacementKey{Name: "web"}).Runs[0]
		if record.Stages[0].ApprovedBefore.IsZero() {
			t.Fatalf("the stage is not approved: %+v", record)
		}
		got := ""
		for _, a := range record.Approvals {
			got += a.Request + " by " + a.Text()
		}
		if got != want {
			t.Errorf("signed: %v, the run has the approvals %q, want %q", signed, got, want)
		}
		entry := "placement approved crp/web @c2 | approval request web-1-before-canary\n"
		if n := strings.Count(c.text.String(), "placement approved"); n != strings.Count(c.text.String(), entry) || n != strings.Count(want, "bob") {
			t.Errorf("signed: %v, %d approvals are in the history:\n%s", signed, n, c.text.String())
		}
	}
}

// If the clock is set forward, or the machine was suspended, the history has the time that the clock shows.
func TestTheHistoryOfAClockThatWasSetForward(t *testing.T) {
	assigned, key, content := time.Now(), api.PlacementKey{Name: "web"}, placement.Revision{Commit: "c1", Hash: "h1"}
	observed := assigned.Add(time.Hour)
	*(*time.Duration)(unsafe.Add(unsafe.Pointer(&observed), 8)) -= time.Hour // the monotonic reading
	if observed.Sub(assigned) != 0 || observed.Round(0).Sub(assigned.Round(0)) != time.Hour {
		t.Fatal("the monotonic reading of a time is elsewhere")
	}
	r := &Reconciler{ledger: ledger.New()}
	r.ledger.SetPlacement(key, ledger.Placement{})
	r.ledger.Bind(key, placement.Binding{Cluster: "east", Assigned: content, AssignedAt: assigned})
	r.observations.foldObservation(r.ledger, observedSubject{cluster: "east", placement: key}, protocol.WorkSeen{
		Cluster: "east", Placement: key, At: observed, WorkState: protocol.WorkState{Revision: content, Done: true, Total: 1},
	})
	for _, e := range occurrence.Entries(r.observations.observed) {
		if !e.Time.Round(0).Equal(observed.Round(0)) {
			t.Errorf("%s at %s, want %s", e.Event, e.Time, observed)
		}
	}
	if len(occurrence.Entries(r.observations.observed)) != 2 {
		t.Errorf("%d entries, want applied and available", len(occurrence.Entries(r.observations.observed)))
	}
}
