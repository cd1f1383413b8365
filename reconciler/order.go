package reconciler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// An Order is what a user asks the loop to do.
type Order struct {
	// Subject is crp/NAME, rp/NAMESPACE/NAME, cluster/NAME, or KIND/NAME for an object of the Namespace; Cluster is
	// empty for every cluster.
	Subject   string `json:"subject"`
	Namespace string `json:"namespace,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	// Stopped asks Resume to resume a stopped rollout.
	Stopped bool `json:"stopped,omitempty"`
	// FailedContent asks Resume to let content run again that failed in an update run or was rejected.
	FailedContent bool `json:"failedContent,omitempty"`
	// Stage is the stage that Approve approves. Before and After say which of its tasks; the one that waits if neither is set.
	Stage  string `json:"stage,omitempty"`
	Before bool   `json:"before,omitempty"`
	After  bool   `json:"after,omitempty"`
	// Run is the update run that is meant; the one that is under way if it is empty. Reject makes Approve reject the stage, and
	// Code is the reason of the condition that a Kubernetes client writes.
	Run    string `json:"run,omitempty"`
	Reject bool   `json:"reject,omitempty"`
	Code   string `json:"code,omitempty"`
	// Name is the name of the eviction; a new one if it is empty.
	Name string `json:"name,omitempty"`
	// Overrun makes a freeze let rollouts finish that have begun.
	Overrun bool `json:"overrun,omitempty"`
	// Reason is the reason of a suspension, or of resuming a stopped rollout. A suspension ends after For or at Until,
	// if one of them is set.
	Reason string          `json:"reason,omitempty"`
	For    metav1.Duration `json:"for,omitzero"`
	Until  time.Time       `json:"until,omitzero"`
	// By is the user.
	By string `json:"by,omitempty"`
}

// An OrderError says why an order is invalid or impossible, and what to request instead.
type OrderError struct{ Why string }

func (e *OrderError) Error() string { return e.Why }

func refuse(format string, args ...any) error { return &OrderError{fmt.Sprintf(format, args...)} }

// errUnsaved is returned if the ledger cannot be saved.
var errUnsaved = errors.New("the ledger could not be saved, so nothing was done; the log of the daemon says why")

// errFresh is returned before the first plan.
var errFresh = errors.New("the ledger is empty, and gitfleet waits, for half a minute at most, for the clusters to report what they hold; try again then")

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
func Freeze(ctx context.Context, r *Reconciler, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).freeze)
}

// Unfreeze ends a freeze. The subject has to be that of the freeze.
func Unfreeze(ctx context.Context, r *Reconciler, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).unfreeze)
}

// Approve approves, or rejects, a stage of the active update run of a placement, which has to wait for that. The decision is for this
// run only. A rejected run updates no further cluster.
func Approve(ctx context.Context, r *Reconciler, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).approve)
}

// Evict removes a placement from a cluster if its disruption budget allows it, which the next plan decides.
func Evict(ctx context.Context, r *Reconciler, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).evict)
}

// Cordon keeps placements from being scheduled to a cluster, as a taint does.
func Cordon(ctx context.Context, r *Reconciler, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).cordon)
}

// Uncordon ends what Cordon has begun.
func Uncordon(ctx context.Context, r *Reconciler, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).uncordon)
}

// Check makes members check all of their objects, or those of one placement on all clusters, and retry failures at once.
func (r *Reconciler) Check(ctx context.Context, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).check)
}

// AdoptFleet makes this fleet the owner of inventories that another fleet of the same name has on its clusters. The
// subject of the order is the other fleet's ID, or at least its first eight digits; [protocol.NoID] stands for
// inventories without an ID. Without a cluster, it adopts the inventories of all clusters that the other fleet holds.
func (r *Reconciler) AdoptFleet(ctx context.Context, o Order) (answer string, err error) {
	return r.order(ctx, o, (*orderRun).adoptFleet)
}

// A queuedOrder is an order in the loop's queue.
type queuedOrder struct {
	Order
	// do carries the order out in the ledger, and returns the answer.
	do     func(*orderRun, Order) (answer string, err error)
	answer answer
	done   chan answer // capacity one
}

// An answer is the result of an order.
type answer struct {
	text string
	err  error
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

// An orderRun carries out the orders of one turn.
type orderRun struct {
	reconciler *Reconciler
	now        time.Time
	actions    []occurrence // of users
	// loadNewest says that the newest commit is to be loaded again.
	loadNewest bool
}

// runOrders carries orders out, and undoes them if the ledger cannot be saved. The answers are sent once the members
// and the report have the result.
func (r *Reconciler) runOrders(ctx context.Context, orders []queuedOrder, now time.Time) {
	if len(orders) == 0 {
		return
	}
	run := &orderRun{reconciler: r, now: now}
	undo, done := r.ledger.Checkpoint(), false
	for _, q := range orders {
		if r.rebuilding && r.inForce != nil {
			q.answer.err = errFresh
		} else {
			q.answer.text, q.answer.err = q.do(run, q.Order)
		}
		done = done || q.answer.err == nil
		r.answered = append(r.answered, q)
	}
	if run.loadNewest {
		r.loadAgain(ctx)
	}
	if !done || r.save() {
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

func (r *Reconciler) sendAnswers() {
	for _, q := range r.answered {
		q.done <- q.answer
	}
	r.answered = nil
}

// record records an action of a user, which is published once the ledger is saved.
func (r *orderRun) record(event history.Event, s ledger.Subject, by, message string) {
	r.actions = append(r.actions, userAction(event, s, by, message))
}

const longestText = 500

// plainText reports whether a text can be shown on one line.
func plainText(s string) bool {
	return len(s) <= longestText && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func (r *orderRun) check(o Order) (string, error) {
	names := map[string]bool{}
	if o.Subject == "" {
		for name := range r.reconciler.agents.members {
			names[name] = true
		}
		r.loadNewest = r.loadNewest || r.reconciler.newestFatal
	} else {
		subject, err := r.subjectOf(o)
		if err != nil {
			return "", err
		}
		for name, works := range r.reconciler.works {
			for _, w := range works {
				names[name] = names[name] || w.Placement == subject.Placement
			}
		}
	}
	n := 0
	for name, requested := range names {
		if m := r.reconciler.agents.members[name]; requested && m != nil {
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
