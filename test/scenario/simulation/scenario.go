package simulation

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A Scenario is a first commit and the steps after it. Running it is deterministic.
type Scenario struct {
	Seed  uint64
	Steps []Step
	// Mutant injects a mistake of gitfleet; the zero value injects none.
	Mutant Mutant
	// Replicas says that two replicas share the ledger.
	Replicas bool
	// Names says that clusters get second names, swap them and are renamed.
	Names bool
	// Restores says that clusters are restored from backups.
	Restores bool
	// Removals says that commits remove parts of objects, and objects with finalizers.
	Removals bool
	// Staged says that placements are rolled out by staged update runs; see NewStagedScenario.
	Staged bool
	// Gates reports whether stages have gates.
	Gates bool
	// Dir is the directory of a ledger in a real file; empty for one in memory.
	Dir string
}

// A Step is one change of the world. All of its details follow from its seed, so that leaving
// out another step does not change it.
type Step struct {
	kind int
	seed uint64
}

// NewScenario returns the scenario of a seed.
func NewScenario(seed uint64) Scenario {
	r := rand.New(rand.NewPCG(seed, 1))
	steps := 4 + r.IntN(8)
	if r.IntN(8) == 0 {
		steps += 10 + r.IntN(24) // some scenarios are long
	}
	sc := Scenario{Seed: seed, Steps: make([]Step, steps), Replicas: seed%replicaShare == 3, Names: seed%namesShare == 5, Restores: seed%restoresShare == 7, Removals: seed%removalsShare == 11}
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	for i := range sc.Steps {
		n := r.IntN(total)
		kind := slices.IndexFunc(kinds, func(k kind) bool { n -= k.weight; return n < 0 })
		sc.Steps[i] = Step{kind, r.Uint64()}
		if sc.Replicas && r.IntN(3) == 0 {
			sc.Steps[i].kind = pick(r, []int{stopStep, cutOffStep})
		}
		if sc.Names && r.IntN(3) == 0 {
			sc.Steps[i].kind = namesStep
		}
		if sc.Restores && r.IntN(3) == 0 {
			sc.Steps[i].kind = restoreStep
		}
		if sc.Removals && r.IntN(2) == 0 {
			sc.Steps[i].kind = removalStep
		}
	}
	return sc
}

// An Outcome is the result of a scenario.
type Outcome struct {
	// Violation is the first violated invariant; nil if none was.
	Violation *Violation
	// Log is what happened in the scenario, if verbose was set.
	Log   string
	Steps int
}

// Run runs a scenario in its own synctest bubble.
func (sc Scenario) Run(t *testing.T, with *Loaders, verbose bool) (out Outcome) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, seed: sc.Seed, names: sc.Names, restores: sc.Restores, removals: sc.Removals, staged: sc.Staged, gated: sc.Gates, gateRandom: rand.New(rand.NewPCG(sc.Seed, 6)), loaders: with, mutant: sc.Mutant, began: time.Now(), hosts: map[string]*host{},
			state: state{Store: ledger.Memory()}, saved: newModel(), verbose: verbose, queueChanged: make(chan struct{}, 1),
			contents: map[string]revisionContent{}, availableSomewhere: map[string]bool{}, exposed: map[bindingKey]string{},
		}
		w.savedObservations, w.decided = w.saved.observations, w.saved
		if sc.Dir != "" {
			w.state.disk = &disk{dir: sc.Dir}
			w.state.Store = nil
			w.loseLedger()
			w.state.lost, w.losses = false, 0
			defer func() { w.state.Close() }()
		}
		if sc.Replicas {
			w.replicas = &replicas{secrets: newSecrets()}
		}
		w.source = newSource(w)
		r := rand.New(rand.NewPCG(sc.Seed, 2))
		w.reportsDuringTurns = r.IntN(4) > 0
		w.blips = sc.Seed%4 > 0
		first := firstCommit(r)
		if sc.Removals {
			first.addRemovals()
		}
		if sc.Staged {
			first = firstStaged(rand.New(rand.NewPCG(sc.Seed, 4)))
		}
		w.runEvent(func() { w.push("the beginning", first) })
		w.wake()
		for _, s := range sc.Steps {
			if !w.fine() {
				break
			}
			out.Steps++
			w.step(s)
		}
		if w.fine() && sc.Staged && sc.Seed%frozenShare == 0 {
			w.checkFrozen()
		}
		if w.fine() && sc.Gates && sc.Seed%frozenShare == 1 {
			w.checkGatesOut(rand.New(rand.NewPCG(sc.Seed, 7)))
		}
		if w.fine() {
			w.converge(r)
		}
		w.continueFormer()
		if w.daemon != nil {
			w.stop()
		}
		if w.fine() && sc.Seed%freshShare == 0 && !sc.Names && !sc.Staged {
			w.checkFresh()
		}
		out.Violation, out.Log = w.violation, w.text.String()
	})
	return out
}

