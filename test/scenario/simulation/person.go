package simulation

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// The laws of what persons ask for, as they are broken.
const (
	lawAlone = "what a person has suspended is left as it is"
	lawWord  = "a person's word counts until it ends or is taken back, and nobody else's does"
	lawGoes  = "a rollout that a person resumes goes on"
)

// An asked is a user's request that the daemon has not answered yet.
type asked struct {
	order reconciler.Order
	then  func(said string)
	// answered says that there is an answer, which is said or err.
	answered bool
	said     string
	err      error
}

// subject returns the subject of the request.
func (a *asked) subject() ledger.Subject {
	switch kind, name, _ := strings.Cut(a.order.Subject, "/"); kind {
	case "crp":
		return ledger.Subject{Placement: api.PlacementKey{Name: name}, Cluster: a.order.Cluster}
	case "cluster":
		return ledger.Subject{Cluster: name}
	default:
		return ledger.Subject{Object: configMapID(a.order.Namespace, name), Cluster: a.order.Cluster}
	}
}

// isAsked reports whether a request about a subject waits for its answer.
func (w *world) isAsked(s ledger.Subject) bool {
	return slices.ContainsFunc(w.asked, func(a *asked) bool { return a.subject() == s })
}

// A request is one of the requests that a user may make.
type request func(*reconciler.Reconciler, context.Context, reconciler.Order) (string, error)

// ask sends a request, and calls then once it is granted.
func (w *world) ask(what string, do request, o reconciler.Order, then func(said string)) {
	d := w.daemon
	if d == nil || d.dead {
		return
	}
	o.By = "alice"
	w.story("alice asks to %s %s", what, strings.Join(strings.Fields(o.Subject+" "+o.Namespace+" "+o.Cluster), " "))
	a := &asked{order: o, then: then}
	w.asked = append(w.asked, a)
	go func() {
		said, err := do(d.loop, d.ctx, o)
		w.mu.Lock()
		defer w.mu.Unlock()
		a.said, a.err, a.answered = said, err, true
	}()
}

// hearAnswers handles the answers to requests.
func (w *world) hearAnswers() {
	w.asked = slices.DeleteFunc(w.asked, func(a *asked) bool {
		switch {
		case !a.answered || w.daemon == nil || w.daemon.dead:
			return false
		case a.err != nil:
			w.story("alice is told no: %v", a.err)
		default:
			w.story("alice is told: %s", a.said)
			a.then(a.said)
		}
		return true
	})
}

// suspend suspends something, for a time or until it is resumed.
func (w *world) suspend(r *rand.Rand) {
	w.happen(func() {
		d := w.newest()
		if len(d.places) == 0 {
			return
		}
		o := reconciler.Order{Reason: "INC-7", Subject: "crp/" + pick(r, keys(d.places))}
		switch r.IntN(4) {
		case 0:
			o.Subject = "cluster/" + pick(r, keys(d.clusters))
		case 1:
			o.Subject, o.Namespace = "ConfigMap/"+pick(r, objectNames), pick(r, spaceNames)
		}
		if r.IntN(2) == 0 && !strings.HasPrefix(o.Subject, "cluster/") {
			o.Cluster = pick(r, keys(d.clusters))
		}
		w.suspendFor(o, pick(r, []time.Duration{0, 20 * time.Second, 2 * time.Minute, 5 * time.Minute}))
	})
}

func (w *world) suspendFor(o reconciler.Order, d time.Duration) {
	o.For = metav1.Duration{Duration: d}
	w.ask("suspend", (*reconciler.Reconciler).Suspend, o, func(string) {
		wish := wish{since: time.Now()}
		if d > 0 {
			wish.until = w.now().Add(d).UTC().Truncate(time.Second)
		}
		subject := (&asked{order: o}).subject()
		w.books.wishes[subject], w.saved.wishes[subject] = wish, wish
	})
}

// resume ends a suspension, or resumes a stopped rollout.
func (w *world) resume(r *rand.Rand) {
	w.happen(func() {
		all := w.suspensions()
		if stopped := w.stopped(); len(stopped) > 0 && (len(all) == 0 || r.IntN(2) == 0) {
			w.goOn(pick(r, stopped))
		} else if len(all) > 0 {
			w.takeBack(pick(r, all))
		}
	})
}

