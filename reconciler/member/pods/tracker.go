package pods

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

const (
	stuckAfter  = 10 * time.Second
	askAgain    = 40 * time.Second // with jitter at least 30
	askSeldom   = 10 * time.Minute
	askTogether = 4 // workloads of one cluster, and no more within stuckAfter
)

// Config configures a tracker. All fields must be set.
type Config struct {
	// Cluster is the name of the cluster in log lines.
	Cluster string
	// FailureTimeout is how long pods may fail to start before their workload counts as failed.
	FailureTimeout time.Duration
	// Wake is called when Ask or Answers has something to do. It must not block.
	Wake func()
	Log  *slog.Logger
}

// A Tracker tracks the workloads of one cluster that are not available. One goroutine uses it.
type Tracker struct {
	conn    *connection.Conn
	cfg     Config
	running sync.WaitGroup
	// stuck are the workloads that are not available.
	stuck  map[api.ID]*workload
	timer  *time.Timer // calls Wake; nil before the first workload
	asking bool
	// answers are what the pods said, until it is recorded; nil if there is nothing.
	answers atomic.Pointer[map[api.ID]answer]
	rests   time.Time // no pods are read before
	// refused says that pods may not be read here, and that this was logged.
	refused bool
}

// A workload is what is known of one that is not available.
type workload struct {
	generation int64
	asked      time.Time     // when its pods were last read
	next       time.Time     // when they are next read
	times      retry.Backoff // how often they were read
	why        string
	// notStarting is since when the pods are known not to start; zero if they do. failed says
	// that this has lasted for the failure timeout.
	notStarting time.Time
	failed      bool
	// well says that it is available again; the entry is kept so that it is not read too often.
	well bool
}

type answer struct {
	generation int64 // the one that the question is about
	health.Diagnosis
	err error
}

// New returns a tracker that knows of no workload.
func New(conn *connection.Conn, cfg Config) *Tracker { return &Tracker{conn: conn, cfg: cfg} }

// Observe records the health of an object. It returns what the pods of an unavailable workload
// say, empty while that is unknown, and whether they have failed to start for too long.
func (t *Tracker) Observe(id api.ID, h health.Health, generation int64) (why string, failed bool) {
	if h.Counts() || h.Unseen() || !workloads[id.GroupKind()] {
		t.recovered(id)
		return "", false
	}
	known := t.stuck[id]
	if known == nil || known.well || known.generation != generation {
		anew := &workload{generation: generation, next: time.Now().Add(t.askAfter())}
		if known != nil && !known.asked.IsZero() {
			anew.asked, anew.next = known.asked, retry.Later(anew.next, known.asked.Add(askAgain))
		}
		known = anew
		if t.stuck == nil {
			t.stuck = map[api.ID]*workload{}
		}
		t.stuck[id] = known
		t.schedule()
	}
	return known.why, known.failed
}

// askAfter is how long a workload is unavailable before its pods are read.
func (t *Tracker) askAfter() time.Duration { return min(stuckAfter, t.cfg.FailureTimeout) }

// recovered drops a workload that is available, as soon as its pods could be read again.
func (t *Tracker) recovered(id api.ID) {
	switch w := t.stuck[id]; {
	case w == nil || w.well:
	case time.Since(w.asked) < askAgain:
		*w = workload{generation: w.generation, asked: w.asked, next: w.asked.Add(askAgain), times: w.times, well: true}
		t.schedule()
	default:
		delete(t.stuck, id)
	}
}

// schedule sets the timer to when the pods of the first are to be read.
func (t *Tracker) schedule() {
	var first time.Time
	for _, w := range t.stuck {
		first = retry.Earlier(first, w.next)
	}
	t.Stop()
	if first.IsZero() || t.asking {
		return
	}
	wait := max(time.Until(first), time.Until(t.rests))
	if t.timer == nil {
		t.timer = time.AfterFunc(wait, t.cfg.Wake)
	} else {
		t.timer.Reset(wait)
	}
}

