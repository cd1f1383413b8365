package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A Life is the first commit of a world and the steps after it. It is deterministic.
type Life struct {
	Seed  uint64
	Steps []Step
	// Mutant makes mistakes on purpose; the zero value makes none.
	Mutant Mutant
	// Replicas says that two replicas share the ledger.
	Replicas bool
	// Dir is the directory of a ledger in a real file; empty for one in memory.
	Dir string
}

// A Step is one change of the world. Its seed decides all of its details, so that leaving out
// another step does not change it.
type Step struct {
	kind int
	seed uint64
}

// replicated is the share of lives that have two replicas: one of so many. They take twice as
// long as others.
const replicated = 16

// NewLife returns the life of a seed.
func NewLife(seed uint64) Life {
	r := rand.New(rand.NewPCG(seed, 1))
	steps := 4 + r.IntN(8)
	if r.IntN(8) == 0 {
		steps += 10 + r.IntN(24) // some lives are long
	}
	l := Life{Seed: seed, Steps: make([]Step, steps), Replicas: seed%replicated == 3}
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	for i := range l.Steps {
		n := r.IntN(total)
		kind := slices.IndexFunc(kinds, func(k kind) bool { n -= k.weight; return n < 0 })
		l.Steps[i] = Step{kind, r.Uint64()}
		if l.Replicas && r.IntN(3) == 0 {
			l.Steps[i].kind = pick(r, []int{stopping, cutting})
		}
	}
	return l
}

// An Outcome is the result of a life.
type Outcome struct {
	// Broken is the law that was broken; nil if none was.
	Broken *Broken
	// Story is the log of the life, if it was requested.
	Story string
	Steps int
}

// Lead runs a life, in a bubble of its own.
func (l Life) Lead(t *testing.T, with *Loaders, tell bool) (out Outcome) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, seed: l.Seed, loaders: with, mutant: l.Mutant, began: time.Now(), hosts: map[string]*host{},
			state: state{Store: ledger.Memory()}, books: newBooks(), telling: tell, news: make(chan struct{}, 1),
			contents: map[string]revision{},
		}
		w.saved, w.decided = w.books.memory, w.books
		if l.Dir != "" {
			w.state.disk = &disk{dir: l.Dir}
			w.state.Store = nil
			w.fresh()
			w.state.lost, w.losses = false, 0
			defer func() { w.state.Close() }()
		}
		if l.Replicas {
			w.replicas = &replicas{secrets: newSecrets()}
		}
		w.source = newSource(w)
		r := rand.New(rand.NewPCG(l.Seed, 2))
		w.bursts = r.IntN(4) > 0
		w.happen(func() { w.push("the beginning", begin(r)) })
		w.wake()
		for _, s := range l.Steps {
			if !w.fine() {
				break
			}
			out.Steps++
			w.step(s)
		}
		if w.fine() {
			w.converge(r)
		}
		w.wakeFormer()
		if w.daemon != nil {
			w.stop()
		}
		if w.fine() && l.Seed%freshly == 0 {
			w.checkFresh()
		}
		out.Broken, out.Story = w.broken, w.text.String()
	})
	return out
}

// wake starts the daemon, and lets a second pass.
func (w *world) wake() {
	w.happen(w.start)
	w.pass(time.Second)
}

func (w *world) push(what string, d *desired) {
	w.source.push(what, d)
	if d.silent {
		what += ", and nothing that is held may be deleted"
	}
	w.story("commit %s: %s", w.source.head, what)
	if w.telling {
		w.text.WriteString(indented(d.text()))
	}
}

// A kind of step.
type kind struct {
	weight int
	do     func(w *world, r *rand.Rand)
}

var kinds = []kind{
	{30, (*world).commit}, {2, (*world).brokenCommit}, {3, (*world).revert}, {10, (*world).wait}, {2, (*world).waitLong},
	{6, (*world).outage}, {6, (*world).comeBack}, {5, (*world).sicken}, {4, (*world).heal}, {4, (*world).hang},
	{8, (*world).kill}, {3, (*world).restart}, {2, (*world).loseState}, {2, (*world).fill}, {2, (*world).loseCommit},
	{2, (*world).pace}, {2, (*world).leap}, {2, (*world).leapOver},
	{4, (*world).suspend}, {4, (*world).resume}, {1, (*world).sync}, {1, (*world).reconfigure}, {1, (*world).rollBack},
	{4, (*world).suspendStopped}, {5, (*world).compete},
	{0, (*world).stopLeader}, {0, (*world).cutOffLeader}, // only of replicas
}

// killing is the kind of step that kills the daemon, resuming the kind in which a user resumes a
// rollout.
const killing, resuming = 10, 19

// stopping and cutting are the kinds of steps of replicas.
const stopping, cutting = 25, 26

func (w *world) step(s Step) {
	r := rand.New(rand.NewPCG(s.seed, 3))
	if w.replicas != nil && r.IntN(2) == 0 {
		w.wakeFormer()
	}
	kinds[s.kind].do(w, r)
	if !w.fine() {
		return
	}
	w.pass(time.Duration(50+r.IntN(2000)) * time.Millisecond)
	if w.daemon == nil && w.fine() {
		w.pass(time.Duration(r.IntN(20)) * time.Second)
		w.wake()
	}
}

