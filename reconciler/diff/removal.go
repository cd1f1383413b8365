package diff

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Removal is the set of the fields and list items of a live object that have to go, and that an
// apply of the desired object would leave, because others own them too or nobody owns them.
//
// OwnershipPatch makes gitfleet their only owner, so that the apply that follows removes them, together with
// everything else that it changes. The zero value is empty.
type Removal struct {
	// roots are the fields and items themselves, and toOwn additionally what others own below them.
	roots, toOwn *fieldpath.Set
	// kept are the fields and items that should go, but whose owners must not be overridden.
	kept *fieldpath.Set
}

// Empty reports whether there is nothing to take ownership of.
func (r Removal) Empty() bool { return r.toOwn == nil || r.toOwn.Empty() }

// A Request describes an apply.
type Request struct {
	// Desired is the object that is applied, and Live the one that is there.
	Desired, Live *unstructured.Unstructured
	// Before is the object that was applied last; nil if it is not known.
	Before *unstructured.Unstructured
	// Manager is the field manager that applies.
	Manager string
	// Ignored are JSON pointers to fields that are left to others.
	Ignored []string
	// Force says that the apply overrides other managers.
	Force bool
	// KeepShared says that fields which others own too stay when Git removes them.
	KeepShared bool
	// Whole says that nothing may stay of a field that Git removes, also not what others have added to it.
	Whole bool
}

// RemovedFrom returns the fields that gitfleet has applied, that the desired object no longer has, and
// that others own too: whoever applied the same manifest, or created the object before it was
// taken over. Whoever owns a part of a removed field with the same content had that field for the
// same reason, and owns its defaults too, so that everything of theirs in it goes. The same goes for a part of
// what was applied that somebody has changed or applied with another value, and that gitfleet no longer owns. A field of somebody
// who owns nothing of what gitfleet applied stays. before are fields of earlier applies
// that may still be there; nil if there are none.
func RemovedFrom(r Request, before *fieldpath.Set) Removal { return findRemoved(r, before, nil) }

// findRemoved is RemovedFrom with the result of Taken: fields of the last apply that others have taken over since; nil if
// there are none.
func findRemoved(r Request, before, taken *fieldpath.Set) Removal {
	s, p := r.search()
	if before != nil {
		p.before = before
	}
	if taken != nil {
		p.taken = taken
	}
	s.removed(p, r.Live.Object, r.Desired.Object)
	return s.Removal
}

// RenamedIn returns the items of lists that somebody has put in the place of ours by changing the
// field that identifies an item, such as the port of a Service: the item of the desired object is
// missing, and another one is there, which nobody has applied and whose other fields are the
// same. An item without other fields, such as that of a set, must be at the same place. share is how many of them have to be: 1 for all, and 0 for one.
func RenamedIn(r Request, share float64) Removal {
	s, p := r.search()
	s.renamed(p, r.Live.Object, r.Desired.Object, share)
	return s.Removal
}

// A LastApply is what is known of the last apply of an object; the zero value if gitfleet never applied it.
type LastApply struct {
	// Drifted says that others have changed what gitfleet owns since, and Superseded that the desired object is another one now.
	Drifted, Superseded bool
	// Managed is its ApplyHash after that.
	Managed string
	// Left are the fields that Git had removed and that were still there.
	Left Left
}

// Removed returns what has to go from the live object with an apply, and would not by itself: the fields that
// Git has removed, and the list items that somebody has put in the place of ours since the last apply.
func Removed(r Request, last LastApply) Removal {
	if !last.Drifted {
		return RemovedFrom(r, last.Left.Fields())
	}
	var taken *fieldpath.Set
	if last.Superseded {
		taken = Taken(r.Live.GetManagedFields(), r.Manager, last.Managed)
	}
	gone := findRemoved(r, last.Left.Fields(), taken)
	share := 1.0
	if last.Superseded { // Git has changed the item too
		share = 0.5
	}
	return gone.Union(RenamedIn(r, share))
}

// Stayed returns what of a removal, and of what had stayed before, somebody owns in the object that an apply
// has stored.
func (r Removal) Stayed(before Left, stored *unstructured.Unstructured) Left {
	return r.All().And(before).Owned(stored)
}

