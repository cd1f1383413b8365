// Package simulation runs random scenarios of a small fleet, each derived from a seed, and checks
// gitfleet's invariants at every step: the real loop, plan, rollout and ledger in virtual time,
// with simulated members and a simulated repository.
//
// Simulated events happen one at a time, each at its own instant, and are over before the next
// begins. So a seed always gives the same scenario, and the log of one that violates an invariant can
// be printed.
package simulation

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A world is the state of a running scenario.
type world struct {
	t       *testing.T
	seed    uint64
	loaders *Loaders
	mutant  Mutant
	names   bool // see Scenario
	// restores says that clusters are restored; see Scenario.
	restores bool
	removals bool // see Scenario
	staged   bool // see Scenario
	gated    bool // see Scenario.Gates

	// mu protects the following fields: they are used by the goroutine of the scenario, and by
	// calls of the loop.
	mu    sync.Mutex
	began time.Time
	clock clock
	// requests are users' requests without a response.
	requests []*userRequest
	// maxUnreachable is a setting of gitfleet; empty if it is not set.
	maxUnreachable string

	queue queue
	// queueChanged says that something was added to the queue.
	queueChanged chan struct{}
	instants     [3]int
	outbox       []report
	// closing are channels to be closed once mu is free, ending are agents whose context has
	// ended.
	closing []chan struct{}
	ending  []*agent
	hosts   map[string]*host
	source  *source
	daemon  *daemon
	state   state
	// replicas is nil if one daemon keeps its ledger in the state directory.
	replicas *replicas
	// reportsDuringTurns says that reports of members arrive while the loop is busy.
	reportsDuringTurns bool

	// decided is the model of the last decisions, saved that of the last save, and
	// savedObservations those at the last save.
	decided, saved    *model
	savedObservations *observations
	// previous is the model before the last save.
	previous             *model
	previousObservations *observations
	// older are the models of all saves but the last, if there is a disk.
	older  []*model
	report *status.Report

	// contents are the contents of revisions, by their hash.
	contents map[string]revisionContent
	// blips says that what gitfleet does on a cluster may make objects unavailable for a moment.
	blips bool
	// availableSomewhere are the hashes of the contents that were available on any cluster. exposed are the clusters that
	// were taken from what was available to content that has not been available there yet, with its hash.
	availableSomewhere map[string]bool
	exposed            map[bindingKey]string

	// gates are what gates answer now, as gateRandom draws it.
	gates      gateConditions
	gateRandom *rand.Rand

	// losses count the ledgers and commits that were lost.
	losses     int
	verbose    bool
	lastStatus string // the state of all placements in the last report
	text       strings.Builder
	violation  *Violation
}

// Loaders are shared by the scenarios of one goroutine, since they cache what they parsed.
type Loaders struct{ head, past *hub.Loader }

// NewLoaders returns loaders that have not loaded anything.
func NewLoaders() *Loaders {
	return &Loaders{hub.NewLoader(hub.Options{}), hub.NewLoader(hub.Options{})}
}

// A report is an observation that is not delivered yet.
type report struct {
	from *agent
	protocol.Observation
}

// A Violation is an invariant that was violated, and how.
type Violation struct{ Invariant, Text string }

func (v *Violation) String() string { return "violated: " + v.Invariant + ": " + v.Text }

// violate records the first violation, which ends the scenario.
func (w *world) violate(invariant, format string, args ...any) {
	if w.violation == nil && (!w.names || checkedUnderNames[invariant]) && (!w.restores || checkedAfterRestores[invariant]) && (!w.staged || checkedInStagedRuns[invariant]) {
		w.violation = &Violation{invariant, fmt.Sprintf(format, args...)}
		w.logf("%s", w.violation)
	}
}

// logf adds a line to the log.
func (w *world) logf(format string, args ...any) {
	if !w.verbose {
		return
	}
	since := time.Since(w.began)
	fmt.Fprintf(&w.text, "%02d:%02d:%02d.%03d ", int(since.Hours()), int(since.Minutes())%60, int(since.Seconds())%60, since.Milliseconds()%1000)
	fmt.Fprintf(&w.text, format+"\n", args...)
}

// An event is a scheduled function.
type event struct {
	at time.Time
	do func()
}

type queue []event

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(e any)        { *q = append(*q, e.(event)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}

// The goroutines with timers in a world: the scenario, the source, and readers of commits. Each has
// its own instants.
const (
	scenarioTimers = iota
	sourceTimers
	commitTimers
)

// nextInstant returns a time about d from now, at which nothing else happens: each fraction of
// a millisecond is used once.
func (w *world) nextInstant(who int, d time.Duration) time.Time {
	w.instants[who]++
	return time.Now().Add(d).Truncate(time.Millisecond).Add(time.Millisecond + time.Duration(who*300_000+w.instants[who])*time.Nanosecond)
}

func (w *world) after(d time.Duration, do func()) {
	heap.Push(&w.queue, event{w.nextInstant(scenarioTimers, d), do})
	select {
	case w.queueChanged <- struct{}{}:
	default:
	}
}

// advance lets time pass, and runs the events of that time.
func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	end := w.nextInstant(scenarioTimers, d)
	w.mu.Unlock()
	for w.fine() && w.next(end) {
	}
}

// next waits for the next event and runs it. It reports whether that was before the end.
func (w *world) next(end time.Time) bool {
	w.mu.Lock()
	at, last := end, true
	if len(w.queue) > 0 && w.queue[0].at.Before(end) {
		at, last = w.queue[0].at, false
	}
	select {
	case <-w.queueChanged: // of changes that are considered here
	default:
	}
	w.mu.Unlock()
	switch {
	case !w.sleep(at):
		return true // another event is the next one now
	case last:
		return false
	}
	w.mu.Lock()
	e := heap.Pop(&w.queue).(event)
	w.mu.Unlock()
	w.runEvent(e.do)
	return true
}

// runEvent runs a function, and everything that follows from it at this time.
func (w *world) runEvent(do func()) {
	w.mu.Lock()
	do()
	w.mu.Unlock()
	w.deliverAll()
}

// deliverAll delivers the observations one by one until there are none.
func (w *world) deliverAll() {
	for {
		synctest.Wait()
		w.mu.Lock()
		for _, c := range w.closing {
			close(c)
		}
		w.endAgents()
		w.handleResponses()
		closed := len(w.closing) > 0
		w.closing = nil
		crashed := w.daemon != nil && w.daemon.dead
		deliver := func() {}
		if len(w.outbox) > 0 {
			deliver = w.deliver()
		} else if !closed && !crashed {
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		if crashed {
			w.endKilled()
		} else {
			deliver()
		}
	}
}

// endAgents ends the agents that were cancelled, in order.
func (w *world) endAgents() {
	slices.SortFunc(w.ending, func(a, b *agent) int { return strings.Compare(a.name, b.name) })
	for _, a := range w.ending {
		a.stop()
	}
	w.ending = nil
}

// deliver takes the first observation, and returns a function that delivers it.
func (w *world) deliver() func() {
	o := w.outbox[0]
	w.outbox = w.outbox[1:]
	if o.from.ended {
		return func() {}
	}
	w.record(o.Observation)
	return func() { o.from.report(o.Observation) }
}

// sleep waits until a time. It returns false if an event was scheduled before: the loop has its
// own timers, and sends works to members during a sleep.
func (w *world) sleep(until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		w.deliverAll()
		return true
	case <-w.queueChanged:
		w.deliverAll()
		return false
	}
}

func (w *world) fine() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.violation == nil
}
