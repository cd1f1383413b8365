// Package desired is what placements should have on a member cluster.
//
// A State has the works of all placements, and finds the object of a work by its ID. It is replaced as a whole by the part of a
// session that owns it; all others have a View.
package desired

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/hooks"
)

// Works are what a cluster should have, sorted by placement. They are replaced as a whole, and never
// changed.
type Works []*work.Work

// worksOf returns sorted works, which takes no memory if they are sorted, as those of a plan are.
func worksOf(works []*work.Work) Works {
	order := func(a, b *work.Work) int { return a.Placement.Compare(b.Placement) }
	if slices.IsSortedFunc(works, order) {
		return works
	}
	return slices.SortedFunc(slices.Values(works), order)
}

// Find returns the work of a placement, and whether it has one here.
func (ws Works) Find(p api.PlacementKey) (w *work.Work, found bool) {
	w = work.Find(ws, p)
	return w, w != nil
}

// Of returns the work of a placement; a zero one if it has none here.
func (ws Works) Of(p api.PlacementKey) *work.Work {
	if w, found := ws.Find(p); found {
		return w
	}
	return &work.Work{}
}

// Placed reports whether a placement has anything here.
func (ws Works) Placed(p api.PlacementKey) bool {
	w, ok := ws.Find(p)
	return ok && !w.Remove
}

// OnlyCompares reports whether a placement compares and never writes.
func (ws Works) OnlyCompares(p api.PlacementKey) bool {
	return ws.Of(p).Strategy.Type == api.ReportDiff
}

// Prunes reports whether objects are removed that the inventory of a placement lists and its
// work does not. They are not while the work is unknown.
func (ws Works) Prunes(p api.PlacementKey) bool {
	w, known := ws.Find(p)
	return known && !w.Keep && w.Strategy.Type != api.ReportDiff
}

// Protects reports whether a placement leaves drift (IfNotDrifted).
func (ws Works) Protects(p api.PlacementKey) bool {
	return ws.Of(p).Strategy.WhenToApply == api.ApplyIfNotDrifted
}

// SeesAdditions reports whether additions to the objects of a placement are looked for: a full comparison
// finds them anyway.
func (ws Works) SeesAdditions(p api.PlacementKey) bool {
	return !ws.OnlyCompares(p) && !diff.CompareAfter(ws.Of(p).Strategy)
}

// Suspended reports whether nothing is written for a placement.
func (ws Works) Suspended(p api.PlacementKey) bool { return ws.Of(p).Suspended != "" }

// SuspendedReason returns why an object is not written for a placement; empty if it is written.
func (ws Works) SuspendedReason(p api.PlacementKey, id api.ID) string {
	return ws.Of(p).SuspendedReason(id)
}

// MarkerStale reports whether the placement in an object's marker no longer has a claim to the
// object: it does not exist on this cluster, or gives the object up.
func (ws Works) MarkerStale(placement string) bool {
	for _, w := range ws {
		if w.Placement.String() == placement {
			return ws.Prunes(w.Placement)
		}
	}
	return true
}

// ChangedSince returns the placements whose works are not the same as before, with those that have none any more.
func (ws Works) ChangedSince(before Works) map[api.PlacementKey]bool {
	out := map[api.PlacementKey]bool{}
	for _, w := range ws {
		if old, found := before.Find(w.Placement); old != w && (!found || !old.Equal(w)) {
			out[w.Placement] = true
		}
	}
	for _, old := range before {
		if _, found := ws.Find(old.Placement); !found {
			out[old.Placement] = true
		}
	}
	return out
}

// An Object is a desired object with its placement.
type Object struct {
	Placement api.PlacementKey
	Manifest  *work.Manifest
}

// GVK returns the kind of the object in the version in which it is applied.
func (w Object) GVK() schema.GroupVersionKind { return w.Manifest.Object.Content.GroupVersionKind() }

// Objects are the desired objects, sorted by ID.
type Objects []packed

// A packed is an Object that shares the key of its placement with the others.
type packed struct {
	placement *api.PlacementKey
	manifest  *work.Manifest
}

// objectsOf returns the sorted objects of works. If two works have the same object, better
// decides whether the second gets it.
func objectsOf(works []*work.Work, better func(old, new Object) bool) Objects {
	n := 0
	for _, w := range works {
		n += len(w.Manifests)
	}
	all := make(Objects, 0, n)
	for i := range works {
		for _, m := range works[i].Manifests {
			all = append(all, packed{&works[i].Placement, m})
		}
	}
	slices.SortStableFunc(all, func(a, b packed) int { return a.manifest.ID.Compare(b.manifest.ID) })
	out := all[:0]
	for _, w := range all {
		last := len(out) - 1
		switch {
		case last < 0 || out[last].manifest.ID != w.manifest.ID:
			out = append(out, w)
		case better(out[last].unpack(), w.unpack()):
			out[last] = w
		}
	}
	return out
}

func (w packed) unpack() Object { return Object{*w.placement, w.manifest} }

// Of returns the object with an ID, and whether it is desired.
func (ws Objects) Of(id api.ID) (Object, bool) {
	i, found := slices.BinarySearchFunc(ws, id, func(w packed, id api.ID) int { return w.manifest.ID.Compare(id) })
	if !found {
		return Object{}, false
	}
	return ws[i].unpack(), true
}

// Manifests yields the manifests that are wanted, by ID.
func (ws Objects) Manifests() iter.Seq[*work.Manifest] {
	return func(yield func(*work.Manifest) bool) {
		for _, w := range ws {
			if !yield(w.manifest) {
				return
			}
		}
	}
}

// All yields everything that is wanted, by ID.
func (ws Objects) All() iter.Seq2[api.ID, Object] {
	return func(yield func(api.ID, Object) bool) {
		for _, w := range ws {
			if !yield(w.manifest.ID, w.unpack()) {
				return
			}
		}
	}
}

// A State is what placements should have on a cluster. It is replaced as a whole; those who only read it have a View.
type State struct {
	works  Works
	wanted Objects
	hooks  hooks.Order
	// secrets are the Secrets among the wanted objects; nil until they are needed.
	secrets *diff.Secrets
}

// Replace replaces the works. If two of them have the same object, better decides whether the second gets it.
func (s *State) Replace(works []*work.Work, better func(old, new Object) bool) {
	*s = State{works: worksOf(works), wanted: objectsOf(works, better), hooks: hooks.Of(works)}
}

// ForgetSecrets frees the memory of what Secrets has collected.
func (s *State) ForgetSecrets() { s.secrets = nil }

// View returns a view of the state, which follows its changes.
func (s *State) View() View { return View{s} }

// A View reads a State.
type View struct{ state *State }

// Works returns the works.
func (v View) Works() Works { return v.state.works }

// Wanted returns the objects of all works.
func (v View) Wanted() Objects { return v.state.wanted }

// Hooks returns the charts with hooks.
func (v View) Hooks() hooks.Order { return v.state.hooks }

// Secrets returns the Secrets among the wanted objects, whose values no text may contain. They are collected once after a Replace or
// ForgetSecrets.
func (v View) Secrets() diff.Secrets {
	if v.state.secrets != nil {
		return *v.state.secrets
	}
	var all []*unstructured.Unstructured
	for id, w := range v.Wanted().All() {
		if id.Group == "" && id.Kind == "Secret" {
			all = append(all, w.Manifest.Object.Content)
		}
	}
	found := diff.SecretsOf(all...)
	v.state.secrets = &found
	return found
}
