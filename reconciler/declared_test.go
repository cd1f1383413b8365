package reconciler

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

// A restartedLoop is a loop that can be restarted between turns and keeps only its store.
type restartedLoop struct {
	*historyScene
	store  ledger.Store
	report *status.Report
}

func (l *restartedLoop) commit(hash, text string) {
	l.t.Helper()
	l.now = l.now.Add(time.Minute)
	c := hub.Commit{Hash: hash, Subject: "make " + hash, Time: l.now}
	head, err := hub.NewLoader(hub.Options{}).Load(c, world.Files(l.t, text))
	if err != nil {
		l.t.Fatal(err)
	}
	l.commits.putInForce(loaded{commit: c, snapshot: head}, l.ledger, l.now)
	l.turn()
}

func (l *restartedLoop) turn() {
	l.t.Helper()
	p := plan.Resolve(plan.Input{InForce: l.commits.inForce, Past: l.commits.past.snapshots, Ledger: l.ledger, Now: l.now, Memo: l.memo})
	p.UpdateLedger(l.ledger)
	l.report = l.Reconciler.report(p, l.now)
	if err := l.store.Save(l.ledger); err != nil {
		l.t.Fatal(err)
	}
}

// restart starts a new loop with the saved ledger and the commit in force.
func (l *restartedLoop) restart() {
	l.t.Helper()
	head, now := l.commits.inForce, l.now.Add(time.Hour)
	l.historyScene = newHistoryScene(l.t)
	l.now, l.cfg.Store = now, l.store
	var err error
	if l.ledger, err = l.store.Load(); err != nil {
		l.t.Fatal(err)
	}
	l.Reconciler.report(&plan.Plan{}, now).UpdateLedger(l.ledger)
	l.commits.putInForce(loaded{commit: head.Commit, snapshot: head, resumed: true}, l.ledger, now)
	l.turn()
}

// The metadata of objects is that of the commits that changed them, however often the daemon is
// restarted.
func TestMetadataOutlivesARestart(t *testing.T) {
	l := &restartedLoop{historyScene: newHistoryScene(t), store: ledger.Memory()}
	l.commit("c1", "clusters east\nnamespace web\nconfigmap web/one a\nplace web")
	began := metav1.NewTime(l.now)
	east := l.report.Clusters[0]
	if east.Generation != 1 || !east.CreationTimestamp.Equal(&began) || east.Annotations[api.CommitAnnotation] != "c1" {
		t.Errorf("a cluster of the first commit: %+v", east.ObjectMeta)
	}
	l.commit("c2", "clusters east west\nnamespace web\nconfigmap web/one b\nplace web")
	before := l.report
	for range 2 {
		l.restart()
	}
	for i, c := range l.report.Clusters {
		if was := before.Clusters[i]; c.UID != was.UID || c.Generation != was.Generation || !c.CreationTimestamp.Equal(&was.CreationTimestamp) || c.Annotations[api.CommitAnnotation] != was.Annotations[api.CommitAnnotation] {
			t.Errorf("after a restart %+v\nbefore %+v", c.ObjectMeta, was.ObjectMeta)
		}
	}
	if got := l.report.Declared[one]; got.Generation != 2 || got.Commit != "c2" || !got.Created.Equal(began.Time) {
		t.Errorf("a manifest that the second commit changed: %+v", got)
	}
	if got, want := l.report.Events, before.Events; len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("events after a restart\n%+v\nbefore\n%+v", got, want)
	}
}

// An object that is removed from Git and added again is a new object.
func TestWhatComesAgainIsAnother(t *testing.T) {
	const less = "clusters east\nnamespace web\nconfigmap web/one a\nplace docs of web"
	const all = "clusters east west\nnamespace web\nconfigmap web/one a\nplace docs of web\nplace web"
	l := &restartedLoop{historyScene: newHistoryScene(t), store: ledger.Memory()}
	uids := func() []types.UID {
		return []types.UID{slices.Collect(l.report.EachClusterResourcePlacement())[1].UID, l.report.Clusters[1].UID}
	}
	l.commit("c1", all)
	first := uids()
	l.commit("c2", less)
	l.restart()
	l.commit("c3", all)
	for i, uid := range uids() {
		if uid == first[i] {
			t.Errorf("object %d has the uid of the one that is gone", i)
		}
	}
}