// Opposed returns what has to go from the live object after the server has refused to apply the desired one
// beside it: also what others have added to a field that Git has removed, whoever owns it, and what kubectl has applied on the client
// to an object that is taken over.
func Opposed(r Request) Removal {
	r.Whole, r.KeepShared = true, false
	var before *fieldpath.Set
	if entries := r.Live.GetManagedFields(); entryOf(entries, r.Manager) == nil {
		before = union(entries, func(e *metav1.ManagedFieldsEntry) bool { return AppliedByClient(*e) })
	}
	return RemovedFrom(r, before).Union(RenamedIn(r, 0))
}

// AppliedByClient reports whether an entry of managedFields is that of kubectl's client-side apply.
func AppliedByClient(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == "kubectl-client-side-apply" && e.Operation == metav1.ManagedFieldsOperationUpdate
}

// Surplus returns the fields that nobody has applied and that contradict the desired object, such
// as the defaults of an alternative that it does not choose: fields beside one that the desired
// object sets anew or changes, which a new object with its content would not have. fresh is that
// new object; nil if it is not known. Then suspect decides by a field's path, such as
// spec.strategy.rollingUpdate.
func Surplus(r Request, fresh *unstructured.Unstructured, suspect func(path string) bool) Removal {
	s, p := r.search()
	var would any
	if fresh != nil {
		would, suspect = fresh.Object, func(string) bool { return true }
	}
	s.surplus(p, r.Live.Object, r.Desired.Object, would, suspect)
	return s.Removal
}

// Union returns the removal of everything that one of two removals has.
func (r Removal) Union(o Removal) Removal {
	return Removal{roots: joined(r.roots, o.roots), toOwn: joined(r.toOwn, o.toOwn), kept: joined(r.kept, o.kept)}
}

// A search finds what has to be removed.
type search struct {
	Removal
	Request
	others []rival
	// custom says that it is a custom resource.
	custom bool
}

// A rival is an entry in managedFields that is not from our applies.
type rival struct {
	set *fieldpath.Set
	// applies says that its fields were applied. contract says that a part of Kubernetes itself owns
	// them, such as an autoscaler by the scale subresource: they stay.
	applies, contract bool
}

// search returns a search with the position of the whole object.
func (r Request) search() (*search, position) {
	entries := r.Live.GetManagedFields()
	s := &search{Request: r, Removal: Removal{roots: fieldpath.NewSet(), toOwn: fieldpath.NewSet(), kept: fieldpath.NewSet()}}
	s.custom = !api.BuiltInGroup(r.Live.GroupVersionKind().Group)
	p := position{owned: ownership(entries, r.Manager), before: fieldpath.NewSet(), taken: fieldpath.NewSet()}
	if r.Before != nil {
		p.was = Normalize(r.Before).Object
	}
	for i := range entries {
		e := &entries[i]
		if applied(e, r.Manager) {
			continue
		}
		o := rival{
			set: fieldsOf(e), applies: e.Operation == metav1.ManagedFieldsOperationApply,
			contract: byContract(e),
		}
		s.others = append(s.others, o)
		p.theirs = append(p.theirs, o.set)
	}
	return s, p
}

// Releases reports whether the field at a path of a live object goes, or gets its default, when
// manager applies the object without it: manager owns it, and no part of Kubernetes itself does. Whoever
// else owns it does not keep it; see RemovedFrom.
func Releases(live *unstructured.Unstructured, manager string, path ...string) bool {
	o := ownership(slices.DeleteFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return !applied(&e, manager) && !byContract(&e)
	}), manager)
	for _, key := range path[:len(path)-1] {
		o = o.descend(name(key))
	}
	return o.onlyOurs(name(path[len(path)-1]))
}

func (s *search) removed(p position, live, desired any) {
	parts, _ := p.parts(live, desired)
	for _, f := range parts {
		switch {
		case f.wanted && !p.whole(f.e, f.live):
			s.removed(p.at(f.e), f.live, f.desired)
		case f.wanted || !p.applied(f.e):
		case p.at(f.e).collects(f.live):
			s.removed(p.at(f.e), f.live, emptyLike(f.live))
		default:
			s.remove(p, f)
		}
	}
}

// applied reports whether gitfleet has applied a part.
func (p position) applied(e fieldpath.PathElement) bool {
	return holds(p.ours, e) || holds(p.before, e) || holds(p.taken, e) || partOf(p.was, e) != nil
}

// shares reports whether somebody owns a field at or below a path element that gitfleet has applied.
func (p position) shares(theirs *fieldpath.Set, e fieldpath.PathElement) bool {
	return overlap(theirs, p.ours, e) || overlap(theirs, p.before, e)
}

