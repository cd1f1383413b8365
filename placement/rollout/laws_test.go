package rollout

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A world is a random fleet. It computes independently of the tested code what is allowed.
type world struct {
	*rapid.T
	in     Input
	latest string
	// wanted is how many clusters are wanted, or asSelected.
	wanted int
	// blamed are the clusters that were available when their assignment last changed and have
	// not been since, so that the update counts as the cause; without those that were updated
	// before the rollout was last resumed.
	blamed map[string]bool
	// failed are the clusters whose failed update stops the rollout, with the revision of that
	// update.
	failed map[string]string
	// counted are the clusters that have counted as available with the content that they are assigned.
	counted map[string]bool
	next    int
}

func newWorld(t *rapid.T) *world {
	w := &world{T: t, latest: "v0", wanted: asSelected, blamed: map[string]bool{}, failed: map[string]string{}, counted: map[string]bool{}}
	share := rapid.SampledFrom([]string{"0", "1", "2", "25%", "50%", "100%"})
	unavailable, surge := intstr.Parse(share.Draw(t, "maxUnavailable")), intstr.Parse(share.Draw(t, "maxSurge"))
	seconds := rapid.SampledFrom([]int{0, 30, 60}).Draw(t, "period")
	w.in = Input{
		Now:              noon,
		RepairAfter:      repairAfter,
		StopOnFailure:    rapid.Bool().Draw(t, "stop on failure"),
		AvailableTimeout: rapid.SampledFrom([]time.Duration{0, time.Minute, 10 * time.Minute}).Draw(t, "available timeout"),
		Strategy: api.RolloutStrategy{RollingUpdate: &api.RollingUpdateConfig{
			MaxUnavailable: &unavailable, MaxSurge: &surge, UnavailablePeriodSeconds: &seconds,
		}},
	}
	if rapid.Bool().Draw(t, "limits the unreachable") {
		max := intstr.Parse(share.Draw(t, "maxUnreachable"))
		w.in.MaxUnreachable = &max
	}
	if rapid.Bool().Draw(t, "PickN") {
		w.wanted = rapid.IntRange(0, 8).Draw(t, "N")
	}
	for range rapid.IntRange(0, 8).Draw(t, "clusters") {
		w.join()
	}
	return w
}

func (w *world) join() {
	b := Target{Latest: revision(w.latest)}
	b.Cluster = fmt.Sprintf("c%02d", w.next)
	w.next++
	w.in.Targets = append(w.in.Targets, b)
}

// pick returns one of the bindings, or nil.
func (w *world) pick() *Target {
	if len(w.in.Targets) == 0 {
		return nil
	}
	return &w.in.Targets[rapid.IntRange(0, len(w.in.Targets)-1).Draw(w.T, "cluster")]
}

// change makes a random change of the fleet.
func (w *world) change() {
	b := w.pick()
	what := rapid.SampledFrom([]string{
		"commit", "commit for one", "join", "calm", "calm", "seen", "seen", "seen", "seen", "lose", "find", "unschedule", "select",
		"suspend", "let go on", "gone", "wait", "resume", "scale", "jump back", "written",
	}).Draw(w.T, "what happens")
	switch {
	case what == "commit":
		w.latest = rapid.SampledFrom([]string{"v0", "v1", "v2", "v3"}).Draw(w.T, "version")
		for i := range w.in.Targets {
			if c := &w.in.Targets[i]; !c.Unscheduled {
				c.Latest = revision(w.latest)
			}
		}
	case what == "calm":
		w.calm()
	case what == "join":
		w.join()
	case what == "wait":
		w.in.Now = w.in.Now.Add(time.Duration(rapid.IntRange(1, 90).Draw(w.T, "seconds")) * time.Second)
	case what == "jump back":
		w.in.Now = w.in.Now.Add(-time.Minute)
	case what == "resume":
		w.resume()
	case what == "scale" && w.wanted != asSelected:
		w.wanted = rapid.IntRange(0, 8).Draw(w.T, "N")
	case b != nil:
		w.changeOne(what, b)
	}
}

// calm makes all clusters that answer available.
func (w *world) calm() {
	for i := range w.in.Targets {
		if b := &w.in.Targets[i]; b.HasRevision() && !b.Unreachable {
			w.seen(b, Available)
		}
	}
}

// resume makes a user resume the rollout.
func (w *world) resume() {
	w.in.Resumed, w.in.Stops = w.in.Now, nil
	clear(w.failed)
}

