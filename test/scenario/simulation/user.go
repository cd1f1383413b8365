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

// The invariants of users' requests.
const (
	invariantSuspended  = "nothing is written to what a user has suspended"
	invariantSuspension = "a suspension lasts until it expires or a user ends it, and only users begin one"
	invariantResumed    = "a rollout continues once a user has resumed it"
)

// A userRequest is a request that the daemon has not answered yet.
type userRequest struct {
	order   reconciler.Order
	granted func(said string)
	// answered says that there is a response, which is message or err.
	answered bool
	message  string
	err      error
}

// subject returns the subject of the request.
func (a *userRequest) subject() ledger.Subject {
	switch kind, name, _ := strings.Cut(a.order.Subject, "/"); kind {
	case "crp":
		return ledger.Subject{Placement: api.PlacementKey{Name: name}, Cluster: a.order.Cluster}
	case "cluster":
		return ledger.Subject{Cluster: name}
	default:
		return ledger.Subject{Object: objectID(a.order.Namespace, name), Cluster: a.order.Cluster}
	}
}

// isRequested reports whether a request about a subject waits for its response.
func (w *world) isRequested(s ledger.Subject) bool {
	return slices.ContainsFunc(w.requests, func(a *userRequest) bool { return a.subject() == s })
}

// A userCommand is a method of the reconciler that a user may call.
type userCommand func(*reconciler.Reconciler, context.Context, reconciler.Order) (string, error)

// request sends a request, and calls granted once it succeeds.
func (w *world) request(what string, do userCommand, o reconciler.Order, then func(said string)) {
	d := w.daemon
	if d == nil || d.dead {
		return
	}
	o.By = "alice"
	w.logf("alice asks to %s %s", what, strings.Join(strings.Fields(o.Subject+" "+o.Namespace+" "+o.Cluster), " "))
	a := &userRequest{order: o, granted: then}
	w.requests = append(w.requests, a)
	go func() {
		said, err := do(d.loop, d.ctx, o)
		w.mu.Lock()
		defer w.mu.Unlock()
		a.message, a.err, a.answered = said, err, true
	}()
}

// handleResponses handles the responses to requests.
func (w *world) handleResponses() {
	w.requests = slices.DeleteFunc(w.requests, func(a *userRequest) bool {
		switch {
		case !a.answered || w.daemon == nil || w.daemon.dead:
			return false
		case a.err != nil:
			w.logf("alice gets an error: %v", a.err)
		default:
			w.logf("alice gets: %s", a.message)
			a.granted(a.message)
		}
		return true
	})
}

// suspend suspends something, for a time or until it is resumed.
func (w *world) suspend(r *rand.Rand) {
	w.runEvent(func() {
		d := w.newestValid()
		if len(d.placements) == 0 {
			return
		}
		o := reconciler.Order{Reason: "INC-7", Subject: "crp/" + pick(r, keys(d.placements))}
		switch r.IntN(4) {
		case 0:
			o.Subject = "cluster/" + pick(r, keys(d.clusters))
		case 1:
			o.Subject, o.Namespace = anyObject(r)
		}
		if r.IntN(2) == 0 && !strings.HasPrefix(o.Subject, "cluster/") {
			o.Cluster = pick(r, keys(d.clusters))
		}
		w.suspendFor(o, pick(r, []time.Duration{0, 20 * time.Second, 2 * time.Minute, 5 * time.Minute}))
	})
}

// anyObject returns the subject and the namespace of a request about a random object.
func anyObject(r *rand.Rand) (subject, namespace string) {
	name := pick(r, objectNames)
	id := objectID(pick(r, namespaceNames), name)
	return id.Kind + "/" + name, id.Namespace
}

func (w *world) suspendFor(o reconciler.Order, d time.Duration) {
	o.For = metav1.Duration{Duration: d}
	w.request("suspend", (*reconciler.Reconciler).Suspend, o, func(string) {
		wish := requestedSuspension{since: time.Now()}
		if d > 0 {
			wish.until = w.now().Add(d).UTC().Truncate(time.Second)
		}
		subject := (&userRequest{order: o}).subject()
		w.saved.requestedSuspensions[subject], w.savedObservations.requestedSuspensions[subject] = wish, wish
	})
}