// changed reports whether somebody has changed a field at or below a path element that gitfleet had
// applied: the last manifest has it, its ownership shows it, or it is in a list item that gitfleet has added.
func (p position) changed(theirs *fieldpath.Set, e fieldpath.PathElement) bool {
	was, taken := partOf(p.was, e), child(p.taken, e)
	found := holds(theirs, e) && e.FieldName == nil && p.ours.Members.Has(e) || theirs.Members.Has(e) && (was != nil || p.taken.Members.Has(e))
	child(theirs, e).Iterate(func(path fieldpath.Path) {
		_, _, has := locate(was, path)
		found = found || has || taken.Has(path)
	})
	return found
}

// collects reports whether a value is a list of items, or a map of arbitrary keys, that has more than
// what gitfleet has applied, so that only some of it goes.
func (p position) collects(v any) bool {
	if last := p.path[len(p.path)-1]; last.FieldName == nil || scalar(v) {
		return false
	} else if _, isMap := v.(map[string]any); isMap && !keyValueFields[*last.FieldName] {
		return false
	}
	parts, _ := p.parts(v, emptyLike(v))
	return slices.ContainsFunc(parts, func(f part) bool { return !p.applied(f.e) })
}

// emptyLike returns an empty map or list.
func emptyLike(v any) any {
	if _, isMap := v.(map[string]any); isMap {
		return map[string]any{}
	}
	return []any{}
}

// remove adds a part that was ours, with everything in it of those who own some of ours.
func (s *search) remove(p position, f part) {
	root := p.below(f.e)
	if s.ignores(root) {
		return
	}
	theirFields, kept := fieldpath.NewSet(), false
	needed := !holds(p.all, f.e) && p.forgotten(f, s.custom)
	for i, o := range s.others {
		theirs := p.theirs[i]
		shared := p.shares(theirs, f.e)
		edited := !shared && (p.changed(theirs, f.e) || s.Whole && !o.applies && holds(theirs, f.e))
		switch {
		case !shared && !edited:
		case o.contract:
			return
		case !s.Force, s.KeepShared && (shared || o.applies), edited && o.applies && p.isReplicas(f.e):
			kept = true
		default:
			needed, theirFields = true, theirFields.Union(only(theirs, f.e))
		}
	}
	switch {
	case kept:
		s.kept.Insert(root)
	case needed:
		s.add(p, root, theirFields)
	}
}

// forgotten reports whether a part that nobody owns is there only because it was applied, and no
// default: it is an item of a list, or a field of a custom resource with the value of the last manifest. Their
// definition may have made an atomic list or map a merged one, and an apply removes nothing of that.
func (p position) forgotten(f part, custom bool) bool {
	was := partOf(p.was, f.e)
	return holds(p.before, f.e) || was != nil && (f.e.FieldName == nil || custom && covers(was, f.live, nil))
}

// add adds a root with the fields of others in it, whose paths are relative to the position.
func (s *search) add(p position, root fieldpath.Path, theirFields *fieldpath.Set) {
	s.roots.Insert(root)
	s.toOwn.Insert(root)
	theirFields.Iterate(func(path fieldpath.Path) { s.toOwn.Insert(append(slices.Clone(p.path), path...)) })
}

// take adds a part that was not ours and that nobody has applied. ok is false if somebody has.
func (s *search) take(p position, f part) (ok bool) {
	root := p.below(f.e)
	if s.ignores(root) {
		return false
	}
	theirFields := fieldpath.NewSet()
	for i, o := range s.others {
		switch {
		case !holds(p.theirs[i], f.e):
		case o.contract || !s.Force:
			return false
		case o.applies:
			s.kept.Insert(root)
			return false
		default:
			theirFields = theirFields.Union(only(p.theirs[i], f.e))
		}
	}
	s.add(p, root, theirFields)
	return true
}

// ignores reports whether a path or something below it is left to others.
func (s *search) ignores(path fieldpath.Path) bool {
	pointer, _, ok := locate(s.Live.Object, path)
	return ok && slices.ContainsFunc(s.Ignored, func(p string) bool {
		return p == pointer || strings.HasPrefix(p, pointer+"/") || strings.HasPrefix(pointer, p+"/")
	})
}

