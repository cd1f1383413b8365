package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// The objects of a cluster lose their availability for some time: by themselves, and because of what gitfleet does
// there. Content that is as good as before must not be replaced then outside of the budget.

const invariantUntried = "no more clusters than maxUnavailable are taken from what was available to content that was available nowhere"

// repairAfter is how long a cluster has to be unavailable by itself before it is updated outside of the budget, and how
// long one that is out of sight keeps its place there. The model allows for the time that a report takes.
const (
	repairAfter     = 30 * time.Second
	longestProgress = 10 * time.Minute
	reportDelay     = time.Second
)

// loseAvailability makes the objects of a cluster unavailable for some time, for no reason of gitfleet's.
func (w *world) loseAvailability(r *rand.Rand) {
	w.runEvent(func() {
		if h := w.anyHost(r); h != nil {
			d := pick(r, []time.Duration{5 * time.Second, 20 * time.Second, 50 * time.Second, 3 * time.Minute})
			w.logf("cluster %s is unavailable for %s", h.name, d)
			w.set(h, func() { h.becomeUnavailable(d) })
		}
	})
}

// blip makes the objects of a cluster unavailable for a moment, as a consequence of what gitfleet does there.
func (a *agent) blip(why string) {
	if d := a.blipTime(); d > 0 {
		a.d.w.logf("cluster %s is unavailable for %s: %s", a.name, d, why)
		a.becomeUnavailable(d)
	}
}

// blipTime returns for how long an object becomes unavailable when it is written, and the like; zero if it does not.
func (a *agent) blipTime() time.Duration {
	if !a.d.w.blips {
		return 0
	}
	return pick(a.blips, []time.Duration{0, 0, time.Second, 5 * time.Second, 20 * time.Second, 50 * time.Second})
}

func (h *host) becomeUnavailable(d time.Duration) {
	for _, t := range h.objects {
		if t.ours {
			t.unavailableUntil = time.Now().Add(d)
		}
	}
}

// An outage is what the model knows of the unavailability of a placement on a cluster.
type outage struct {
	// since is when it was first reported, and confirmedSince from when on nothing has happened that may be the reason
	// of a report; zero if there is none.
	since, confirmedSince time.Time
	// written says that gitfleet has written something, or has tried to, since it was last available.
	written bool
}

// recordOutage records what a report says about availability.
func (m *observations) recordOutage(at bindingKey, o *protocol.WorkSeen, assigned placement.Revision) {
	judged := o.WithoutSuspended()
	switch x := m.outages[at]; {
	case o.Revision.Hash != assigned.Hash || judged.Available():
		delete(m.outages, at)
	case o.Done:
		if x.since.IsZero() {
			x.since = time.Now()
		}
		if x.confirmedSince.IsZero() {
			x.confirmedSince = time.Now()
		}
		x.written = x.written || o.Wrote
		m.outages[at] = x
	}
}

// doubtOutages makes the outages for which a condition holds count only from the next report on.
func (m *observations) doubtOutages(holds func(at bindingKey) bool) {
	for at, x := range m.outages {
		if holds(at) {
			x.confirmedSince = time.Time{}
			m.outages[at] = x
		}
	}
}

// recordHealth records whether a cluster answers.
func (m *observations) recordHealth(o protocol.ClusterSeen) {
	if o.Healthy == m.healthy[o.Cluster] {
		return
	}
	m.healthy[o.Cluster], m.healthSince[o.Cluster] = o.Healthy, time.Now()
	m.doubtOutages(func(at bindingKey) bool { return at.cluster == o.Cluster })
}

// noteDisturbances records what may have been the reason of earlier reports: a suspension that ends, and objects that are
// left to another placement or come back from it.
func (t *decision) noteDisturbances(names []string) {
	for _, name := range names {
		at := bindingKey{t.key, name}
		covers := func(s ledger.Suspension) bool { return s.Object == api.ID{} && covers(s.Subject, at, api.ID{}) }
		if leaves := t.leavesObjects(at); leaves != t.before.leaving[at] {
			t.before.leaving[at], t.before.disturbed[at] = leaves, time.Now()
		}
		if slices.ContainsFunc(t.before.suspensions, covers) && !t.after.suspended(at, t.now) {
			t.before.disturbed[at] = time.Now()
		}
	}
}

