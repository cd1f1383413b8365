package reconciler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	// Reason is why something is suspended, For how long or Until when.
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

// Resume takes a suspension back, lets a rollout go on that a failed update has
// stopped, and has a placement wait no longer for clusters that have not answered
// since the ledger was lost.
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

// proceed takes back what is suspended, or lets a placement go on: its rollout if
// it is stopped, otherwise the choice of its clusters.
func (r *Reconciler) proceed(o Order, now time.Time) (string, func(), error) {
	subject, found := r.suspended(o)
	if found {
		before, _ := r.ledger.Suspension(subject)
		r.ledger.Resume(subject)
		r.acts = append(r.acts, act(history.Resumed, subject, o.By, "it was "+before.String()))
		r.cfg.Log.Info("resumed", "subject", subject.String(), "by", o.By)
		return subject.String() + " is resumed; it was " + before.String(), func() { r.ledger.Suspend(before) }, nil
	}
	subject, err := r.subject(o)
	if err != nil {
		return "", nil, err
	}
	key := subject.Placement
	stopped := r.stopped[key]
	switch {
	case key == (api.PlacementKey{}) || subject.Cluster != "":
		return "", nil, r.notSuspended(subject)
	case stopped == "" && r.unseen[key] > 0:
		return r.choose(key, o)
	case stopped == "":
		return "", nil, r.notSuspended(subject)
	}
	before := r.ledger.Placement(key).Resumed
	r.ledger.Proceed(key, now)
	r.acts = append(r.acts, act(history.Proceeded, subject, o.By, "although "+stopped+" is not available"))
	r.cfg.Log.Info("a stopped rollout goes on", "placement", key.String(), "by", o.By, "cluster", stopped)
	return fmt.Sprintf("the rollout of %s goes on within its budget, although cluster %s is not available", key, stopped),
		func() { r.ledger.Proceed(key, before) }, nil
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

func (r *Reconciler) recheck(o Order) (string, error) {
	names := map[string]bool{}
	for name := range r.members {
		names[name] = o.Subject == ""
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
			n++
		}
	}
	return fmt.Sprintf("%d cluster(s) look again at what they hold", n), nil
}