// Ask reads the pods of the workloads that are due, in a goroutine of its own. desired returns
// an object as it should be, nil if nothing wants it; secrets are what no answer may quote.
func (t *Tracker) Ask(ctx context.Context, desired func(api.ID) *unstructured.Unstructured, secrets func() diff.Secrets) {
	if len(t.stuck) == 0 || t.asking {
		return
	}
	now := time.Now()
	var ask []question
	if !now.Before(t.rests) {
		ask = t.questions(now, desired, secrets)
	}
	if len(ask) == 0 {
		t.schedule()
		return
	}
	t.asking, t.rests = true, now.Add(t.askAfter())
	t.running.Go(func() {
		answers := map[api.ID]answer{}
		for _, q := range ask {
			said, err := diagnose(ctx, t.conn, q)
			answers[q.id] = answer{q.generation, said, err}
		}
		t.answers.Store(&answers)
		t.cfg.Wake()
	})
}

// questions returns those that are due, the longest waiting first.
func (t *Tracker) questions(now time.Time, desired func(api.ID) *unstructured.Unstructured, secrets func() diff.Secrets) []question {
	var due []api.ID
	for id, w := range t.stuck {
		if !w.next.After(now) {
			due = append(due, id)
		}
	}
	slices.SortFunc(due, func(a, b api.ID) int {
		return cmp.Or(t.stuck[a].next.Compare(t.stuck[b].next), a.Compare(b))
	})
	var ask []question
	for _, id := range due {
		w := t.stuck[id]
		o := desired(id)
		if o == nil || w.well {
			delete(t.stuck, id)
			continue
		}
		if len(ask) == askTogether {
			break
		}
		w.asked = now
		ask = append(ask, question{id, w.generation, selectorOf(o), secrets()})
	}
	return ask
}

// Answers records what the pods said since the last call, and returns the workloads of which
// that is news.
func (t *Tracker) Answers() (news []api.ID) {
	answers := t.answers.Swap(nil)
	if answers == nil {
		return nil
	}
	t.asking = false
	for id, a := range *answers {
		w := t.stuck[id]
		if w == nil || w.well || w.generation != a.generation {
			continue
		}
		if a.err != nil {
			t.unanswered(w, a.err)
			continue
		}
		if w.record(a.Diagnosis, t.cfg.FailureTimeout) {
			news = append(news, id)
		}
	}
	t.schedule()
	return news
}

// record records what the pods say now, and reports whether that is news. When the timeout has
// passed, pods that do not start are read once more before they count as failed.
func (w *workload) record(said health.Diagnosis, timeout time.Duration) (news bool) {
	now := time.Now()
	switch {
	case said.Start == health.Starting:
		w.notStarting = time.Time{}
	case said.Start == health.NotStarting && w.notStarting.IsZero():
		w.notStarting = now
	}
	failed := !w.notStarting.IsZero() && now.Sub(w.notStarting) >= timeout
	news = said.Why != w.why || failed != w.failed
	w.why, w.failed = said.Why, failed
	w.next = now.Add(w.times.Next(askAgain, askSeldom))
	if !w.notStarting.IsZero() && !failed {
		w.next = retry.Earlier(w.next, w.notStarting.Add(timeout))
	}
	return news
}

// unanswered postpones a question that got no answer.
func (t *Tracker) unanswered(w *workload, err error) {
	w.next = time.Now().Add(w.times.Next(askAgain, askSeldom))
	if apierrors.IsForbidden(err) {
		w.next = time.Now().Add(askSeldom)
		if !t.refused {
			t.refused = true
			t.cfg.Log.Warn("pods may not be read: reports do not say why a workload is not available; grant gitfleet the permission to list pods",
				"cluster", t.cfg.Cluster, "err", err)
		}
		return
	}
	t.cfg.Log.Debug("pods not read", "cluster", t.cfg.Cluster, "err", err)
}

// Stop stops waking. The context of Ask is cancelled before Wait.
func (t *Tracker) Stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

// Wait waits until no pods are being read.
func (t *Tracker) Wait() { t.running.Wait() }
