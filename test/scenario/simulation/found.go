package simulation

import "slices"

const lawUnseen = "after a lost ledger no cluster is chosen in place of one that has not answered yet"

// checkUnseen checks a PickN placement that was found in inventories: clusters that have not
// responded since the ledger was lost may hold it too, so it must not select others in their
// place.
func (t *turn) checkUnseen(names []string) {
	found := t.before.found
	if t.before.head == "" && len(found) > 0 {
		found[t.key] = true // the first decision; it may be where nobody answers
	}
	if t.place.pick < 0 || t.place.invalid || !found[t.key] {
		return
	}
	if slices.ContainsFunc(t.w.asked, func(a *asked) bool { return a.subject().Placement == t.key }) {
		delete(found, t.key) // a person may have it go on
		delete(t.w.saved.found, t.key)
	}
	unseen, held := 0, 0
	for name := range t.head.clusters {
		if !t.before.joined[name] {
			unseen++
		}
	}
	for _, name := range names {
		if t.before.live(bindingKey{t.key, name}) {
			held++
		}
	}
	if unseen == 0 || held >= t.place.pick {
		delete(found, t.key) // no other cluster can hold it
	}
	if !found[t.key] {
		return
	}
	live, chosen := 0, []string{}
	for _, name := range names {
		at := bindingKey{t.key, name}
		if !t.after.live(at) {
			continue
		}
		live++
		if !t.before.live(at) {
			chosen = append(chosen, name)
		}
	}
	if len(chosen) > 0 && live > t.place.pick-unseen {
		t.w.breaks(lawUnseen, "%s takes %v, and is on %d clusters then: %d are wanted, %d have not answered yet", t.key, chosen, live, t.place.pick, unseen)
	}
}
