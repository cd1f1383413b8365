package simulation

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

const invariantStopEnds = "a stop ends by recovery, by a commit that changes what its cluster gets, or when a user resumes the rollout"

// stops returns the clusters that stop a rollout, according to the ledger, in order.
func (w *world) stops() []bindingKey {
	var out []bindingKey
	for _, key := range slices.SortedFunc(maps.Keys(w.saved.recordedStops), byKey) {
		for _, s := range w.saved.recordedStops[key] {
			out = append(out, bindingKey{key, s.Cluster})
		}
	}
	return out
}

// suspendStopped suspends part of a stopped rollout: the placement, the broken cluster, or an
// object. The suspension expires, is ended by a user, or stays. If no rollout is stopped, it
// makes an update fail first.
func (w *world) suspendStopped(r *rand.Rand) {
	if len(w.stops()) == 0 {
		w.runEvent(func() {
			d := w.newestValid().clone()
			w.push(d.breakObject(r), d)
		})
		w.advance(10 * time.Second)
	}
	var s ledger.Subject
	w.runEvent(func() {
		stops := w.stops()
		if len(stops) == 0 {
			return
		}
		at := pick(r, stops)
		o := reconciler.Order{Reason: "INC-9", Subject: at.key.String()}
		switch r.IntN(4) {
		case 0:
			o.Subject = "cluster/" + at.cluster
		case 1:
			o.Cluster = at.cluster
		case 2:
			o.Subject, o.Namespace = anyObject(r)
		}
		s = (&userRequest{order: o}).subject()
		w.suspendFor(o, pick(r, []time.Duration{0, 20 * time.Second, 2 * time.Minute}))
	})
	w.advance(time.Duration(r.IntN(40)) * time.Second)
	w.runEvent(func() {
		if _, suspended := w.saved.requestedSuspensions[s]; suspended && r.IntN(2) == 0 {
			w.endSuspension(s)
		}
	})
}

// breakObject gives a selected object a value that never becomes available.
func (d *desired) breakObject(r *rand.Rand) string {
	for _, name := range keys(d.placements) {
		for _, space := range d.placements[name].namespaces {
			if values := d.configMaps[space]; len(values) > 0 && !d.placements[name].continueOnFailure {
				object := pick(r, keys(values))
				values[object] = bad + "-9"
				return space + "/" + object + " fails from now on"
			}
		}
	}
	return "nothing that could fail"
}

// checkStopEnds checks that no stop ends without a reason.
func (t *decision) checkStopEnds() {
	resumed := func(a *userRequest) bool { return a.order.Stopped && a.subject().Placement == t.key }
	if t.spec.continueOnFailure || slices.ContainsFunc(t.w.requests, resumed) {
		return
	}
	for _, s := range t.before.recordedStops[t.key] {
		at := bindingKey{t.key, s.Cluster}
		b, _ := t.before.binding(at)
		word, _ := t.workReport(at)
		recovered := b.Assigned.Hash == s.Failed.Hash && t.isReady(at) && word.fullyAvailable()
		changed := !sameContent(t.w.content(s.Failed, at), t.head.content(t.key.Name, s.Cluster))
		if !slices.Contains(t.after.recordedStops[t.key], s) && !recovered && !changed {
			t.w.violate(invariantStopEnds, "%s is not stopped by %s any more, which has not recovered", t.key, s.Cluster)
		}
	}
}