// resume ends a suspension, or resumes a stopped rollout.
func (w *world) resume(r *rand.Rand) {
	w.runEvent(func() {
		all := w.suspensions()
		if stopped := w.resumable(); len(stopped) > 0 && (len(all) == 0 || r.IntN(2) == 0) {
			w.resumeRollout(pick(r, stopped))
		} else if len(all) > 0 {
			w.endSuspension(pick(r, all))
		}
	})
}

// resumable returns the placements whose rollout may be stopped; all if there are none.
func (w *world) resumable() []ledger.Subject {
	var all, stopped []ledger.Subject
	for _, key := range slices.SortedFunc(maps.Keys(w.saved.entries), byKey) {
		all = append(all, ledger.Subject{Placement: key})
		for name := range w.saved.entries[key] {
			if at := (bindingKey{key, name}); w.saved.risked[at] && w.saved.reports[at].done && w.saved.reports[at].failed {
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
	return slices.SortedFunc(maps.Keys(w.saved.requestedSuspensions), ledger.Subject.Compare)
}

func (w *world) endSuspension(s ledger.Subject) {
	o := reconciler.Order{Cluster: s.Cluster}
	switch {
	case s.Object != api.ID{}:
		o.Subject, o.Namespace = s.Object.Kind+"/"+s.Object.Name, s.Object.Namespace
	case s.Placement != api.PlacementKey{}:
		o.Subject = s.Placement.String()
	default:
		o.Subject, o.Cluster = "cluster/"+s.Cluster, ""
	}
	w.request("resume", (*reconciler.Reconciler).Resume, o, func(said string) {
		delete(w.saved.requestedSuspensions, s)
		delete(w.savedObservations.requestedSuspensions, s)
	})
}

// resumeRollout resumes a stopped rollout.
func (w *world) resumeRollout(s ledger.Subject) {
	o := reconciler.Order{Subject: s.Placement.String(), Stopped: true, Reason: "INC-8"}
	w.request("go on with", (*reconciler.Reconciler).Resume, o, func(said string) {
		_, rest, _ := strings.Cut(said, "continues within its budget, although cluster")
		for _, cluster := range strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == ',' }) {
			at := bindingKey{s.Placement, cluster}
			if b, ok := w.saved.binding(at); ok {
				w.saved.excused[at], w.savedObservations.excused[at] = b.Assigned.Hash, b.Assigned.Hash
			}
		}
	})
}

// sync asks clusters to compare their objects again.
func (w *world) sync(r *rand.Rand) {
	w.runEvent(func() {
		o := reconciler.Order{}
		if r.IntN(2) == 0 {
			o.Subject = "crp/" + pick(r, placementNames)
		}
		w.request("sync", (*reconciler.Reconciler).Check, o, func(string) {})
	})
}

// reconfigure restarts gitfleet with another limit of unreachable clusters.
func (w *world) reconfigure(r *rand.Rand) {
	w.restart(r)
	w.runEvent(func() {
		w.maxUnreachable = pick(r, []string{"", "0", "1", "50%", "100%"})
		w.logf("maxUnreachable is %q from now on", w.maxUnreachable)
	})
}

// rollBack reverts a placement to the content that was available on every cluster.
func (w *world) rollBack(r *rand.Rand) {
	w.runEvent(func() {
		d := w.newestValid().clone()
		if len(d.placements) == 0 {
			return
		}
		name := pick(r, keys(d.placements))
		proven := w.source.commits[w.saved.proven[api.PlacementKey{Name: name}]]
		if proven == nil {
			return
		}
		for _, space := range d.placements[name].namespaces {
			delete(d.configMaps, space)
			if values, ok := proven.configMaps[space]; ok {
				d.configMaps[space] = maps.Clone(values)
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

// A requestedSuspension is a suspension that a user requested.
type requestedSuspension struct {
	until time.Time // by the wall clock; zero if it ends only with resume
	since time.Time // in simulated time
}

func (x requestedSuspension) ended(now time.Time) bool {
	return !x.until.IsZero() && !now.Before(x.until)
}

// covers reports whether a suspension stops writes of an object, or of a placement on a cluster.
func covers(s ledger.Subject, at bindingKey, id api.ID) bool {
	switch {
	case s.Effect != ledger.StopsWrites:
		return false
	case s.Object != api.ID{}:
		return s.Object == id && cmp.Or(s.Cluster, at.cluster) == at.cluster
	case s.Placement != api.PlacementKey{}:
		return s.Placement == at.key && cmp.Or(s.Cluster, at.cluster) == at.cluster
	}
	return s.Cluster == at.cluster
}

// suspended reports whether a placement is suspended on a cluster, according to the ledger.
func (b *model) suspended(at bindingKey, now time.Time) bool {
	return slices.ContainsFunc(b.suspensions, func(s ledger.Suspension) bool {
		return !s.Ended(now) && s.Object == api.ID{} && covers(s.Subject, at, api.ID{})
	})
}

// checkSuspensions compares the suspensions in the ledger with those that users requested.
func (w *world) checkSuspensions(l *ledger.Ledger) {
	if w.savedModelObservations().uncertain || w.names { // a suspension follows a member that is renamed
		w.adoptSuspensions(l)
	}
	now, wishes := w.now(), w.savedModelObservations().requestedSuspensions
	for _, s := range w.suspensions() {
		if _, ok := l.Suspension(s); ok || w.isRequested(s) {
			continue
		}
		if !wishes[s].ended(now) {
			w.violate(invariantSuspension, "%s is not suspended any more", s)
		}
		delete(wishes, s)
	}
	for _, s := range l.Suspensions() {
		if x, ok := wishes[s.Subject]; !w.isRequested(s.Subject) && (!ok || x.until.Sub(s.Until).Abs() > time.Second) {
			w.violate(invariantSuspension, "%s is %s, and was requested: %t, until %s", s.Subject, s, ok, x.until)
		}
	}
	for _, key := range l.Placements() {
		if p := l.Placement(key); p.Resumed != w.decided.resumed[key] && w.isRequested(ledger.Subject{Placement: key}) {
			maps.DeleteFunc(w.savedModelObservations().risked, func(at bindingKey, _ bool) bool { return at.key == key })
			maps.DeleteFunc(w.savedModelObservations().failedUpdates, func(at bindingKey, _ map[api.ID]string) bool { return at.key == key })
		}
	}
}

func (w *world) savedModelObservations() *observations { return w.saved.observations }

// adoptSuspensions takes over the suspensions in the ledger after a daemon ended before it
// answered.
func (w *world) adoptSuspensions(l *ledger.Ledger) {
	m := w.savedModelObservations()
	m.uncertain = false
	clear(m.requestedSuspensions)
	for _, s := range l.Suspensions() {
		if s.Effect != ledger.StopsWrites {
			continue
		}
		since := time.Now()
		if !w.clock.changed {
			since = since.Add(-w.now().Sub(s.Since))
		}
		m.requestedSuspensions[s.Subject] = requestedSuspension{s.Until, since}
	}
}

// checkWrite is called before every write to a cluster.
func (w *world) checkWrite(a *agent, key api.PlacementKey, id api.ID) {
	w.checkForeign(a, key, id)
	w.checkHolder(a, title(id))
	for _, s := range w.suspensions() {
		x := w.saved.requestedSuspensions[s]
		if !x.ended(w.now()) && covers(s, bindingKey{key, a.name}, id) && !a.passStart.Before(x.since) {
			w.violate(invariantSuspended, "%s writes %s for %s, and %s is suspended", a.name, title(id), key, s)
		}
	}
}

// checkResumed checks that no cluster waits for one that a user has excused.
func (w *world) checkResumed(at bindingKey, held string) {
	_, rest, stopped := strings.Cut(held, "waits for cluster ")
	cause, _, said := strings.Cut(rest, ", which was available before its update")
	if !stopped || !said {
		return
	}
	other := bindingKey{at.key, cause}
	b, _ := w.decided.binding(other)
	if hash, ok := w.savedModelObservations().excused[other]; ok && hash == b.Assigned.Hash {
		w.violate(invariantResumed, "%s of %s waits for %s", at.cluster, at.key, cause)
	}
}

// unreachableLimit returns how many clusters may be unreachable.
func (w *world) unreachableLimit() *intstr.IntOrString {
	if w.maxUnreachable == "" {
		return nil
	}
	n := intstr.Parse(w.maxUnreachable)
	return &n
}

// endSuspensions ends the suspensions that do not end soon by themselves, and resumes stopped
// rollouts.
func (w *world) endSuspensions() {
	for _, key := range slices.SortedFunc(maps.Keys(w.saved.entries), byKey) {
		w.runEvent(func() { w.resumeRollout(ledger.Subject{Placement: key}) })
	}
	for _, s := range w.suspensions() {
		w.runEvent(func() {
			if until := w.saved.requestedSuspensions[s].until; until.IsZero() || until.Sub(w.now()) > 5*time.Minute {
				w.endSuspension(s)
			}
		})
	}
}