// newest returns the newest valid commit.
func (w *world) newest() *desired {
	for _, hash := range slices.Backward(w.source.order) {
		if c := w.source.commits[hash]; !c.unreadable && !c.lost {
			return c.desired
		}
	}
	return w.source.commits[w.source.order[0]].desired
}

func (w *world) commit(r *rand.Rand) {
	w.happen(func() {
		d := w.newest().clone()
		what := d.change(r)
		d.silent = rand.New(rand.NewPCG(w.seed, uint64(len(w.source.order)))).IntN(3) == 0 || d.mistyped
		w.push(what, d)
	})
}

func (w *world) brokenCommit(*rand.Rand) {
	w.happen(func() {
		d := w.newest().clone()
		d.unreadable = true
		w.push("something that does not load", d)
	})
}

func (w *world) revert(r *rand.Rand) {
	w.happen(func() {
		old := w.source.commits[pick(r, w.source.order)]
		d := old.desired.clone()
		w.push("back to "+old.Hash, d)
	})
}

func (w *world) wait(r *rand.Rand) { w.pass(time.Duration(r.IntN(70)) * time.Second) }

func (w *world) waitLong(r *rand.Rand) { w.pass(time.Duration(200+r.IntN(200)) * time.Second) }

// host returns any host; nil if there is none.
func (w *world) host(r *rand.Rand) *host {
	if len(w.hosts) == 0 {
		return nil
	}
	return w.hosts[pick(r, keys(w.hosts))]
}

// set changes a host, and lets its agent notice it soon.
func (w *world) set(h *host, change func()) {
	change()
	if a := h.agent; a != nil && !a.ended {
		a.after(time.Duration(h.chance.IntN(3000))*time.Millisecond, func() {
			a.look()
			a.work()
		})
	}
}

func (w *world) outage(r *rand.Rand) {
	w.happen(func() {
		if h := w.host(r); h != nil && !h.down {
			w.story("cluster %s stops answering", h.name)
			w.set(h, func() { h.down = true })
		}
	})
}

func (w *world) comeBack(r *rand.Rand) {
	w.happen(func() {
		for _, name := range keys(w.hosts) {
			if h := w.hosts[name]; h.down && r.IntN(2) == 0 {
				w.story("cluster %s answers again", name)
				w.set(h, func() { h.down = false })
			}
		}
	})
}

func (w *world) sicken(r *rand.Rand) {
	w.happen(func() {
		if h := w.host(r); h != nil {
			id := configMapID(pick(r, spaceNames), pick(r, objectNames))
			w.story("cluster %s refuses writes of %s", h.name, title(id))
			w.set(h, func() { h.sick[id] = true })
		}
	})
}

func (w *world) heal(r *rand.Rand) {
	w.happen(func() {
		for _, name := range keys(w.hosts) {
			if h := w.hosts[name]; (len(h.sick) > 0 || h.hung) && r.IntN(2) == 0 {
				w.story("cluster %s is well again", name)
				w.set(h, func() { clear(h.sick); h.hung = false })
			}
		}
	})
}

func (w *world) hang(r *rand.Rand) {
	w.happen(func() {
		if h := w.host(r); h != nil && !h.hung {
			w.story("cluster %s hangs", h.name)
			h.hung = true
		}
	})
}

func (w *world) pace(r *rand.Rand) {
	w.happen(func() {
		if h := w.host(r); h != nil {
			h.pace = pick(r, []time.Duration{time.Millisecond, 100 * time.Millisecond, 3 * time.Second, 40 * time.Second})
			w.story("cluster %s takes %s for half a pass", h.name, h.pace)
		}
	})
}

