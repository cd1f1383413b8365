// Package simulation plays the life of a small fleet, driven by a seed, and holds
// gitfleet to its laws at every step: the real loop, plan, rollout and ledger in
// virtual time, with members and a repository that are made up.
//
// Everything that is made up happens one thing at a time, each at an instant of
// its own, and is over before the next begins. So a seed always gives the same
// life, and one that breaks a law can be told as a story.
package simulation

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A world is the state of one life.
type world struct {
	t       *testing.T
	seed    uint64
	loaders *Loaders
	mutant  Mutant

	// mu is held by whoever looks at what follows: the story's own goroutine, or
	// the loop that calls from its own.
	mu    sync.Mutex
	began time.Time
	clock clock
	// asked is what persons wait for an answer to.
	asked []*asked
	// maxUnreachable is how gitfleet is configured; empty if it is not.
	maxUnreachable string

	queue queue
	// news says that something was added to it.
	news   chan struct{}
	ticks  [3]int
	outbox []said
	// closing are channels to be closed once nobody holds the world, ending are
	// agents that were told to end.
	closing []chan struct{}
	ending  []*agent
	hosts   map[string]*host
	source  *source
	daemon  *daemon
	state   state
	// replicas are nil if one daemon keeps its ledger in the state directory.
	replicas *replicas
	// bursts says that what members say comes while the loop is busy.
	bursts bool

	// decided is what gitfleet decided last, books what of that is saved, and
	// saved all that goes with it.
	decided, books *books
	saved          *memory
	// unsaved are the books before the last save.
	unsaved       *books
	unsavedMemory *memory
	// older are the books of all saves but the last, if there is a disk.
	older  []*books
	report *status.Report

	// contents are what revisions stand for, by their hash.
	contents map[string]revision

	// losses count the ledgers and commits that were lost.
	losses  int
	telling bool
	last    string // state of everything that was told
	text    strings.Builder
	broken  *Broken
}

// Loaders are kept from one life to the next, since they remember what they
// parsed. One goroutine may use them.
type Loaders struct{ head, past *hub.Loader }

// NewLoaders returns loaders that have not loaded anything.
func NewLoaders() *Loaders {
	return &Loaders{hub.NewLoader(hub.Options{}), hub.NewLoader(hub.Options{})}
}

// A said is an observation on its way to the loop.
type said struct {
	by *agent
	ledger.Observation
}

// A Broken says which law was broken, and how.
type Broken struct{ Law, Text string }

func (b *Broken) String() string { return "the law is broken that " + b.Law + ": " + b.Text }

// breaks records the first law that is broken, which ends the life.
func (w *world) breaks(law, format string, args ...any) {
	if w.broken == nil {
		w.broken = &Broken{law, fmt.Sprintf(format, args...)}
		w.story("BROKEN: %s", w.broken)
	}
}

// story adds a line to the story.
func (w *world) story(format string, args ...any) {
	if !w.telling {
		return
	}
	since := time.Since(w.began)
	fmt.Fprintf(&w.text, "%02d:%02d:%02d.%03d ", int(since.Hours()), int(since.Minutes())%60, int(since.Seconds())%60, since.Milliseconds()%1000)
	fmt.Fprintf(&w.text, format+"\n", args...)
}

// An event is something that happens by itself.
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

// Who sleeps in a world: the story, what runs the source, and what reads
// commits. Each has instants of its own.
const (
	storyteller = iota
	follower
	reader
)

// instant returns a time about d from now, at which nothing else happens: each fraction of a
// millisecond is used once.
func (w *world) instant(who int, d time.Duration) time.Time {
	w.ticks[who]++
	return time.Now().Add(d).Truncate(time.Millisecond).Add(time.Millisecond + time.Duration(who*300_000+w.ticks[who])*time.Nanosecond)
}

func (w *world) after(d time.Duration, do func()) {
	heap.Push(&w.queue, event{w.instant(storyteller, d), do})
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// pass lets time pass, with everything that happens meanwhile.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	end := w.instant(storyteller, d)
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
	case <-w.news: // of what is known now
	default:
	}
	w.mu.Unlock()
	switch {
	case !w.sleep(at):
		return true // the next event is another one now
	case last:
		return false
	}
	w.mu.Lock()
	e := heap.Pop(&w.queue).(event)
	w.mu.Unlock()
	w.happen(e.do)
	return true
}

// happen runs an event now, and everything that follows from it.
func (w *world) happen(do func()) {
	w.mu.Lock()
	do()
	w.mu.Unlock()
	w.calm()
}

// calm delivers the observations one by one until there are none.
func (w *world) calm() {
	for {
		synctest.Wait()
		w.mu.Lock()
		for _, c := range w.closing {
			close(c)
		}
		w.endAgents()
		w.hearAnswers()
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
			w.bury()
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
	if o.by.ended {
		return func() {}
	}
	w.hear(o.Observation)
	return func() { o.by.report(o.Observation) }
}

// sleep waits until a time, and reports whether it came before a new event: the loop has timers
// of its own, and sends works to members while nobody else is awake.
func (w *world) sleep(until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		w.calm()
		return true
	case <-w.news:
		w.calm()
		return false
	}
}

func (w *world) fine() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken == nil
}
