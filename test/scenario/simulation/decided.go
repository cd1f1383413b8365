package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// The laws of what is decided, as they are broken.
const (
	lawUnavailable = "no more clusters are taken than maxUnavailable allows"
	lawSurge       = "no more clusters are added than maxSurge allows"
	lawStopped     = "no cluster is updated while the update of another has failed"
	lawProgress    = "a cluster that takes its time stops nothing"
	lawCompared    = "what is only compared stops nothing"
	lawUnreachable = "a cluster that cannot be reached is left as it is"
	lawStays       = "a cluster is not replaced for being out of sight"
	lawInvalid     = "a placement that is invalid keeps what it holds"
)

// checkDecided compares the ledger with that before.
func (w *world) checkDecided(l *ledger.Ledger) {
	w.hearAdoptions(l)
	w.carryOver(l)
	w.checkWords(l)
	before, after := w.decided, w.decided.next(l)
	w.decided = after
	w.note(after)
	head := w.source.commits[after.head]
	if head == nil {
		return
	}
	for _, key := range slices.SortedFunc(maps.Keys(after.pages), byKey) {
		p, ok := head.places[key.Name]
		if !ok {
			maps.DeleteFunc(before.stops, func(at bindingKey, _ map[api.ID]string) bool { return at.key == key })
			delete(after.halted, key) // one that comes back is another rollout
			continue                  // all of it goes at once
		}
		t := &turn{w: w, key: key, place: p, head: head.desired, before: before, after: after, now: w.now()}
		t.check()
	}
}

// A turn is the decision about one placement at one time. The budget is computed independently,
// as in KubeFleet.
type turn struct {
	w             *world
	key           api.PlacementKey
	place         place
	head          *desired
	before, after *books
	now           time.Time

	wanted, excused, ready, canBeReady int
	// pardons is how many more clusters may be unreachable.
	pardons int
	// taken are the clusters that were available, or about to be, and are taken down.
	added, updated, taken []string
}

func (t *turn) check() {
	names := clusters(t.before, t.after, t.key)
	for _, name := range names {
		if b, has := t.after.binding(bindingKey{t.key, name}); has && !b.Unscheduled {
			t.wanted++
		}
	}
	t.pardons = len(names)
	if t.w.maxUnreachable != "" {
		t.pardons = share(t.w.maxUnreachable, t.target())
	}
	for _, name := range names {
		t.count(bindingKey{t.key, name})
	}
	t.checkStays(names)
	t.checkFound(names)
	t.checkUnseen(names)
	if t.place.invalid {
		if len(t.added)+len(t.updated)+len(t.taken) > 0 {
			t.w.breaks(lawInvalid, "%s adds %v, updates %v, takes %v", t.key, t.added, t.updated, t.taken)
		}
		return
	}
	target := t.target()
	unavailable, surge := share(t.place.unavailable, target), share(t.place.surge, target)
	if may := max(0, t.ready-(target-t.excused-unavailable)); len(t.taken) > may {
		t.w.breaks(lawUnavailable, "%s takes %v, and %d may go: %d are ready, %d wanted, %d out of reach, maxUnavailable is %d",
			t.key, t.taken, may, t.ready, target, t.excused, unavailable)
	}
	if may := max(0, target+surge-t.canBeReady); len(t.added) > may {
		t.w.breaks(lawSurge, "%s adds %v, and %d may come: %d may be ready, %d wanted, maxSurge is %d",
			t.key, t.added, may, t.canBeReady, target, surge)
	}
	t.checkStopped(names)
	t.checkProgress()
	t.checkStopEnds()
	t.blame()
}