func (w *world) changeOne(what string, b *Target) {
	switch {
	case what == "commit for one" && !b.Unscheduled:
		b.Latest = revision(w.latest + "+patch")
	case what == "seen" && b.HasRevision() && !b.Unreachable:
		health := rapid.SampledFrom([]Health{Unavailable, Failed, Available, Available, Available, Untracked}).Draw(w.T, "health")
		w.seen(b, health)
		if health == Unavailable && rapid.Bool().Draw(w.T, "fails") {
			b.Seen.Failure = "a pod cannot start"
		}
	case what == "written":
		b.Seen.Writing = true
	case what == "lose":
		b.Unreachable, b.BlockedSince = true, w.in.Now
	case what == "suspend":
		b.Suspended, b.BlockedSince = "suspended by alice", w.in.Now
	case what == "let go on":
		b.Suspended, b.Seen.DownSince = "", w.in.Now
	case what == "find":
		b.Unreachable, b.Seen.DownSince = false, time.Time{}
	case what == "unschedule":
		b.Unscheduled, b.Latest = true, placement.Revision{}
	case what == "select" && b.Unscheduled:
		if b.Removing {
			delete(w.blamed, b.Cluster)
			delete(w.counted, b.Cluster)
		}
		b.selectAgain(revision(w.latest), w.in.Now)
	case what == "gone" && b.Removing:
		w.gone(b.Cluster)
	}
}

// gone ends a removal.
func (w *world) gone(cluster string) {
	delete(w.blamed, cluster)
	delete(w.counted, cluster)
	w.in.Targets = slices.DeleteFunc(w.in.Targets, func(b Target) bool { return b.Cluster == cluster })
}

func (w *world) ready(b *Target) bool {
	if aside(b) || !b.HasRevision() || b.Seen.Hash != b.Assigned.Hash {
		return false
	}
	period := time.Duration(*w.in.Strategy.RollingUpdate.UnavailablePeriodSeconds) * time.Second
	return b.Seen.Health == Available || b.Seen.Health == Untracked && w.in.Now.Sub(b.Seen.Since) >= period
}

// turn plans, checks the plan, and executes it.
func (w *world) turn() Plan {
	for i := range w.in.Targets {
		if b := &w.in.Targets[i]; w.ready(b) || b.AssignedAt.Before(w.in.Resumed) {
			delete(w.blamed, b.Cluster)
		}
	}
	w.account()
	w.in.want(w.wanted)
	before := w.in
	before.Targets, before.Stops = slices.Clone(w.in.Targets), slices.Clone(w.in.Stops)
	p := Next(w.in)
	if !reflect.DeepEqual(before, w.in) {
		w.Fatal("Next changed its input")
	}
	if again := Next(w.shuffled()); !reflect.DeepEqual(again, p) {
		w.Fatalf("in another order the answer is another:\n%+v\n%+v", p, again)
	}
	w.judge(p)
	for _, a := range p.Assign {
		b := w.find(a.Cluster)
		if a.Changed {
			w.blamed[a.Cluster] = w.ready(b) || w.mayBeUp(b) || w.blamed[a.Cluster] && !w.isBroken(b)
			delete(w.counted, a.Cluster)
		} else if w.ready(b) {
			w.counted[a.Cluster] = true
		}
	}
	carryOut(&w.in, p)
	return p
}

func (w *world) shuffled() Input {
	in := w.in
	in.Targets = rapid.Permutation(slices.Clone(w.in.Targets)).Draw(w.T, "order")
	return in
}

func (w *world) find(cluster string) *Target {
	for i := range w.in.Targets {
		if w.in.Targets[i].Cluster == cluster {
			return &w.in.Targets[i]
		}
	}
	return nil
}

// A count has KubeFleet's numbers, with unreachable and suspended clusters counted separately.
type count struct{ target, unavailable, surge, ready, canBeReady, excused int }

func (w *world) count() count {
	var c count
	for i := range w.in.Targets {
		if !w.in.Targets[i].Unscheduled {
			c.target++
		}
	}
	if w.wanted != asSelected {
		c.target = w.wanted
	}
	r := w.in.Strategy.RollingUpdate
	c.unavailable, c.surge = up(*r.MaxUnavailable, c.target), up(*r.MaxSurge, c.target)
	pardons := len(w.in.Targets)
	if w.in.MaxUnreachable != nil {
		pardons = up(*w.in.MaxUnreachable, c.target)
	}
	for i := range w.in.Targets {
		b := &w.in.Targets[i]
		if !w.isMissed(b) && (b.Suspended != "" || b.Unreachable && pardons > 0) {
			if b.Suspended == "" {
				pardons--
			}
			if !b.Unscheduled {
				c.excused++
			}
			continue
		}
		if w.ready(b) && !b.Removing {
			c.ready++
		}
		if b.HasRevision() && !(b.Seen.Hash == b.Assigned.Hash && b.Seen.Health == Failed) {
			c.canBeReady++
		}
	}
	return c
}

