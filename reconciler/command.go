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

// An Order is what a person asks for.
type Order struct {
	// Subject is crp/NAME, rp/NAMESPACE/NAME, cluster/NAME, or KIND/NAME for an
	// object of the Namespace; Cluster is empty for every cluster.
	Subject   string `json:"subject"`
	Namespace string `json:"namespace,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	// Stopped asks Resume to let the stopped rollout of a placement go on.
	Stopped bool `json:"stopped,omitempty"`
	// Reason is why something is suspended, For how long or Until when, or why a
	// stopped rollout is to go on.
	Reason string          `json:"reason,omitempty"`
	For    metav1.Duration `json:"for,omitzero"`
	Until  time.Time       `json:"until,omitzero"`
	// By is who asks.
	By string `json:"by,omitempty"`
}

// An OrderError says that an order cannot be understood or carried out, and
// what to ask for instead.
type OrderError struct{ Why string }

func (e *OrderError) Error() string { return e.Why }

func refuse(format string, args ...any) error { return &OrderError{fmt.Sprintf(format, args...)} }

// errUnsaved is the answer when nothing may be promised.
var errUnsaved = errors.New("the ledger could not be saved, so nothing was done; the log of the daemon says why")

// errFresh is the answer before anything is decided.
var errFresh = errors.New("gitfleet knows nothing yet of what was decided before, and waits, for half a minute at most, for the clusters to say what they hold; ask again then")

// A command is an order on its way to the loop.
type command struct {
	// do carries it out in the ledger, and says what was done and how to undo it.
	do   func(now time.Time) (said string, undo func(), err error)
	done chan answer // capacity one
}

// An answer is what came of a command.
type answer struct {
	said string
	err  error
}

// Suspend has something left as it is: watched and reported, and never written.
// When it returns without error that is remembered, and members have been told.
func (r *Reconciler) Suspend(ctx context.Context, o Order) (said string, err error) {
	return r.order(ctx, func(now time.Time) (string, func(), error) { return r.suspend(o, now) })
}

// Resume takes a suspension back, or has a placement wait no longer for clusters
// that have not answered since the ledger was lost. Only with Stopped it lets a
// rollout go on that a failed update has stopped.
func (r *Reconciler) Resume(ctx context.Context, o Order) (said string, err error) {
	return r.order(ctx, func(now time.Time) (string, func(), error) { return r.proceed(o, now) })
}

// Check has members look again at all they hold, or at all of the clusters of
// one placement, and try at once what failed.
func (r *Reconciler) Check(ctx context.Context, o Order) (said string, err error) {
	return r.order(ctx, func(time.Time) (string, func(), error) {
		said, err := r.recheck(o)
		return said, func() {}, err
	})
}

// order hands a command to the loop and waits for what comes of it.
func (r *Reconciler) order(ctx context.Context, do func(time.Time) (string, func(), error)) (string, error) {
	c := command{do: do, done: make(chan answer, 1)}
	r.events.put(func() { r.events.commands = append(r.events.commands, c) })
	select {
	case a := <-c.done:
		return a.said, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// An obeyed command waits for members and everybody else to be told.
type obeyed struct {
	command
	answer
}

// obey carries commands out. What cannot be saved is undone.
func (r *Reconciler) obey(commands []command, now time.Time) {
	var undos []func()
	for _, c := range commands {
		if r.fresh && r.head != nil {
			r.obeyed = append(r.obeyed, obeyed{c, answer{err: errFresh}})
			continue
		}
		said, undo, err := c.do(now)
		if err == nil {
			undos = append(undos, undo)
		}
		r.obeyed = append(r.obeyed, obeyed{c, answer{said, err}})
	}
	acts := r.acts
	r.acts = nil
	if len(undos) == 0 || r.save() {
		r.cfg.Record(acts...)
		return
	}
	for i := len(undos) - 1; i >= 0; i-- {
		undos[i]()
	}
	for i := range r.obeyed {
		if o := &r.obeyed[i]; o.err == nil {
			o.answer = answer{err: errUnsaved}
		}
	}
}

// answer tells whoever gave a command what came of it.
func (r *Reconciler) answer() {
	for _, o := range r.obeyed {
		o.done <- o.answer
	}
	r.obeyed = nil
}

func (r *Reconciler) suspend(o Order, now time.Time) (string, func(), error) {
	subject, err := r.subject(o)
	if err != nil {
		return "", nil, err
	}
	until, err := o.until(now)
	if err != nil {
		return "", nil, err
	}
	reason, by := strings.TrimSpace(o.Reason), strings.TrimSpace(o.By)
	switch {
	case reason == "":
		return "", nil, refuse("say why with --reason: whoever looks at it later has to know")
	case !plainText(reason) || !plainText(by):
		return "", nil, refuse("the reason and the name must be one line of text of at most %d bytes", longestText)
	}
	s := ledger.Suspension{Subject: subject, By: by, Reason: reason, Since: now, Until: until}
	before, was := r.ledger.Suspension(subject)
	r.ledger.Suspend(s)
	r.acts = append(r.acts, act(history.Suspended, subject, by, reasonOf(s)))
	r.cfg.Log.Info("suspended", "subject", subject.String(), "by", by, "until", until, "reason", reason)
	return subject.String() + " is " + s.String(), func() {
		if was {
			r.ledger.Suspend(before)
		} else {
			r.ledger.Resume(subject)
		}
	}, nil
}

const longestText = 500

// plainText reports whether a text can be shown on one line.
func plainText(s string) bool {
	return len(s) <= longestText && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// until is when the suspension ends; zero if it does not.
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

// proceed carries out Resume.
func (r *Reconciler) proceed(o Order, now time.Time) (string, func(), error) {
	if o.Stopped {
		return r.release(o, now)
	}
	subject, found := r.suspended(o)
	if found {
		before, _ := r.ledger.Suspension(subject)
		r.ledger.Resume(subject)
		r.acts = append(r.acts, act(history.Resumed, subject, o.By, "it was "+before.String()))
		r.cfg.Log.Info("resumed", "subject", subject.String(), "by", o.By)
		said := subject.String() + " is resumed; it was " + before.String()
		if stops := r.stops(subject.Placement); len(stops) > 0 {
			said += "; " + stillStopped(subject.Placement, stops)
		}
		return said, func() { r.ledger.Suspend(before) }, nil
	}
	subject, err := r.subject(o)
	if err != nil {
		return "", nil, err
	}
	key := subject.Placement
	stops := r.stops(key)
	switch {
	case key == (api.PlacementKey{}) || subject.Cluster != "":
		return "", nil, r.notSuspended(subject)
	case r.unseen[key] > 0:
		return r.choose(key, o)
	case len(stops) > 0:
		return "", nil, refuse("%s is not suspended; %s", key, stillStopped(key, stops))
	}
	return "", nil, r.notSuspended(subject)
}

// release lets a stopped rollout go on. That is asked for by itself, with a
// reason: what takes back a suspension says nothing about a failed update.
func (r *Reconciler) release(o Order, now time.Time) (string, func(), error) {
	subject, err := r.subject(o)
	if err != nil {
		return "", nil, err
	}
	key, reason := subject.Placement, strings.TrimSpace(o.Reason)
	switch {
	case key == (api.PlacementKey{}) || subject.Cluster != "":
		return "", nil, refuse("--stopped is about the whole rollout of a placement: name crp/NAME or rp/NAMESPACE/NAME, without --cluster")
	case len(r.stops(key)) == 0:
		return "", nil, refuse("the rollout of %s is not stopped", key)
	case reason == "":
		return "", nil, refuse("say with --reason why the rollout may go on although an update failed: whoever looks at it later has to know")
	case !plainText(reason):
		return "", nil, refuse("the reason must be one line of text of at most %d bytes", longestText)
	}
	before := *r.ledger.Placement(key)
	failed := "cluster " + before.Stops[0].Cluster + " is not available"
	if len(before.Stops) > 1 {
		failed = "clusters " + clustersOf(before.Stops) + " are not available"
	}
	r.ledger.Proceed(key, now)
	r.acts = append(r.acts, act(history.Proceeded, subject, o.By, "although "+failed+": "+reason))
	r.cfg.Log.Info("stopped rollout resumed", "placement", key.String(), "by", o.By, "cluster", clustersOf(before.Stops), "reason", reason)
	return fmt.Sprintf("the rollout of %s goes on within its budget, although %s", key, failed), func() { r.ledger.Note(key, before) }, nil
}

// stops returns the failed updates that stop the rollout of a placement.
func (r *Reconciler) stops(key api.PlacementKey) []placement.Stop {
	if p := r.ledger.Placement(key); p != nil && !p.Deleted {
		return p.Stops
	}
	return nil
}

// stillStopped says why a rollout is stopped, and how it goes on.
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

// choose has a placement leave no room any more for clusters that have not
// answered since the ledger was lost.
func (r *Reconciler) choose(key api.PlacementKey, o Order) (string, func(), error) {
	before := *r.ledger.Placement(key)
	next := before
	next.Found = false
	r.ledger.Note(key, next)
	why := fmt.Sprintf("although clusters that may hold it have not answered (%d)", r.unseen[key])
	r.acts = append(r.acts, act(history.Proceeded, ledger.Subject{Placement: key}, o.By, why))
	r.cfg.Log.Info("clusters are chosen in place of those that have not answered", "placement", key.String(), "by", o.By)
	return fmt.Sprintf("all clusters of %s are chosen, %s", key, why), func() { r.ledger.Note(key, before) }, nil
}

// notSuspended says that there is nothing to resume, and what there is.
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
	return r.head != nil && slices.ContainsFunc(r.head.Clusters, func(c *hub.Cluster) bool { return c.Name == cluster })
}

func (r *Reconciler) recheck(o Order) (string, error) {
	names := map[string]bool{}
	for name := range r.members {
		names[name] = o.Subject == ""
	}
	if o.Subject == "" && r.deadly {
		r.loadAgain()
	}
	if o.Subject != "" {
		subject, err := r.subject(o)
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
	for name, asked := range names {
		if m := r.members[name]; asked && m != nil {
			m.member.Check()
			if r.declares(name) { // others are leaving the fleet
				n++
			}
		}
	}
	if n == 1 {
		return "1 cluster compares its objects with Git now", nil
	}
	return fmt.Sprintf("%d clusters compare their objects with Git now", n), nil
}