// kill kills the daemon after some writes, or at once.
func (w *world) kill(r *rand.Rand) {
	w.happen(func() {
		if w.daemon == nil {
			return
		}
		w.daemon.fuse = r.IntN(8)
		if r.IntN(3) == 0 {
			w.daemon.dead = true
			w.story("gitfleet is killed")
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
	w.happen(func() {
		w.story("the state directory is lost")
		w.fresh()
	})
}

func (w *world) fill(r *rand.Rand) {
	w.happen(func() { w.state.full = true; w.story("the disk is full") })
	w.pass(time.Duration(r.IntN(20)) * time.Second)
	w.happen(func() { w.state.full = false; w.story("the disk has room again") })
}

// loseCommit makes a commit unreadable, as a forced push and a garbage collection do.
func (w *world) loseCommit(r *rand.Rand) {
	w.happen(func() {
		hash := pick(r, w.source.order)
		if hash != w.source.head && !w.source.commits[hash].lost {
			w.source.commits[hash].lost = true
			w.losses++
			w.story("commit %s cannot be read any more", hash)
		}
	})
}

// converge ends all faults, and waits until everything is as it should be.
func (w *world) converge(r *rand.Rand) {
	w.happen(func() {
		w.story("all faults end")
		if w.daemon != nil {
			w.daemon.fuse = -1
		}
		for _, name := range keys(w.hosts) {
			h := w.hosts[name]
			w.set(h, func() { h.down, h.hung, h.pace = false, false, 20*time.Millisecond; clear(h.sick); h.concede() })
		}
		d := w.newest().clone()
		d.mend(r)
		w.push("what can be carried out\n\nGitfleet-Allow-Delete: *", d)
	})
	if w.daemon == nil {
		w.wake()
	}
	w.letGo()
	if why := w.settles(); why != "" {
		w.breaks(lawConverges, "%s", why)
	}
}

const lawConverges = "once faults stop, everything becomes as it should be"

// mend makes a commit valid for this fleet.
func (d *desired) mend(r *rand.Rand) {
	fine := func(value string) string {
		if k := kindOf(value); k == bad || k == refused {
			return good + value[len(k):] + "-mended"
		}
		return value
	}
	for _, values := range d.spaces {
		for name, value := range values {
			values[name] = fine(value)
		}
	}
	for id, o := range d.overrides {
		d.overrides[id] = override{fine(o.value), o.region}
	}
	for name, c := range d.clusters {
		d.clusters[name] = cluster{region: c.region}
	}
	taken := map[string]bool{}
	for _, name := range keys(d.places) {
		p := d.places[name]
		p.of = slices.DeleteFunc(slices.Clone(p.of), func(space string) bool { return taken[space] })
		for _, space := range p.of {
			taken[space] = true
		}
		if len(p.of) == 0 {
			delete(d.places, name)
			continue
		}
		p.invalid = false
		p.near = ""
		p.on = slices.DeleteFunc(slices.Clone(p.on), func(c string) bool { _, ok := d.clusters[c]; return !ok })
		p.pick = min(p.pick, len(d.clusters))
		if p.unavailable == "0" {
			p.unavailable = pick(r, []string{"1", ""})
		}
		d.places[name] = p
	}
}

// settled returns what is not as it should be; empty if nothing is.
func (w *world) settled() string {
	head := w.source.commits[w.source.head]
	if w.books.head != head.Hash {
		return fmt.Sprintf("%s is in force, not %s", w.books.head, head.Hash)
	}
	for _, s := range w.suspensions() {
		if !w.books.wishes[s].ended(w.now()) {
			return fmt.Sprintf("%s is still suspended", s)
		}
	}
	for key, page := range w.books.pages {
		if _, ok := head.places[key.Name]; !ok {
			return fmt.Sprintf("%s is still there", key)
		}
		for name := range page {
			if at := (bindingKey{key, name}); !w.books.live(at) {
				return fmt.Sprintf("%s is still on %s", key, name)
			}
		}
	}
	for name, p := range head.places {
		if why := w.placed(api.PlacementKey{Name: name}, p, head.desired); why != "" {
			return why
		}
	}
	for name := range head.clusters {
		if a := w.hosts[name].agent; a == nil || !a.connected || a.pass != nil {
			return fmt.Sprintf("%s is still at work", name)
		}
		if why := w.holdsWhatItShould(w.hosts[name], head.desired); why != "" {
			return why
		}
	}
	return ""
}

// placed compares the clusters of a placement with those it should have.
func (w *world) placed(key api.PlacementKey, p place, head *desired) string {
	page := w.books.pages[key]
	want := len(head.clusters)
	switch {
	case len(p.on) > 0:
		want = len(p.on)
	case p.pick >= 0:
		want = p.pick
	}
	if len(page) != want {
		return fmt.Sprintf("%s is on %d clusters, not on %d", key, len(page), want)
	}
	for name, e := range page {
		if len(p.on) > 0 && !slices.Contains(p.on, name) {
			return fmt.Sprintf("%s is on %s", key, name)
		}
		then := w.source.commits[e.Binding.Assigned.Commit]
		if then == nil || !sameContent(w.content(e.Binding.Assigned, bindingKey{key, name}), head.gives(key.Name, name)) {
			return fmt.Sprintf("%s has %q on %s", key, e.Binding.Assigned.Commit, name)
		}
	}
	return ""
}

// holdsWhatItShould compares the objects of a cluster with those it should have.
func (w *world) holdsWhatItShould(h *host, head *desired) string {
	want := map[api.ID]string{}
	for key := range w.books.pages {
		if p := head.places[key.Name]; !p.report && w.books.live(bindingKey{key, h.name}) {
			maps.Copy(want, head.gives(key.Name, h.name))
		}
	}
	for id, value := range want {
		if t := h.things[id]; t == nil || !t.ours || t.value != value {
			return fmt.Sprintf("%s has %s as %+v, not as %q", h.name, title(id), t, value)
		}
		if _, ok := h.owner(id); !ok {
			return fmt.Sprintf("no inventory of %s has %s", h.name, title(id))
		}
	}
	for id, t := range h.things {
		if by, ok := h.owner(id); ok && head.places[by.Name].report {
			continue // it writes nothing, and so removes nothing
		}
		if _, ok := want[id]; !ok && t.ours {
			return fmt.Sprintf("%s still has %s", h.name, title(id))
		}
	}
	return ""
}