// up computes a percentage, rounded up.
func up(v intstr.IntOrString, of int) int {
	if v.Type == intstr.Int {
		return v.IntValue()
	}
	var percent int
	fmt.Sscanf(v.StrVal, "%d%%", &percent)
	return (percent*of + 99) / 100
}

// judge checks one plan against the rules.
func (w *world) judge(p Plan) {
	c := w.count()
	taken, added, updated := 0, 0, 0
	waits := map[string]bool{}
	for _, waiting := range p.Waiting {
		if waits[waiting.Cluster] || waiting.Message == "" || strings.Contains(waiting.Message, "waits for  to") {
			w.Fatalf("waits twice or for no reason: %+v", waiting)
		}
		waits[waiting.Cluster] = true
	}
	held := map[string]placement.Revision{}
	moved := map[string]bool{}
	for _, a := range p.Assign {
		b := w.find(a.Cluster)
		held[a.Cluster] = a.Revision
		if b.Removing {
			w.Fatalf("%s is being removed and assigned %s", a.Cluster, a.Hash)
		}
		if !a.Changed {
			if a.Revision != b.Assigned {
				w.Fatalf("%s holds %v, and %v unchanged", a.Cluster, b.Assigned, a.Revision)
			}
			continue
		}
		moved[a.Cluster] = true
		if a.Revision != b.Latest || a.Hash == b.Assigned.Hash || b.Unscheduled || aside(b) {
			w.Fatalf("%+v gets %v", *b, a.Revision)
		}
		switch {
		case !b.HasRevision():
			added++
		default:
			updated++
			if w.ready(b) || w.mayBeUp(b) {
				taken++
			}
		}
	}
	for _, name := range p.Remove {
		b := w.find(name)
		moved[name] = true
		if !b.Unscheduled || b.Removing || aside(b) && b.HasRevision() {
			w.Fatalf("%+v is removed", *b)
		}
		if w.ready(b) || w.mayBeUp(b) {
			taken++
		}
	}
	if least := c.target - c.excused - c.unavailable; taken > 0 && c.ready-taken < least {
		w.Fatalf("%d available clusters are taken of %d; at least %d have to stay (%+v)\n%+v", taken, c.ready, least, c, p)
	}
	if added > 0 && c.canBeReady+added > c.target+c.surge {
		w.Fatalf("%d clusters are added to %d; at most %d may be there (%+v)", added, c.canBeReady, c.target+c.surge, c)
	}
	if stopper := w.stopper(); stopper != p.Stopped {
		w.Fatalf("stopped by %q, want %q", p.Stopped, stopper)
	} else if stopper != "" && updated > 0 {
		w.Fatalf("%d clusters are updated although the update broke %s\n%+v", updated, stopper, p)
	}
	for i := range w.in.Targets {
		b := &w.in.Targets[i]
		reported := slices.ContainsFunc(p.Failed, func(f Failure) bool { return f.Cluster == b.Cluster })
		if kept := !moved[b.Cluster] && !b.Unscheduled; reported != (kept && w.isBroken(b)) {
			w.Fatalf("%+v: reported as failed: %v", *b, reported)
		}
	}
	w.checkEachClusterHasAResult(p, held, moved, waits)
}

// stopper returns the first cluster whose newest update failed and that has not recovered
// since.
func (w *world) stopper() string {
	if len(w.failed) == 0 {
		return ""
	}
	return slices.Min(slices.Collect(maps.Keys(w.failed)))
}

// account updates the failed updates before a plan is made.
func (w *world) account() {
	for i := range w.in.Stops {
		w.in.Stops[i].Latest = w.gets(w.in.Stops[i].Cluster)
	}
	maps.DeleteFunc(w.failed, func(cluster, content string) bool {
		b := w.find(cluster)
		recovered := b != nil && !b.Removing && b.Assigned.Hash == content && w.ready(b)
		return !w.in.StopOnFailure || w.gets(cluster) != content || recovered
	})
	for i := range w.in.Targets {
		b := &w.in.Targets[i]
		if w.in.StopOnFailure && w.blamed[b.Cluster] && w.isBroken(b) && !b.Unscheduled &&
			b.Latest.Hash == b.Assigned.Hash && !b.AssignedAt.Before(w.in.Resumed) {
			w.failed[b.Cluster] = b.Assigned.Hash
		}
	}
}