// stopped returns the placements whose rollout may be stopped; all if there are none.
func (w *world) stopped() []ledger.Subject {
	var all, stopped []ledger.Subject
	for _, key := range slices.SortedFunc(maps.Keys(w.books.pages), byKey) {
		all = append(all, ledger.Subject{Placement: key})
		for name := range w.books.pages[key] {
			if at := (bindingKey{key, name}); w.books.blamed[at] && w.books.words[at].done && w.books.words[at].failed {
				stopped = append(stopped, ledger.Subject{Placement: key})
				break
			}
		}
	}
	if stopped != nil {
		return stopped
	}
	return all
}

// suspensions returns the subjects of all suspensions, in order.
func (w *world) suspensions() []ledger.Subject {
	return slices.SortedFunc(maps.Keys(w.books.wishes), ledger.Subject.Compare)
}

func (w *world) takeBack(s ledger.Subject) {
	o := reconciler.Order{Cluster: s.Cluster}
	switch {
	case s.Object != api.ID{}:
		o.Subject, o.Namespace = "ConfigMap/"+s.Object.Name, s.Object.Namespace
	case s.Placement != api.PlacementKey{}:
		o.Subject = s.Placement.String()
	default:
		o.Subject, o.Cluster = "cluster/"+s.Cluster, ""
	}
	w.ask("resume", (*reconciler.Reconciler).Resume, o, func(said string) {
		delete(w.books.wishes, s)
		delete(w.saved.wishes, s)
	})
}

// goOn resumes a stopped rollout.
func (w *world) goOn(s ledger.Subject) {
	o := reconciler.Order{Subject: s.Placement.String(), Stopped: true, Reason: "INC-8"}
	w.ask("go on with", (*reconciler.Reconciler).Resume, o, func(said string) {
		_, rest, _ := strings.Cut(said, "continues within its budget, although cluster")
		for _, cluster := range strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == ',' }) {
			at := bindingKey{s.Placement, cluster}
			if b, ok := w.books.binding(at); ok {
				w.books.excused[at], w.saved.excused[at] = b.Assigned.Hash, b.Assigned.Hash
			}
		}
	})
}

// sync asks clusters to compare their objects again.
func (w *world) sync(r *rand.Rand) {
	w.happen(func() {
		o := reconciler.Order{}
		if r.IntN(2) == 0 {
			o.Subject = "crp/" + pick(r, placeNames)
		}
		w.ask("sync", (*reconciler.Reconciler).Check, o, func(string) {})
	})
}

// reconfigure restarts gitfleet with another limit of unreachable clusters.
func (w *world) reconfigure(r *rand.Rand) {
	w.restart(r)
	w.happen(func() {
		w.maxUnreachable = pick(r, []string{"", "0", "1", "50%", "100%"})
		w.story("maxUnreachable is %q from now on", w.maxUnreachable)
	})
}

// rollBack reverts a placement to the content that was available on every cluster.
func (w *world) rollBack(r *rand.Rand) {
	w.happen(func() {
		d := w.newest().clone()
		if len(d.places) == 0 {
			return
		}
		name := pick(r, keys(d.places))
		proven := w.source.commits[w.books.proven[api.PlacementKey{Name: name}]]
		if proven == nil {
			return
		}
		for _, space := range d.places[name].of {
			delete(d.spaces, space)
			if values, ok := proven.spaces[space]; ok {
				d.spaces[space] = maps.Clone(values)
			}
			inSpace := func(id api.ID, _ override) bool { return id.Namespace == space }
			maps.DeleteFunc(d.overrides, inSpace)
			for id, o := range proven.overrides {
				if inSpace(id, o) {
					d.overrides[id] = o
				}
			}
		}
		w.push("roll "+name+" back to "+proven.Hash, d)
	})
}

// A wish is a suspension that a user asked for.
type wish struct {
	until time.Time // by the clock; zero if somebody has to take it back
	since time.Time // by the time that passes
}

func (x wish) ended(now time.Time) bool { return !x.until.IsZero() && !now.Before(x.until) }