// count counts one cluster.
func (t *turn) count(at bindingKey) {
	b, had := t.before.binding(at)
	now, has := t.after.binding(at)
	reachable, suspended := t.before.reachable(at.cluster), t.after.suspended(at, t.now)
	pardoned := suspended
	if has && !suspended && !reachable && t.pardons > 0 {
		t.pardons--
		pardoned = true
	}
	if has && !now.Unscheduled && pardoned {
		t.excused++
	}
	anew := had && b.Removing && has && !now.Removing
	if anew {
		delete(t.before.blamed, at)
	}
	ready, down := t.isReady(at), t.isDown(at)
	_, declared := t.head.clusters[at.cluster]
	gone := b.Removing && t.before.words[at].gone
	if !pardoned && had && declared && !gone {
		if ready && !b.Removing {
			t.ready++
		}
		if b.Released() && !t.hasFailed(at) && !t.place.report {
			t.canBeReady++
		}
	}
	if !has {
		return
	}
	moved := true
	switch {
	case now.Removing && (b.Removing || !b.Released()):
		moved = false // nothing was there, as far as anybody knows
	case now.Removing:
		if !down {
			t.taken = append(t.taken, at.cluster)
		}
	case anew && now.Assigned.Hash == b.Assigned.Hash:
		moved = false // it is as if it had never been removed
	case !b.Released() && now.Released():
		t.added = append(t.added, at.cluster)
	case anew && !now.Released():
		moved = false
	case b.Released() && b.Assigned.Hash != now.Assigned.Hash:
		t.updated = append(t.updated, at.cluster)
		if !down {
			t.taken = append(t.taken, at.cluster)
		}
	default:
		moved = false
	}
	if moved && suspended {
		t.w.breaks(lawAlone, "%s of %s goes from %+v to %+v, and is suspended", at.cluster, t.key, b, now)
	}
	if moved && t.before.foreign[at.cluster] {
		t.w.breaks(lawForeign, "%s of %s goes from %+v to %+v", at.cluster, t.key, b, now)
	}
	if moved && !reachable {
		t.w.breaks(lawUnreachable, "%s of %s goes from %+v to %+v", at.cluster, t.key, b, now)
	}
}

// word is what was said of what a cluster is assigned; not ok if nothing.
func (t *turn) word(at bindingKey) (word, bool) {
	b, _ := t.before.binding(at)
	word, ok := t.before.words[at]
	return word, ok && word.done && (t.place.report || !word.compared) && b.Released() && word.hash == b.Assigned.Hash && !word.at.Before(b.AssignedAt)
}

func (t *turn) isReady(at bindingKey) bool {
	word, ok := t.word(at)
	if !ok || !t.before.reachable(at.cluster) || t.after.suspended(at, t.now) {
		return false
	}
	switch {
	case t.leaves(at), t.place.report && len(t.yields(at)) > 0:
		return false
	case t.place.report:
		return word.applied
	case !word.up:
		return false
	}
	period := time.Duration(t.place.period) * time.Second
	return !word.untrackable || !word.since.Add(period).After(t.now)
}

func (t *turn) isDown(at bindingKey) bool {
	word, ok := t.word(at)
	return ok && (t.leaves(at) || t.place.report && len(t.yields(at)) > 0 || !word.applied || !word.up && !t.place.report)
}

// isBroken reports whether the content of a cluster will not become available by itself.
func (t *turn) isBroken(at bindingKey) bool {
	word, ok := t.word(at)
	return ok && (t.leaves(at) || word.failed)
}

func (t *turn) hasFailed(at bindingKey) bool {
	word, ok := t.word(at)
	return ok && (t.leaves(at) || !word.applied)
}

// leaves reports whether the cluster leaves an object to a placement that keeps it.
func (t *turn) leaves(at bindingKey) bool {
	return slices.ContainsFunc(t.yields(at), func(y ledger.Yield) bool { return !y.Passing })
}

// yields returns the objects that the cluster leaves to other placements.
func (t *turn) yields(at bindingKey) []ledger.Yield {
	if e := t.before.pages[at.key][at.cluster]; e != nil {
		return e.Yields
	}
	return nil
}

func (t *turn) target() int {
	switch {
	case len(t.place.on) > 0:
		return len(t.place.on)
	case t.place.pick >= 0:
		return t.place.pick
	}
	return t.wanted
}

// share returns a number, or a percentage rounded up; a quarter if it is not set.
func share(text string, of int) int {
	n, percent := 0, 0
	if text == "" {
		text = "25%"
	}
	if strings.HasSuffix(text, "%") {
		fmt.Sscanf(text, "%d%%", &percent)
		return (percent*of + 99) / 100
	}
	fmt.Sscanf(text, "%d", &n)
	return n
}

// checkStays checks that a placement keeps its clusters: under the same policy, it drops one
// only if fewer are wanted, or if the cluster leaves the fleet.
func (t *turn) checkStays(names []string) {
	then := t.w.source.commits[t.before.head]
	if then == nil || !t.before.known[t.key] {
		return // one that is not known was renamed just now: another policy chose its clusters
	}
	was, ok := then.places[t.key.Name]
	if !ok || was.invalid || was.policy() != t.place.policy() || t.place.pick < was.pick {
		return
	}
	for _, name := range names {
		at := bindingKey{t.key, name}
		b, _ := t.before.binding(at)
		_, declared := t.head.clusters[name]
		if declared && t.before.live(at) && b.Policy != "" && !t.after.live(at) {
			t.w.breaks(lawStays, "%s lets %s go (it answers: %t)", t.key, name, t.before.answers[name])
		}
	}
}

