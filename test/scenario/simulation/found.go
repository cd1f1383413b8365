package simulation

import "slices"

const invariantUnanswered = "after a lost ledger no cluster is chosen in place of one that has not answered yet"

// checkUnanswered checks a PickN placement that was found in inventories: clusters that have
// not responded since the ledger was lost may hold it too, so it must not select others in
// their place.
func (t *decision) checkUnanswered(names []string) {
	found := t.before.found
	if t.before.head == "" && len(found) > 0 {
		found[t.key] = true // the first decision; it may be on clusters that do not answer
	}
	if t.spec.numberOfClusters < 0 || t.spec.invalid || !found[t.key] {
		return
	}
	if slices.ContainsFunc(t.w.requests, func(a *userRequest) bool { return a.subject().Placement == t.key }) {
		delete(found, t.key) // a user may resume it
		delete(t.w.savedObservations.found, t.key)
	}
	unseen, held := 0, 0
	for name := range t.head.clusters {
		if !t.before.responded[name] {
			unseen++
		}
	}
	for _, name := range names {
		if t.before.keeps(bindingKey{t.key, name}) {
			held++
		}
	}
	if unseen == 0 || held >= t.spec.numberOfClusters {
		delete(found, t.key) // no other cluster can hold it
	}
	if !found[t.key] {
		return
	}
	live, chosen := 0, []string{}
	for _, name := range names {
		at := bindingKey{t.key, name}
		if !t.after.keeps(at) {
			continue
		}
		live++
		if !t.before.keeps(at) {
			chosen = append(chosen, name)
		}
	}
	if len(chosen) > 0 && live > t.spec.numberOfClusters-unseen {
		t.w.violate(invariantUnanswered, "%s takes %v, and is on %d clusters then: %d are wanted, %d have not answered yet", t.key, chosen, live, t.spec.numberOfClusters, unseen)
	}
}
