package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Suspend suspends a subject: it is watched and reported, but nothing is written to it. When Suspend returns without
// error, the suspension is saved and the members have received it.
func (r *Reconciler) Suspend(ctx context.Context, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).suspend)
}

// Resume ends a suspension, or makes a placement stop waiting for clusters that have not answered since the ledger was
// lost. It resumes a rollout that a failed update has stopped only if Stopped is set.
func (r *Reconciler) Resume(ctx context.Context, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).resume)
}

// Freeze keeps new content from all clusters, of a placement or, with an empty subject, of every placement. Everything
// else goes on.
func (r *Reconciler) Freeze(ctx context.Context, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).freeze)
}

// Unfreeze ends a freeze. The subject has to be that of the freeze.
func (r *Reconciler) Unfreeze(ctx context.Context, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).unfreeze)
}

// Approve approves, or rejects, a stage of the active update run of a placement, which has to wait for that. The decision is for this
// run only. A rejected run updates no further cluster.
func (r *Reconciler) Approve(ctx context.Context, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).approve)
}

// Evict removes a placement from a cluster if its disruption budget allows it, which the next plan decides.
func (r *Reconciler) Evict(ctx context.Context, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).evict)
}

// Cordon keeps placements from being scheduled to a cluster, as a taint does.
func (r *Reconciler) Cordon(ctx context.Context, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).cordon)
}

// Uncordon ends what Cordon has begun.
func (r *Reconciler) Uncordon(ctx context.Context, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).uncordon)
}

// Check makes members check all of their objects, or those of one placement on all clusters, and retry failures at once.
func (r *Reconciler) Check(ctx context.Context, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).check)
}

// AdoptFleet makes this fleet the owner of inventories that another fleet of the same name has on its clusters. The
// subject of the order is the other fleet's ID, or at least its first eight digits; [protocol.NoID] stands for
// inventories without an ID. Without a cluster, it adopts the inventories of all clusters that the other fleet has claimed.
func (r *Reconciler) AdoptFleet(ctx context.Context, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).adoptFleet)
}

// order queues an order for the loop and waits for its answer.
func (r *Reconciler) order(ctx context.Context, o Order, do func(*orderRun, Order) (string, error)) (string, error) {
	q := queuedOrder{Order: o, do: do, done: make(chan answer, 1)}
	r.inbox.put(func() { r.inbox.orders = append(r.inbox.orders, q) })
	select {
	case a := <-q.done:
		return a.text, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// errUnsaved is returned if the ledger cannot be saved.
var errUnsaved = errors.New("the ledger could not be saved, so nothing was done; the log of the daemon says why")

// errFresh is returned before the first plan.
var errFresh = errors.New("the ledger is empty, and gitfleet waits, for half a minute at most, for the clusters to report what they hold; try again then")

// runOrders carries orders out, and undoes them if the ledger cannot be saved. The answers are sent once the members
// and the report have the result.
func (r *Reconciler) runOrders(ctx context.Context, orders []queuedOrder, now time.Time) {
	if len(orders) == 0 {
		return
	}
	run := r.newOrderRun(now)
	undo, done := r.ledger.Checkpoint(), false
	for _, q := range orders {
		if r.rebuilding && r.commits.inForce != nil {
			q.answer.err = errFresh
		} else {
			q.answer.text, q.answer.err = run.carryOut(q.Order, q.do)
		}
		done = done || q.answer.err == nil
		r.answered = append(r.answered, q)
	}
	if run.loadNewest {
		r.commits.loadAgain(ctx, r.ledger)
	}
	addEvents(r.ledger, now, run.actions...)
	if !done || r.saver.save(r.ledger) {
		publish(r.cfg, run.actions...)
		return
	}
	undo()
	for i := range r.answered {
		if a := &r.answered[i].answer; a.err == nil {
			*a = answer{err: errUnsaved}
		}
	}
}

func (r *Reconciler) newOrderRun(now time.Time) *orderRun {
	return &orderRun{now: now, ledger: r.ledger, agents: &r.agents, inForce: r.commits.inForce, newestCrashed: r.commits.newestCrashed, works: r.works, unanswered: r.unanswered, approvalsInGit: r.cfg.ApprovalsInGit}
}

// sendAnswers sends the answers of the orders of this turn.
func (r *Reconciler) sendAnswers() {
	for _, q := range r.answered {
		q.done <- q.answer
	}
	r.answered = nil
}

// check makes members check their objects; the newest commit is loaded again, too, if all members are meant and it was refused because it
// has crashed the process.
func (r *orderRun) check(o Order) (string, error) {
	names := map[string]bool{}
	if o.Subject == "" {
		for name := range r.agents.members {
			names[name] = true
		}
		r.loadNewest = r.loadNewest || r.newestCrashed
	} else {
		subject, err := r.subjectOf(o)
		if err != nil {
			return "", err
		}
		for name, works := range r.works {
			for _, w := range works {
				names[name] = names[name] || w.Placement == subject.Placement
			}
		}
	}
	n := 0
	for name, requested := range names {
		if m := r.agents.members[name]; requested && m != nil {
			m.member.Check()
			if r.declares(name) { // the others are leaving the fleet
				n++
			}
		}
	}
	if n == 1 {
		return "1 cluster compares its objects with Git now", nil
	}
	return fmt.Sprintf("%d clusters compare their objects with Git now", n), nil
}