// wake starts the daemon, and lets a second pass.
func (w *world) wake() {
	w.runEvent(w.start)
	w.advance(time.Second)
}

func (w *world) push(what string, d *desired) {
	if w.gated {
		d.staged.addGates(rand.New(rand.NewPCG(w.seed, uint64(gateStreams+len(w.source.order)))))
	}
	if d.staged != nil {
		d.makeConsistent()
	}
	w.source.push(what, d)
	if d.withoutTrailer {
		what += ", without a trailer"
	}
	w.logf("commit %s: %s", w.source.head, what)
	if w.verbose {
		w.text.WriteString(indent(d.text()))
	}
}

// A kind is a kind of step.
type kind struct {
	weight int
	do     func(w *world, r *rand.Rand)
}

var kinds = []kind{
	{30, (*world).commit}, {2, (*world).brokenCommit}, {3, (*world).revert}, {10, (*world).wait}, {2, (*world).waitLong},
	{6, (*world).outage}, {6, (*world).endOutages}, {5, (*world).failWrites}, {4, (*world).endFaults}, {4, (*world).hang},
	{8, (*world).kill}, {3, (*world).restart}, {2, (*world).loseState}, {2, (*world).fillDisk}, {2, (*world).loseCommit},
	{2, (*world).pace}, {2, (*world).setClock}, {2, (*world).setClockWhileStopped},
	{4, (*world).suspend}, {4, (*world).resume}, {1, (*world).sync}, {1, (*world).reconfigure}, {1, (*world).rollBack},
	{4, (*world).suspendStopped}, {5, (*world).changeFleets},
	{0, (*world).stopLeader}, {0, (*world).cutOffLeader}, // with replicas only
	{6, (*world).loseAvailability},
	{0, (*world).changeNames},    // with names only
	{0, (*world).restoreHost},    // with restores only
	{0, (*world).changeRemovals}, // with removals only
}

// killStep is the kind of step that kills the daemon, resumeStep the kind in which a user
// resumes a rollout.
const killStep, resumeStep = 10, 19

// stopStep and cutOffStep are the kinds of steps with replicas.
const stopStep, cutOffStep = 25, 26

func (w *world) step(s Step) {
	r := rand.New(rand.NewPCG(s.seed, 3))
	if w.replicas != nil && r.IntN(2) == 0 {
		w.continueFormer()
	}
	w.kinds()[s.kind].do(w, r)
	if !w.fine() {
		return
	}
	w.advance(time.Duration(50+r.IntN(2000)) * time.Millisecond)
	if w.daemon == nil && w.fine() {
		w.advance(time.Duration(r.IntN(20)) * time.Second)
		w.wake()
	}
}

func (w *world) commit(r *rand.Rand) {
	w.runEvent(func() {
		d := w.newestValid().clone()
		what := d.change(r, w.edits())
		d.withoutTrailer = rand.New(rand.NewPCG(w.seed, uint64(len(w.source.order)))).IntN(3) == 0 || d.mistyped
		w.push(what, d)
	})
}

func (w *world) brokenCommit(*rand.Rand) {
	w.runEvent(func() {
		d := w.newestValid().clone()
		d.unreadable = true
		w.push("something that does not load", d)
	})
}

func (w *world) revert(r *rand.Rand) {
	w.runEvent(func() {
		old := w.source.commits[pick(r, w.source.order)]
		d := old.desired.clone()
		w.push("back to "+old.Hash, d)
	})
}