func (s *search) renamed(p position, live, desired any, share float64) {
	parts, merges := p.parts(live, desired)
	if !merges {
		return
	}
	for _, f := range parts {
		if f.wanted {
			s.renamed(p.at(f.e), f.live, f.desired, share)
		}
	}
	parts = slices.DeleteFunc(parts, func(f part) bool { return f.wanted || holds(p.ours, f.e) })
	if fields, isMap := desired.(map[string]any); isMap {
		if keys := len(p.path) == 1 && p.path[0].FieldName != nil && dataFields[*p.path[0].FieldName]; keys {
			s.renamedKeys(p, fields, live.(map[string]any), parts)
		}
		return
	}
	if p.isFinalizers() {
		return // one is removed, and another added, by whoever works for it
	}
	items := desired.([]any)
	m, _ := p.mergingOf(live.([]any), items)
	for i, item := range items {
		rest := m.withoutKeys(item)
		if rest == nil || element(live, m.element(i, item)) != nil {
			continue
		}
		same := func(f part) bool { return alike(rest, f.live, share) }
		at := slices.IndexFunc(parts, func(f part) bool { return f.index == i && same(f) })
		if at < 0 && len(rest) > 0 {
			at = slices.IndexFunc(parts, same)
		}
		if at >= 0 && s.take(p, parts[at]) {
			parts = slices.Delete(parts, at, at+1)
		}
	}
}

// dataFields are the fields of a ConfigMap or Secret whose keys are names that users have chosen.
var dataFields = map[string]bool{"data": true, "binaryData": true}

// renamedKeys adds the keys that have the values of missing ones.
func (s *search) renamedKeys(p position, desired, live map[string]any, parts []part) {
	for _, key := range slices.Sorted(maps.Keys(desired)) {
		if _, there := live[key]; there || desired[key] == nil || desired[key] == "" {
			continue
		}
		if i := slices.IndexFunc(parts, func(f part) bool { return covers(desired[key], f.live, nil) }); i >= 0 && s.take(p, parts[i]) {
			parts = slices.Delete(parts, i, i+1)
		}
	}
}

// withoutKeys returns the fields of an item other than its keys, none for an item of a set; nil if items have
// no keys.
func (m merging) withoutKeys(item any) map[string]any {
	if m.set {
		return map[string]any{}
	}
	fields, ok := item.(map[string]any)
	if !ok || m.keys == nil {
		return nil
	}
	rest := maps.Clone(fields)
	for _, key := range m.keys {
		delete(rest, key)
	}
	return rest
}

// alike reports whether a share of the fields of an item, and at least one, is equal in another one.
func alike(want map[string]any, have any, share float64) bool {
	fields, _ := have.(map[string]any)
	equal := 0
	for key, v := range want {
		if there, has := fields[key]; has && covers(v, there, nil) {
			equal++
		}
	}
	return len(want) == 0 || equal > 0 && float64(equal) >= share*float64(len(want))
}

func (s *search) surplus(p position, live, desired, fresh any, suspect func(string) bool) {
	parts, merges := p.parts(live, desired)
	if !merges {
		return
	}
	would, known := fresh.(map[string]any)
	want, isMap := desired.(map[string]any)
	changes := isMap && p.sets(want, live.(map[string]any))
	for _, f := range parts {
		var there any
		switch {
		case len(p.path) == 0 && (*f.e.FieldName == "metadata" || *f.e.FieldName == "status"):
			continue // what a server has set there contradicts nothing
		case isMap:
			there = would[*f.e.FieldName]
		default:
			there = element(fresh, f.e)
		}
		switch {
		case f.wanted:
			s.surplus(p.at(f.e), f.live, f.desired, there, suspect)
		case f.wanted || !changes || known && there != nil || holds(p.ours, f.e):
		case suspect(p.dotted(f.e)):
			s.take(p, f)
		}
	}
}

// sets reports whether a map of the desired object sets a field that is not there with that value
// or not owned.
func (p position) sets(want, have map[string]any) bool {
	for key, v := range want {
		there, has := have[key]
		if !has || !holds(p.ours, name(key)) || scalar(v) != scalar(there) || scalar(v) && !covers(v, there, nil) {
			return true
		}
	}
	return false
}

// dotted returns the path of a part as an API server writes it, without the keys of list items.
func (p position) dotted(e fieldpath.PathElement) string {
	var names []string
	for _, e := range p.below(e) {
		if e.FieldName != nil {
			names = append(names, *e.FieldName)
		}
	}
	return strings.Join(names, ".")
}
