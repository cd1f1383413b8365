package simulation

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

const lawStopEnds = "a stop ends by recovery, by a commit that changes what its cluster gets, or by a person's word to it"

// stops returns the clusters that stop a rollout, as recorded, in order.
func (w *world) stops() []bindingKey {
	var out []bindingKey
	for _, key := range slices.SortedFunc(maps.Keys(w.books.halted), byKey) {
		for _, s := range w.books.halted[key] {
			out = append(out, bindingKey{key, s.Cluster})
		}
	}
	return out
}

// suspendStopped suspends part of a stopped rollout: the placement, the broken cluster, or an
// object. The suspension ends by itself, is ended, or stays. If no rollout is stopped, it makes
// an update fail first.
func (w *world) suspendStopped(r *rand.Rand) {
	if len(w.stops()) == 0 {
		w.happen(func() {
			d := w.newest().clone()
			w.push(d.fail(r), d)
		})
		w.pass(10 * time.Second)
	}
	var s ledger.Subject
	w.happen(func() {
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
			o.Subject, o.Namespace = "ConfigMap/"+pick(r, objectNames), pick(r, spaceNames)
		}
		s = (&asked{order: o}).subject()
		w.suspendFor(o, pick(r, []time.Duration{0, 20 * time.Second, 2 * time.Minute}))
	})
	w.pass(time.Duration(r.IntN(40)) * time.Second)
	w.happen(func() {
		if _, suspended := w.books.wishes[s]; suspended && r.IntN(2) == 0 {
			w.takeBack(s)
		}
	})
}

// fail gives an object that a placement selects a value that never becomes available.
func (d *desired) fail(r *rand.Rand) string {
	for _, name := range keys(d.places) {
		for _, space := range d.places[name].of {
			if values := d.spaces[space]; len(values) > 0 && !d.places[name].goesOn {
				object := pick(r, keys(values))
				values[object] = bad + "-9"
				return space + "/" + object + " fails from now on"
			}
		}
	}
	return "nothing that could fail"
}

// checkStopEnds checks that no stop ends without a reason.
func (t *turn) checkStopEnds() {
	resumed := func(a *asked) bool { return a.order.Stopped && a.subject().Placement == t.key }
	if t.place.goesOn || slices.ContainsFunc(t.w.asked, resumed) {
		return
	}
	for _, s := range t.before.halted[t.key] {
		at := bindingKey{t.key, s.Cluster}
		b, _ := t.before.binding(at)
		word, _ := t.word(at)
		recovered := b.Assigned.Hash == s.Failed.Hash && t.isReady(at) && word.available()
		changed := !sameContent(t.w.content(s.Failed, at), t.head.gives(t.key.Name, s.Cluster))
		if !slices.Contains(t.after.halted[t.key], s) && !recovered && !changed {
			t.w.breaks(lawStopEnds, "%s is not stopped by %s any more, which has not recovered", t.key, s.Cluster)
		}
	}
}
