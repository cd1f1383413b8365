package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// replicaShare is the share of scenarios that have two replicas: one of so many. They take twice as
// long as others.
const replicaShare = 16

// The invariants of replicas that share a ledger.
const (
	invariantTerm   = "a former leader does not change the ledger"
	invariantShared = "a replica that takes over finds what the leader saved"
)

// replicas is the state that two replicas share. One leads at a time: the other takes over as
// after a restart, at the earliest when the Lease has expired.
type replicas struct {
	secrets *secrets
	// attempts are the decisions of saves since the last that succeeded. Each of these saves
	// may have been made nevertheless.
	attempts []attempt
	// stopped is a leader that was stopped, as by SIGSTOP, and that another replica has
	// taken over from; nil if there is none.
	stopped *daemon
	// started counts the processes.
	started int
}

// identity names the next process.
func (r *replicas) identity() string {
	r.started++
	return fmt.Sprintf("replica-%d_%d", r.started%2, r.started)
}

// reload returns what was saved, independently of the daemon.
func (w *world) reload() (*ledger.Ledger, error) {
	if w.replicas == nil {
		return w.state.Load()
	}
	return ledger.OpenShared(w.replicas.secrets, "reader", nil).Read()
}

// A replicaSource is the repository as one process, which may be stopped, reads it.
type replicaSource struct {
	*source
	d *daemon
}

// Run passes on each new head, once the process runs.
func (s replicaSource) Run(ctx context.Context, head func(gitsource.Commit)) error {
	return s.source.run(ctx, s.d.waitWhileStopped, head)
}

// An attempt is a save whose result is not known.
type attempt struct {
	books  *model
	memory *observations
}

// The times of the Lease: a replica that is cut off from it writes nothing after fenceAfter,
// and another one leads after leaseDuration at the earliest.
const fenceAfter, leaseDuration = 8 * time.Second, 10 * time.Second

// save saves the ledger in Secrets. It is called without the lock, since the process may be
// stopped between two writes.
func (d *daemon) save(l *ledger.Ledger) error {
	w := d.w
	if !d.former {
		w.replicas.attempts = append(w.replicas.attempts, attempt{w.decided, w.decided.observations.clone()})
	}
	w.mu.Unlock()
	err := d.shared.Save(l)
	w.mu.Lock()
	switch {
	case !d.former && err == nil:
		w.replicas.attempts = nil
	case d.former && err != nil:
		w.logf("the former leader saves nothing: %v", err)
	}
	return err
}

// findSaved finds out which of the attempted saves was made, before another replica starts.
func (w *world) findSaved() {
	if w.replicas == nil {
		return
	}
	attempts := w.replicas.attempts
	w.replicas.attempts = nil
	l, err := w.reload()
	if err != nil {
		w.violate(invariantShared, "it reads %v", err)
		return
	}
	found := newModel().after(l)
	if w.state.lost && l.InForce() == "" || !w.state.lost && sameEntries(found, w.saved) {
		return
	}
	for _, a := range attempts {
		if sameEntries(found, a.books) {
			w.logf("a save that failed was made")
			w.state.lost = false
			w.saved, w.savedObservations = a.books, a.memory
			return
		}
	}
	w.violate(invariantShared, "it finds the ledger at %s, and %s was saved", l.InForce(), w.saved.head)
}

// stopLeader stops the leader, at once or at one of its next writes of the ledger. It continues
// some time after another replica has taken over.
func (w *world) stopLeader(r *rand.Rand) {
	w.runEvent(func() {
		if w.daemon != nil {
			w.daemon.writesUntilKill, w.daemon.stopIn = -1, r.IntN(8)
		}
	})
	w.advance(time.Duration(r.IntN(20)) * time.Second)
	w.runEvent(func() {
		if w.daemon != nil && w.daemon.stopped == nil {
			w.daemon.stopNow()
		}
	})
	w.advance(leaseDuration)
	w.continueFormer() // the previous one
	w.runEvent(func() {
		if w.daemon == nil {
			return
		}
		w.daemon.dead, w.daemon.former = true, true
		w.replicas.stopped = w.daemon
		w.daemon, w.outbox, w.closing, w.ending = nil, nil, nil, nil
	})
}

// cutOffLeader makes the management cluster unreachable for a while. If that is long, the
// leader loses the Lease.
func (w *world) cutOffLeader(r *rand.Rand) {
	wait := time.Duration(r.IntN(16)) * time.Second
	w.runEvent(func() {
		w.replicas.secrets.cutOff(r.IntN(4))
		w.logf("the management cluster does not answer any more")
	})
	w.advance(min(wait, fenceAfter))
	w.runEvent(func() {
		if w.daemon != nil && wait > fenceAfter {
			w.daemon.dead = true
			w.logf("the leader loses the Lease")
		}
		w.replicas.secrets.down = false
		w.logf("the management cluster answers again")
	})
}

// stopNow stops a process as SIGSTOP does: the current passes on clusters are interrupted, and
// whatever it calls waits until it continues.
func (d *daemon) stopNow() {
	d.w.logf("the leader is stopped")
	d.stopIn, d.stopped = 0, make(chan struct{})
	for _, a := range d.agents {
		a.stop()
	}
}

// waitWhileStopped waits as long as the process is stopped.
func (d *daemon) waitWhileStopped() {
	d.w.mu.Lock()
	stopped := d.stopped
	d.w.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
}

// continueStopped continues a stopped process.
func (d *daemon) continueStopped() {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if d.stopped != nil {
		close(d.stopped)
		d.stopped = nil
	}
}

// continueFormer continues a former leader, if there is one, until it ends.
func (w *world) continueFormer() {
	if w.replicas == nil || w.replicas.stopped == nil {
		return
	}
	d := w.replicas.stopped
	w.replicas.stopped = nil
	w.mu.Lock()
	w.logf("the former leader wakes up")
	w.mu.Unlock()
	d.continueStopped()
	synctest.Wait()
	d.cancel()
	<-d.done
}