// gets returns the content that a cluster would get now, whether or not it is selected.
func (w *world) gets(cluster string) string {
	if b := w.find(cluster); b != nil && !b.Unscheduled {
		return b.Latest.Hash
	}
	return w.latest
}

// checkEachClusterHasAResult checks that each cluster that needs a change moves or waits, and no other one does.
func (w *world) checkEachClusterHasAResult(p Plan, held map[string]placement.Revision, moved, waits map[string]bool) {
	settled := true
	for i := range w.in.Targets {
		b := &w.in.Targets[i]
		name := b.Cluster
		_, holds := held[name]
		switch wants := !b.Unscheduled && b.Assigned.Hash != b.Latest.Hash || b.Unscheduled; {
		case b.Removing && (holds || moved[name] || waits[name]):
			w.Fatalf("%s is being removed: held %v, moved %v, waits %v", name, holds, moved[name], waits[name])
		case !b.Removing && wants && moved[name] == waits[name]:
			w.Fatalf("%s: moved %v and waits %v", name, moved[name], waits[name])
		case !b.Removing && !wants && (moved[name] || waits[name]):
			w.Fatalf("%s has what it wants: moved %v, waits %v", name, moved[name], waits[name])
		case b.HasRevision() && !b.Removing && !holds && !moved[name]:
			w.Fatalf("%s is forgotten", name)
		}
		if !b.Unscheduled && (moved[name] || waits[name] || !w.ready(b)) {
			settled = false
		}
	}
	if p.Settled != settled {
		w.Fatalf("settled is %v, want %v", p.Settled, settled)
	}
}

// In all cases, a plan makes no more clusters unavailable than maxUnavailable allows, adds no
// more than maxSurge, updates no cluster after a failure, does not revert an assignment, and
// has a move or a reason for every cluster.
func TestEveryPlanKeepsTheLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				w.change()
			}
			w.turn()
		}
	})
}

// Until the time Wake, the plan does not change without new input. If there is no Wake, it
// never does.
func TestOnlyWakeNeedsWaiting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			w.change()
			w.turn()
		}
		var p Plan
		for range len(w.in.Targets) + 1 {
			p = w.turn() // until nothing changes at this time
		}
		limit := w.in.Now.Add(24 * time.Hour)
		if !p.Wake.IsZero() {
			if !p.Wake.After(w.in.Now) {
				t.Fatalf("wake at %v, and it is %v", p.Wake, w.in.Now)
			}
			limit = p.Wake.Add(-1)
		}
		w.in.Now = limit
		if later := Next(w.in); !reflect.DeepEqual(later, p) {
			t.Fatalf("at %v the answer is another:\n%+v\n%+v", limit, p, later)
		}
	})
}

// Once there are no more faults, a rollout ends: all selected clusters have the latest content,
// and others have none.
func TestARolloutEndsWhenAllIsWell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.change()
			w.turn()
		}
		one := intstr.FromInt32(rapid.Int32Range(1, 3).Draw(t, "maxUnavailable now"))
		w.in.Strategy.RollingUpdate.MaxUnavailable = &one
		wanted := 0
		for i := range w.in.Targets {
			b := &w.in.Targets[i]
			b.Unreachable, b.Suspended = false, ""
			if !b.Unscheduled {
				wanted++
			}
		}
		if w.wanted != asSelected {
			w.wanted = wanted
		}
		w.resume()
		var trace []string
		for range 4*len(w.in.Targets) + 8 {
			w.in.Now = w.in.Now.Add(2 * time.Minute)
			w.recover()
			p := w.turn()
			trace = append(trace, fmt.Sprint(moves(w.in, p)))
			if p.Settled && len(p.Waiting) == 0 && !w.removing() {
				return
			}
		}
		t.Fatalf("it never ends: %+v\n%s", w.in.Targets, strings.Join(trace, "\n"))
	})
}

// recover ends all faults and finishes what was started.
func (w *world) recover() {
	for _, b := range slices.Clone(w.in.Targets) {
		if b.Removing {
			w.gone(b.Cluster)
		}
	}
	for i := range w.in.Targets {
		if b := &w.in.Targets[i]; b.HasRevision() {
			w.seen(b, Available)
		}
	}
}

func (w *world) removing() bool {
	return slices.ContainsFunc(w.in.Targets, func(b Target) bool { return b.Removing || b.Unscheduled })
}
