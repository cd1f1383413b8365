package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// An Order is what a user asks the loop to do.
type Order struct {
	// Subject is crp/NAME, rp/NAMESPACE/NAME, cluster/NAME, or KIND/NAME for an
	// object of the Namespace; Cluster is empty for every cluster.
	Subject   string `json:"subject"`
	Namespace string `json:"namespace,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	// Stopped asks Resume to resume a stopped rollout.
	Stopped bool `json:"stopped,omitempty"`
	// Reason is the reason of a suspension, or of resuming a stopped rollout. A suspension ends
	// after For or at Until, if one of them is set.
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

// A queuedOrder is an order in the loop's queue.
type queuedOrder struct {
	// do carries the order out in the ledger, and returns the answer.
	do   func(now time.Time) (said string, err error)
	done chan answer // capacity one
}

// An answer is the result of an order.
type answer struct {
	said string
	err  error
}

// Suspend suspends a subject: it is watched and reported, but nothing is written to it. When
// Suspend returns without error, the suspension is saved and the members have received it.
func (r *Reconciler) Suspend(ctx context.Context, o Order) (said string, err error) {
	return r.order(ctx, func(now time.Time) (string, error) { return r.suspend(o, now) })
}

// Resume ends a suspension, or makes a placement stop waiting for clusters that have not
// answered since the ledger was lost. It resumes a rollout that a failed update has stopped
// only if Stopped is set.
func (r *Reconciler) Resume(ctx context.Context, o Order) (said string, err error) {
	return r.order(ctx, func(now time.Time) (string, error) { return r.resumeSubject(o, now) })
}

// Check makes members check all of their objects, or those of one placement on all clusters,
// and retry failures at once.
func (r *Reconciler) Check(ctx context.Context, o Order) (said string, err error) {
	return r.order(ctx, func(time.Time) (string, error) { return r.recheck(o) })
}

// order queues an order for the loop and waits for its answer.
func (r *Reconciler) order(ctx context.Context, do func(time.Time) (string, error)) (string, error) {
	q := queuedOrder{do: do, done: make(chan answer, 1)}
	r.events.put(func() { r.events.orders = append(r.events.orders, q) })
	select {
	case a := <-q.done:
		return a.said, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// A pendingAnswer is the answer to an order that is sent once the members and the report have
// the result.
type pendingAnswer struct {
	queuedOrder
	answer
}

// runOrders executes orders, and undoes them if the ledger cannot be saved.
func (r *Reconciler) runOrders(orders []queuedOrder, now time.Time) {
	if len(orders) == 0 {
		return
	}
	undo, done := r.ledger.Checkpoint(), false
	for _, q := range orders {
		if r.rebuilding && r.inForce != nil {
			r.pendingAnswers = append(r.pendingAnswers, pendingAnswer{q, answer{err: errFresh}})
			continue
		}
		said, err := q.do(now)
		done = done || err == nil
		r.pendingAnswers = append(r.pendingAnswers, pendingAnswer{q, answer{said, err}})
	}
	actions := r.userActions
	r.userActions = nil
	if !done || r.save() {
		r.cfg.Record(actions...)
		return
	}
	undo()
	for i := range r.pendingAnswers {
		if a := &r.pendingAnswers[i]; a.err == nil {
			a.answer = answer{err: errUnsaved}
		}
	}
}

// sendAnswers sends the pending answers.
func (r *Reconciler) sendAnswers() {
	for _, a := range r.pendingAnswers {
		a.done <- a.answer
	}
	r.pendingAnswers = nil
}

func (r *Reconciler) suspend(o Order, now time.Time) (string, error) {
	subject, err := r.subjectOf(o)
	if err != nil {
		return "", err
	}
	until, err := o.until(now)
	if err != nil {
		return "", err
	}
	reason, by := strings.TrimSpace(o.Reason), strings.TrimSpace(o.By)
	switch {
	case reason == "":
		return "", refuse("--reason is required")
	case !plainText(reason) || !plainText(by):
		return "", refuse("the reason and the name must be one line of text of at most %d bytes", longestText)
	}
	s := ledger.Suspension{Subject: subject, By: by, Reason: reason, Since: now, Until: until}
	r.ledger.Suspend(s)
	r.userActions = append(r.userActions, userEntry(history.Suspended, subject, by, reasonOf(s)))
	r.cfg.Log.Info("suspended", "subject", subject.String(), "by", by, "until", until, "reason", reason)
	return subject.String() + " is " + s.String(), nil
}

const longestText = 500

// plainText reports whether a text can be shown on one line.
func plainText(s string) bool {
	return len(s) <= longestText && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// until returns the time at which the suspension ends; zero if it has no end.
func (o Order) until(now time.Time) (time.Time, error) {
	switch {
	case o.For.Duration != 0 && !o.Until.IsZero():
		return time.Time{}, refuse("--for and --until exclude each other")
	case o.For.Duration < 0:
		return time.Time{}, refuse("--for %s: must be more than zero", o.For.Duration)
	case o.For.Duration > 0:
		return now.Add(o.For.Duration).UTC().Truncate(time.Second), nil
	case !o.Until.IsZero() && !o.Until.After(now):
		return time.Time{}, refuse("--until %s: that is past", o.Until.UTC().Format(time.RFC3339))
	}
	return o.Until.UTC(), nil
}

// resumeSubject executes Resume.
func (r *Reconciler) resumeSubject(o Order, now time.Time) (string, error) {
	if o.Stopped {
		return r.resumeRollout(o, now)
	}
	subject, found := r.suspended(o)
	if found {
		before, _ := r.ledger.Suspension(subject)
		r.ledger.Resume(subject)
		r.userActions = append(r.userActions, userEntry(history.Resumed, subject, o.By, "it was "+before.String()))
		r.cfg.Log.Info("resumed", "subject", subject.String(), "by", o.By)
		said := subject.String() + " is resumed; it was " + before.String()
		if stops := r.stops(subject.Placement); len(stops) > 0 {
			said += "; " + stillStopped(subject.Placement, stops)
		}
		return said, nil
	}
	subject, err := r.subjectOf(o)
	if err != nil {
		return "", err
	}
	key := subject.Placement
	stops := r.stops(key)
	switch {
	case key == (api.PlacementKey{}) || subject.Cluster != "":
		return "", r.notSuspended(subject)
	case r.unanswered[key] > 0:
		return r.resumeScheduling(key, o)
	case len(stops) > 0:
		return "", refuse("%s is not suspended; %s", key, stillStopped(key, stops))
	}
	return "", r.notSuspended(subject)
}

// resumeRollout resumes a stopped rollout. The user has to request that explicitly and give a
// reason, since ending a suspension says nothing about a failed update.
func (r *Reconciler) resumeRollout(o Order, now time.Time) (string, error) {
	subject, err := r.subjectOf(o)
	if err != nil {
		return "", err
	}
	key, reason := subject.Placement, strings.TrimSpace(o.Reason)
	switch {
	case key == (api.PlacementKey{}) || subject.Cluster != "":
		return "", refuse("--stopped is about the whole rollout of a placement: name crp/NAME or rp/NAMESPACE/NAME, without --cluster")
	case len(r.stops(key)) == 0:
		return "", refuse("the rollout of %s is not stopped", key)
	case reason == "":
		return "", refuse("--reason is required: why may the rollout continue although an update failed?")
	case !plainText(reason):
		return "", refuse("the reason must be one line of text of at most %d bytes", longestText)
	}
	stops := r.stops(key)
	failed := "cluster " + stops[0].Cluster + " is not available"
	if len(stops) > 1 {
		failed = "clusters " + clustersOf(stops) + " are not available"
	}
	r.ledger.ResumeRollout(key, now)
	r.userActions = append(r.userActions, userEntry(history.Proceeded, subject, o.By, "although "+failed+": "+reason))
	r.cfg.Log.Info("stopped rollout resumed", "placement", key.String(), "by", o.By, "cluster", clustersOf(stops), "reason", reason)
	return fmt.Sprintf("the rollout of %s continues within its budget, although %s", key, failed), nil
}

// stops returns the failed updates that stop the rollout of a placement.
func (r *Reconciler) stops(key api.PlacementKey) []placement.Stop {
	if p := r.ledger.Placement(key); p != nil && !p.Deleted {
		return p.Stops
	}
	return nil
}

// stillStopped returns a message that says why a rollout is stopped and how to resume it.
func stillStopped(key api.PlacementKey, stops []placement.Stop) string {
	return fmt.Sprintf("its rollout is stopped by the failed update of %s: to let it go on all the same, use gitfleet resume %s --stopped --reason TEXT",
		clustersOf(stops), key)
}

// clustersOf lists the clusters whose updates failed.
func clustersOf(stops []placement.Stop) string {
	names := make([]string, len(stops))
	for i, s := range stops {
		names[i] = s.Cluster
	}
	return strings.Join(names, ", ")
}

// resumeScheduling makes a placement schedule without counting the clusters that have not
// answered since the ledger was lost.
func (r *Reconciler) resumeScheduling(key api.PlacementKey, o Order) (string, error) {
	next := *r.ledger.Placement(key)
	next.Rebuilt = false
	r.ledger.SetPlacement(key, next)
	why := fmt.Sprintf("although clusters that may hold it have not answered (%d)", r.unanswered[key])
	r.userActions = append(r.userActions, userEntry(history.Proceeded, ledger.Subject{Placement: key}, o.By, why))
	r.cfg.Log.Info("scheduling resumed without the clusters that have not answered", "placement", key.String(), "by", o.By)
	return fmt.Sprintf("all clusters of %s are chosen, %s", key, why), nil
}

// notSuspended returns the error for a subject that is not suspended. It lists the existing
// suspensions.
func (r *Reconciler) notSuspended(s ledger.Subject) error {
	var all []string
	for _, x := range r.ledger.Suspensions() {
		all = append(all, x.Subject.String())
	}
	if all == nil {
		return refuse("%s is not suspended, and nothing else is either", s)
	}
	return refuse("%s is not suspended; suspended are: %s", s, strings.Join(all, ", "))
}

// declares reports whether the commit in force declares a member cluster.
func (r *Reconciler) declares(cluster string) bool {
	return r.inForce != nil && slices.ContainsFunc(r.inForce.Clusters, func(c *hub.Cluster) bool { return c.Name == cluster })
}

func (r *Reconciler) recheck(o Order) (string, error) {
	names := map[string]bool{}
	for name := range r.members {
		names[name] = o.Subject == ""
	}
	if o.Subject == "" && r.newestFatal {
		r.requestReload()
	}
	if o.Subject != "" {
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
		if m := r.members[name]; requested && m != nil {
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