// checkFound checks that clusters found in inventories after a lost ledger are kept.
func (t *turn) checkFound(names []string) {
	held := 0
	for _, name := range names {
		if t.after.live(bindingKey{t.key, name}) {
			held++
		}
	}
	for _, name := range names {
		at := bindingKey{t.key, name}
		b, _ := t.before.binding(at)
		_, declared := t.head.clusters[name]
		if !declared || !t.before.live(at) || b.Policy != "" || t.after.live(at) {
			continue
		}
		if wanted := len(t.place.on) == 0 || slices.Contains(t.place.on, name); wanted && (t.place.pick < 0 || held < t.place.pick) {
			t.w.breaks(lawStays, "%s lets %s go, which was found again", t.key, name)
		}
	}
}

// policy returns the parts of a placement that select clusters, except their number.
func (p place) policy() string {
	return fmt.Sprint(p.on, p.pick >= 0, p.near)
}

// checkStopped checks that nothing is updated while a failed update stops the rollout.
func (t *turn) checkStopped(names []string) {
	t.accountStops(names)
	if len(t.updated) == 0 {
		return
	}
	for at := range t.before.stops {
		if at.key == t.key {
			t.w.breaks(lawStopped, "%s updates %v, and the update of %s failed", t.key, t.updated, at.cluster)
		}
	}
}

// checkProgress checks that no stop begins on a cluster where nothing has failed.
func (t *turn) checkProgress() {
	for _, s := range t.after.halted[t.key] {
		at := bindingKey{t.key, s.Cluster}
		_, said := t.word(at)
		switch {
		case slices.Contains(t.before.halted[t.key], s):
		case t.place.report:
			t.w.breaks(lawCompared, "%s is stopped by %s, where nothing is written", t.key, s.Cluster)
		case said && !t.isBroken(at):
			t.w.breaks(lawProgress, "%s is stopped by %s, where nothing has failed", t.key, s.Cluster)
		}
	}
}

// accountStops brings the failed updates that stop the rollout up to date. One
// stops it until its cluster recovers, until a commit changes what the cluster
// gets, or until a person says to go on, whatever else becomes of the cluster.
func (t *turn) accountStops(names []string) {
	maps.DeleteFunc(t.before.stops, func(at bindingKey, content map[api.ID]string) bool {
		return at.key == t.key && (t.place.goesOn || t.recovered(at) || !sameContent(content, t.head.gives(t.key.Name, at.cluster)))
	})
	for _, name := range names {
		at := bindingKey{t.key, name}
		if !t.place.goesOn && !t.place.report && t.w.books.blamed[at] && t.isBroken(at) && t.before.reachable(name) && !t.after.suspended(at, t.now) && t.before.live(at) && t.after.live(at) && t.newest(at) {
			t.before.stops[at] = t.head.gives(t.key.Name, name)
		}
	}
}

// recovered reports whether a cluster is available with the content that a stop is about. A
// comparison does not count.
func (t *turn) recovered(at bindingKey) bool { return t.isReady(at) && t.newest(at) && !t.place.report }

// newest reports whether a cluster is assigned the content that it would get now.
func (t *turn) newest(at bindingKey) bool {
	b, _ := t.before.binding(at)
	then := t.w.source.commits[b.Assigned.Commit]
	return then != nil && sameContent(t.w.content(b.Assigned, at), t.head.gives(t.key.Name, at.cluster))
}

func sameContent(a, b map[api.ID]string) bool { return maps.Equal(a, b) }

// blame records the update that is at fault if the cluster fails.
func (t *turn) blame() {
	for _, name := range clusters(t.before, t.after, t.key) {
		if at := (bindingKey{t.key, name}); t.isReady(at) && !t.place.report {
			delete(t.before.blamed, at)
		}
	}
	for _, name := range t.updated {
		at := bindingKey{t.key, name}
		t.before.blamed[at] = t.isReady(at) && !t.place.report || t.before.blamed[at] && (t.place.report || !t.isBroken(at))
	}
	for _, name := range t.added {
		delete(t.before.blamed, bindingKey{t.key, name})
	}
	for _, name := range slices.Concat(t.added, t.updated) {
		delete(t.before.excused, bindingKey{t.key, name})
	}
}