// isOutsideBudget reports whether a cluster may be updated or removed outside of the budget: it has not counted as available
// with its content, or it has been unavailable by itself for long enough.
func (t *decision) isOutsideBudget(at bindingKey) bool {
	if !t.isDown(at) {
		return false
	}
	b, _ := t.before.binding(at)
	if t.spec.reportDiff || t.before.counted[at] != b.Assigned.Hash {
		return true
	}
	x := t.before.outages[at]
	since := x.confirmedSince
	if x == (outage{}) && t.leavesObjects(at) {
		since = t.before.disturbed[at]
	}
	if since.IsZero() || time.Since(since) < repairAfter-reportDelay || time.Since(t.before.disturbed[at]) < repairAfter-reportDelay {
		return false
	}
	return !x.written || t.isBroken(at) || time.Since(x.since) >= longestProgress-reportDelay || t.w.clock.changed
}

// leavesOutResumed reports whether a report leaves out objects as suspended that are not any more.
func (t *decision) leavesOutResumed(at bindingKey, word workReport) bool {
	return slices.ContainsFunc(word.leftOut, func(id api.ID) bool {
		return !slices.ContainsFunc(t.after.suspensions, func(s ledger.Suspension) bool { return !s.Ended(t.now) && covers(s.Subject, at, id) })
	})
}

// keepsPlace reports whether a cluster that is out of sight counts as unavailable, because it was lost or suspended a moment
// ago during its update. One that another fleet holds does not, nor is that known of times before the clock was set.
func (t *decision) keepsPlace(at bindingKey) bool {
	if !t.before.risked[at] || t.before.foreign[at.cluster] || t.w.clock.changed {
		return false
	}
	since := time.Now()
	if !t.before.healthy[at.cluster] {
		since = t.before.healthSince[at.cluster]
	}
	for s, x := range t.before.requestedSuspensions {
		if (s.Object == api.ID{}) && covers(s, at, api.ID{}) && x.since.Before(since) {
			since = x.since
		}
	}
	return time.Since(since) < repairAfter-reportDelay
}

// updateCounted records the clusters that count as available with their content.
func (t *decision) updateCounted(names []string) {
	for _, name := range names {
		at := bindingKey{t.key, name}
		b, _ := t.before.binding(at)
		if t.isReady(at) {
			t.before.counted[at] = b.Assigned.Hash
		}
		if now, has := t.after.binding(at); !has || now.Assigned.Hash != b.Assigned.Hash || b.Removing && !now.Removing {
			delete(t.before.counted, at)
		}
	}
}

// noteAvailable records that content was available on a cluster. Suspended objects do not count, but of a suspended placement
// nothing is known.
func (w *world) noteAvailable(o *protocol.WorkSeen) {
	at := bindingKey{o.Placement, o.Cluster}
	judged := o.WithoutSuspended()
	if !judged.Available() || o.Compared || judged != &o.WorkState && w.saved.suspended(at, w.now()) {
		return
	}
	w.availableSomewhere[o.Revision.Hash] = true
	if w.exposed[at] == o.Revision.Hash {
		delete(w.exposed, at)
	}
}

// checkUntried checks that no more clusters than maxUnavailable were taken from what was available to content that was
// available nowhere. What such a cluster gets before it is available again counts as well. Those that a rollout does not
// wait for, since they are out of sight for longer, do not count, nor do those that were unavailable by themselves.
func (t *decision) checkUntried(names []string, most int) {
	var taken []string
	moved := false
	for _, name := range names {
		at := bindingKey{t.key, name}
		b, _ := t.before.binding(at)
		now, has := t.after.binding(at)
		switch {
		case !has || now.Removing || now.Unscheduled || !now.HasRevision():
			delete(t.w.exposed, at)
			continue
		case now.Assigned.Hash == b.Assigned.Hash:
		case t.spec.reportDiff || !b.HasRevision():
			delete(t.w.exposed, at)
		case t.w.exposed[at] == b.Assigned.Hash:
			t.w.exposed[at] = now.Assigned.Hash
		case t.isReady(at) || t.isDown(at) && !t.isOutsideBudget(at):
			t.w.exposed[at], moved = now.Assigned.Hash, true
		default:
			delete(t.w.exposed, at)
		}
		sees := t.before.reachable(name) && !t.after.suspended(at, t.now) || t.keepsPlace(at)
		if t.w.exposed[at] == now.Assigned.Hash && !t.w.availableSomewhere[now.Assigned.Hash] && sees {
			taken = append(taken, name)
		}
	}
	if moved && len(taken) > most {
		t.w.violate(invariantUntried, "%s has taken %v, and maxUnavailable is %d", t.key, taken, most)
	}
}