func (w *world) wait(r *rand.Rand) { w.advance(time.Duration(r.IntN(70)) * time.Second) }

func (w *world) waitLong(r *rand.Rand) { w.advance(time.Duration(200+r.IntN(200)) * time.Second) }

// anyHost returns a random host; nil if there is none.
func (w *world) anyHost(r *rand.Rand) *host {
	if len(w.hosts) == 0 {
		return nil
	}
	return w.hosts[pick(r, keys(w.hosts))]
}

// set changes a host, and lets its agent notice it soon.
func (w *world) set(h *host, change func()) {
	change()
	for _, a := range w.agentsOf(h) {
		a.after(time.Duration(h.random.IntN(3000))*time.Millisecond, func() {
			a.observe()
			a.startPass()
		})
	}
}

func (w *world) outage(r *rand.Rand) {
	w.runEvent(func() {
		if h := w.anyHost(r); h != nil && !h.down {
			w.logf("cluster %s stops answering", h.name)
			w.set(h, func() { h.down = true })
		}
	})
}

func (w *world) endOutages(r *rand.Rand) {
	w.runEvent(func() {
		for _, name := range keys(w.hosts) {
			if h := w.hosts[name]; h.down && r.IntN(2) == 0 {
				w.logf("cluster %s answers again", name)
				w.set(h, func() { h.down = false })
			}
		}
	})
}

func (w *world) failWrites(r *rand.Rand) {
	w.runEvent(func() {
		if h := w.anyHost(r); h != nil {
			id := objectID(pick(r, namespaceNames), pick(r, objectNames))
			w.logf("cluster %s refuses writes of %s", h.name, title(id))
			w.set(h, func() { h.failingWrites[id] = true })
		}
	})
}

func (w *world) endFaults(r *rand.Rand) {
	w.runEvent(func() {
		for _, name := range keys(w.hosts) {
			if h := w.hosts[name]; (len(h.failingWrites) > 0 || h.hung) && r.IntN(2) == 0 {
				w.logf("cluster %s is well again", name)
				w.set(h, func() { clear(h.failingWrites); h.hung = false })
			}
		}
	})
}

func (w *world) hang(r *rand.Rand) {
	w.runEvent(func() {
		if h := w.anyHost(r); h != nil && !h.hung {
			w.logf("cluster %s hangs", h.name)
			h.hung = true
		}
	})
}

func (w *world) pace(r *rand.Rand) {
	w.runEvent(func() {
		if h := w.anyHost(r); h != nil {
			h.halfPass = pick(r, []time.Duration{time.Millisecond, 100 * time.Millisecond, 3 * time.Second, 40 * time.Second})
			w.logf("cluster %s takes %s for half a pass", h.name, h.halfPass)
		}
	})
}

// kill kills the daemon after some writes, or at once.
func (w *world) kill(r *rand.Rand) {
	w.runEvent(func() {
		if w.daemon == nil {
			return
		}
		w.daemon.writesUntilKill = r.IntN(8)
		if r.IntN(3) == 0 {
			w.daemon.dead = true
			w.logf("gitfleet is killed")
		}
	})
}

func (w *world) restart(*rand.Rand) {
	if w.daemon != nil {
		w.stop()
	}
}

func (w *world) loseState(*rand.Rand) {
	w.restart(nil)
	w.runEvent(func() {
		w.logf("the state directory is lost")
		w.loseLedger()
	})
}

func (w *world) fillDisk(r *rand.Rand) {
	w.runEvent(func() { w.state.full = true; w.logf("the disk is full") })
	w.advance(time.Duration(r.IntN(20)) * time.Second)
	w.runEvent(func() { w.state.full = false; w.logf("the disk has room again") })
}

// loseCommit makes a commit unreadable, as a forced push and a garbage collection do.
func (w *world) loseCommit(r *rand.Rand) {
	w.runEvent(func() {
		hash := pick(r, w.source.order)
		if hash != w.source.head && !w.source.commits[hash].lost {
			w.source.commits[hash].lost = true
			w.losses++
			w.logf("commit %s cannot be read any more", hash)
		}
	})
}