// A new process, also another replica after a failover, repeats neither an event nor an entry of the history of what its predecessor has
// saved: which commit is in force, which is refused and why, what is suspended, and that the repository cannot be read. A suspension
// whose time ends meanwhile ends once.
func TestARestartRepeatsNothingOfCommitsAndSuspensions(t *testing.T) {
	const text = "clusters east\nnamespace web\nconfigmap web/one a\nplace web"
	l := &restartedLoop{historyScene: newHistoryScene(t), store: ledger.Memory()}
	l.cfg.Store = l.store
	refuse := func(why string) {
		l.commits.putInForce(loaded{commit: hub.Commit{Hash: "c2", Subject: "make c2"}, err: errors.New(why)}, l.ledger, l.now)
	}
	poll := func(why string, notAccepted bool) {
		l.cfg.Source = polledSource{status: gitsource.Status{LastPoll: l.now, Error: why, Refused: notAccepted}}
		l.drainEvents(t.Context(), l.now)
	}
	l.commit("c1", text)
	for _, o := range []Order{{Subject: "cluster/east", Reason: "INC-1", By: "ada"}, {Subject: "crp/web", Reason: "INC-2", By: "ada", Until: l.now.Add(90 * time.Minute)}} {
		l.runOrders(t.Context(), []queuedOrder{{Order: o, do: (*orderRun).suspend, done: make(chan answer, 1)}}, l.now)
	}
	poll("timeout", false)
	refuse("not YAML")
	l.turn()
	before := l.report.Events
	l.restart()
	poll("timeout", false)
	refuse("not YAML")
	l.endSuspensions(l.now)
	l.turn()
	l.tells("")
	if !slices.Equal(l.report.Events, before) {
		t.Errorf("events after a restart\n%+v\nbefore\n%+v", l.report.Events, before)
	}
	l.restart()
	l.endSuspensions(l.now)
	publish(l.cfg, slices.Concat(l.planned...)...)
	poll("commit c3: not signed", true)
	refuse("too large")
	l.turn()
	l.tells("action ended crp/web | ada | it was suspended by ada until 2026-03-01T13:31:00Z: INC-2\ncommit refused @c2 | make c2 | too large\n")
	var news []string
	for _, e := range l.report.Events[len(before):] {
		news = append(news, e.Reason+" "+e.About())
	}
	if want := []string{"Resumed crp/web", "FetchSucceeded repository/hub", "CommitRefused repository/hub", "CommitRefused repository/hub"}; !slices.Equal(news, want) {
		t.Errorf("new events %q, want %q", news, want)
	}
}

// The event of a refused commit says whether another one is in force: none is after a restart if the last one does not load any more.
func TestARefusedCommitSaysWhatStaysInForce(t *testing.T) {
	c := newHistoryScene(t)
	c.ledger.SetInForce("c1")
	refuse := func(hash string) {
		c.commits.putInForce(loaded{commit: hub.Commit{Hash: hash}, err: errors.New("not YAML")}, c.ledger, c.now)
	}
	refuse("c2")
	c.commits.putInForce(c.loadedCommit("c3", "", fmt.Sprintf(small, "a")), c.ledger, c.now)
	refuse("c4")
	refuse("c5")
	var got []string
	for _, e := range c.ledger.Events() {
		got = append(got, e.Message)
	}
	want := []string{
		"Commit c2 (no subject) is refused, and no commit is in force yet: not YAML", "Commit c3 (make c3) is in force",
		"Commit c4 (no subject) is refused, and the last good one stays in force: not YAML", "Commit c5 (no subject) is refused, and the last good one stays in force: not YAML",
	}
	if !slices.Equal(got, want) {
		t.Errorf("events %q\nwant %q", got, want)
	}
}

// A polledSource has the status of a poll.
type polledSource struct {
	Source
	status gitsource.Status
}

func (s polledSource) Status() gitsource.Status { return s.status }

// The event of a commit or of an order is saved with it, so that a crash before the next report does not lose it. An order that fails takes its event with it.
func TestEventsAreSavedWithWhatTheyAreAbout(t *testing.T) {
	c := newOrdered(t)
	store := ledger.Memory()
	c.cfg.Store = store
	saved := func() (reasons []string) {
		l, err := store.Load()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range l.Events() {
			reasons = append(reasons, e.Reason)
		}
		return reasons
	}
	c.commits.putInForce(c.loadedCommit("c2", "", fmt.Sprintf(small, "b")), c.ledger, c.now)
	suspend := []queuedOrder{{Order: Order{Subject: "crp/web", Reason: "INC-1", By: "ada"}, do: (*orderRun).suspend, done: make(chan answer, 1)}}
	c.runOrders(t.Context(), suspend, c.now)
	if got := saved(); !slices.Equal(got, []string{api.CommitInForce, api.Suspended}) {
		t.Errorf("saved events %q", got)
	}
	before := c.ledger.Events()
	c.cfg.Store = fullStore{}
	c.runOrders(t.Context(), suspend, c.now.Add(time.Second))
	if got := c.ledger.Events(); !slices.Equal(got, before) {
		t.Errorf("events after an order that could not be saved: %+v, before %+v", got, before)
	}
}

// A suspension of a member that is renamed goes on under the new name, which is neither its end nor a beginning.
func TestSuspensionsOfRenamedMembersGoOn(t *testing.T) {
	l := &restartedLoop{historyScene: newHistoryScene(t), store: ledger.Memory()}
	l.cfg.Store = l.store
	l.commit("c1", "clusters east west\nnamespace web\nplace web")
	l.seen("east", "")
	l.seen("west", "")
	l.runOrders(t.Context(), []queuedOrder{{Order: Order{Subject: "cluster/east", Reason: "INC-1", By: "ada"}, do: (*orderRun).suspend, done: make(chan answer, 1)}}, l.now)
	l.turn()
	before := len(l.report.Events)
	l.ledger.RenameCluster("east", "west")
	l.turn()
	if _, suspended := l.ledger.Suspension(ledger.Subject{Cluster: "west"}); !suspended {
		t.Error("the new name is not suspended")
	}
	for _, e := range l.report.Events[before:] {
		if e.Reason == api.Suspended || e.Reason == api.Resumed {
			t.Errorf("event %+v", e)
		}
	}
}
