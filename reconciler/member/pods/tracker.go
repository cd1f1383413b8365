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
	"k8s.io/apimachinery/pkg/types"

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
	askRefused  = 30 * time.Second // after something may not be read: the permission may be granted
	askTogether = 4                // workloads of one cluster, and no more within stuckAfter
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
	// refused are the messages about what may not be read here that were logged.
	refused map[string]bool
}

// A workload is what is known of one that is not available.
type workload struct {
	generation int64
	// lenient is the message of a workload that counts as available while its pods are read; empty
	// for others. settled says that its pods are not read again.
	lenient  string
	settled  bool
	asked    time.Time     // when its pods were last read
	next     time.Time     // when they are next read
	times    retry.Backoff // how often they were read
	why, pod string        // pod is the one that why names as an example
	// blocked says that why is what keeps pods from starting.
	blocked bool
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
	refused, err error
}

// A Finding is what is known about a workload that is not available.
type Finding struct {
	// Why is what its pods and events say; empty while that is unknown. Pod is the pod that it names as an example.
	Why, Pod string
	// Failed says that its pods have failed to start for too long.
	Failed bool
	// Blocked says that it is not available, although it counts as available: its pods cannot be
	// created, or cannot start.
	Blocked bool
}

// New returns a tracker that knows of no workload.
func New(conn *connection.Conn, cfg Config) *Tracker { return &Tracker{conn: conn, cfg: cfg} }

// Observe records the health of an object, and returns what is known about it.
func (t *Tracker) Observe(id api.ID, h health.Health, generation int64) Finding {
	lenient := ""
	if h.Counts() {
		lenient = h.Message
	}
	if h.Counts() && lenient == "" || h.Unseen || !IsWorkload(id.GroupKind()) {
		t.recovered(id)
		return Finding{}
	}
	known := t.stuck[id]
	switch {
	case known != nil && !known.well && known.generation == generation && known.lenient != lenient:
		// What was found stays until the next answer, since a CronJob may begin another Job each minute.
		known.lenient, known.settled = lenient, false
		known.next = retry.Earlier(known.next, retry.Later(time.Now().Add(t.askAfter()), known.asked.Add(askAgain)))
		t.schedule()
	case known == nil || known.well || known.generation != generation:
		anew := &workload{generation: generation, lenient: lenient, next: time.Now().Add(t.askAfter())}
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
	if lenient != "" && !known.blocked {
		return Finding{}
	}
	return Finding{Why: known.why, Pod: known.pod, Failed: known.failed, Blocked: lenient != ""}
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
		if !w.settled {
			first = retry.Earlier(first, w.next)
		}
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

// Desired returns an object as it should be, nil if nothing wants it, and the UID of the live object,
// empty if it is not known.
type Desired func(api.ID) (*unstructured.Unstructured, types.UID)

// Ask reads the pods of the workloads that are due, in a goroutine of its own. secrets are what no
// answer may quote.
func (t *Tracker) Ask(ctx context.Context, desired Desired, secrets func() diff.Secrets) {
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
			diagnosis, refused, err := diagnose(ctx, t.conn, q)
			answers[q.id] = answer{q.generation, diagnosis, refused, err}
		}
		t.answers.Store(&answers)
		t.cfg.Wake()
	})
}

// questions returns those that are due, the longest waiting first.
func (t *Tracker) questions(now time.Time, desired Desired, secrets func() diff.Secrets) []question {
	var due []api.ID
	for id, w := range t.stuck {
		if !w.settled && !w.next.After(now) {
			due = append(due, id)
		}
	}
	slices.SortFunc(due, func(a, b api.ID) int {
		return cmp.Or(t.stuck[a].next.Compare(t.stuck[b].next), a.Compare(b))
	})
	var ask []question
	for _, id := range due {
		w := t.stuck[id]
		o, uid := desired(id)
		if o == nil || w.well {
			delete(t.stuck, id)
			continue
		}
		if len(ask) == askTogether {
			break
		}
		w.asked = now
		ask = append(ask, question{id, uid, w.generation, selectorOf(o), secrets()})
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
		t.recordRefusal(a.refused)
		if a.err != nil {
			if t.unanswered(w, a.err) {
				news = append(news, id)
			}
			continue
		}
		if w.record(a.Diagnosis, t.cfg.FailureTimeout) {
			news = append(news, id)
		}
		if a.refused != nil {
			w.next = retry.Earlier(w.next, time.Now().Add(askRefused))
		}
	}
	t.schedule()
	return news
}

// record records what the pods say now, and reports whether that is news. When the timeout has
// passed, pods that do not start are read once more before they count as failed.
func (w *workload) record(diagnosis health.Diagnosis, timeout time.Duration) (news bool) {
	now := time.Now()
	switch {
	case diagnosis.Start == health.Starting:
		w.notStarting = time.Time{}
	case diagnosis.Start == health.NotStarting && w.notStarting.IsZero():
		w.notStarting = now
	}
	failed := !w.notStarting.IsZero() && now.Sub(w.notStarting) >= timeout
	news = diagnosis.Why != w.why || failed != w.failed || diagnosis.Blocked != w.blocked
	w.why, w.pod, w.failed, w.blocked = diagnosis.Why, diagnosis.Pod, failed, diagnosis.Blocked
	w.settled = w.lenient != "" && !diagnosis.Blocked && !diagnosis.Pending
	w.next = now.Add(w.times.Next(askAgain, askSeldom))
	if !w.notStarting.IsZero() && !failed {
		w.next = retry.Earlier(w.next, w.notStarting.Add(timeout))
	}
	return news
}

// unanswered postpones a question that got no answer, and reports whether that is news.
func (t *Tracker) unanswered(w *workload, err error) (news bool) {
	w.next = time.Now().Add(w.times.Next(askAgain, askSeldom))
	if !apierrors.IsForbidden(err) {
		t.cfg.Log.Debug("pods not read", "cluster", t.cfg.Cluster, "err", err)
		return false
	}
	w.next, w.times = time.Now().Add(askRefused), 0
	refused := &forbiddenError{"pods", err}
	t.recordRefusal(refused)
	was := w.why
	w.why, w.pod = "the reason is not known: "+refused.Error()+" there", ""
	return w.why != was
}

// recordRefusal logs what may not be read, once.
func (t *Tracker) recordRefusal(refused error) {
	if refused == nil || t.refused[refused.Error()] {
		return
	}
	if t.refused == nil {
		t.refused = map[string]bool{}
	}
	t.refused[refused.Error()] = true
	t.cfg.Log.Warn("reports do not say in full why a workload is not available; grant gitfleet the optional permissions",
		"cluster", t.cfg.Cluster, "err", refused)
}

// Stop stops waking. The context of Ask is cancelled before Wait.
func (t *Tracker) Stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

// Wait waits until no pods are being read.
func (t *Tracker) Wait() { t.running.Wait() }
