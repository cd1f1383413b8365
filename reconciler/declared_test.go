package reconciler

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	l.now = now
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
	keys := func(r *status.Report) (out []string) {
		for i := range r.Events {
			out = append(out, r.Events[i].Reason+" "+r.Events[i].Key().Number())
		}
		return out
	}
	if got, want := keys(l.report), keys(before); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("events after a restart\n%q\nbefore\n%q", got, want)
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