// covers reports whether a suspension covers an object, or a placement on a cluster.
func covers(s ledger.Subject, at bindingKey, id api.ID) bool {
	switch {
	case s.Object != api.ID{}:
		return s.Object == id && cmp.Or(s.Cluster, at.cluster) == at.cluster
	case s.Placement != api.PlacementKey{}:
		return s.Placement == at.key && cmp.Or(s.Cluster, at.cluster) == at.cluster
	}
	return s.Cluster == at.cluster
}

// suspended reports whether a placement is suspended on a cluster, as far as is recorded.
func (b *books) suspended(at bindingKey, now time.Time) bool {
	return slices.ContainsFunc(b.rest, func(s ledger.Suspension) bool {
		return !s.Ended(now) && s.Object == api.ID{} && covers(s.Subject, at, api.ID{})
	})
}

// checkWords compares the recorded suspensions with those that users were granted.
func (w *world) checkWords(l *ledger.Ledger) {
	if w.memory().unsure {
		w.adopt(l)
	}
	now, wishes := w.now(), w.memory().wishes
	for _, s := range w.suspensions() {
		if _, ok := l.Suspension(s); ok || w.isAsked(s) {
			continue
		}
		if !wishes[s].ended(now) {
			w.breaks(lawWord, "%s is not suspended any more", s)
		}
		delete(wishes, s)
	}
	for _, s := range l.Suspensions() {
		if x, ok := wishes[s.Subject]; !w.isAsked(s.Subject) && (!ok || x.until.Sub(s.Until).Abs() > time.Second) {
			w.breaks(lawWord, "%s is %s, and that was asked: %t, until %s", s.Subject, s, ok, x.until)
		}
	}
	for _, key := range l.Placements() {
		if p := l.Placement(key); p.Resumed != w.decided.resumed[key] && w.isAsked(ledger.Subject{Placement: key}) {
			maps.DeleteFunc(w.memory().blamed, func(at bindingKey, _ bool) bool { return at.key == key })
			maps.DeleteFunc(w.memory().stops, func(at bindingKey, _ map[api.ID]string) bool { return at.key == key })
		}
	}
}

func (w *world) memory() *memory { return w.books.memory }

// adopt takes over the recorded suspensions after a daemon ended before it answered.
func (w *world) adopt(l *ledger.Ledger) {
	m := w.memory()
	m.unsure = false
	clear(m.wishes)
	for _, s := range l.Suspensions() {
		m.wishes[s.Subject] = wish{s.Until, time.Now()}
	}
}

// writes is called before every write to a cluster.
func (w *world) writes(a *agent, key api.PlacementKey, id api.ID) {
	w.checkForeign(a, key, id)
	for _, s := range w.suspensions() {
		x := w.books.wishes[s]
		if !x.ended(w.now()) && covers(s, bindingKey{key, a.name}, id) && !a.began.Before(x.since) {
			w.breaks(lawAlone, "%s writes %s for %s, and %s is suspended", a.name, title(id), key, s)
		}
	}
}

// checkGoesOn checks that no cluster waits for one that a user has excused.
func (w *world) checkGoesOn(at bindingKey, held string) {
	_, rest, stopped := strings.Cut(held, "waits for cluster ")
	cause, _, said := strings.Cut(rest, ", which was available before its update")
	if !stopped || !said {
		return
	}
	other := bindingKey{at.key, cause}
	b, _ := w.decided.binding(other)
	if hash, ok := w.memory().excused[other]; ok && hash == b.Assigned.Hash {
		w.breaks(lawGoes, "%s of %s waits for %s", at.cluster, at.key, cause)
	}
}

// pardons returns how many clusters may be unreachable.
func (w *world) pardons() *intstr.IntOrString {
	if w.maxUnreachable == "" {
		return nil
	}
	n := intstr.Parse(w.maxUnreachable)
	return &n
}

// letGo ends the suspensions that do not end soon by themselves, and resumes stopped rollouts.
func (w *world) letGo() {
	for _, key := range slices.SortedFunc(maps.Keys(w.books.pages), byKey) {
		w.happen(func() { w.goOn(ledger.Subject{Placement: key}) })
	}
	for _, s := range w.suspensions() {
		w.happen(func() {
			if until := w.books.wishes[s].until; until.IsZero() || until.Sub(w.now()) > 5*time.Minute {
				w.takeBack(s)
			}
		})
	}
}
