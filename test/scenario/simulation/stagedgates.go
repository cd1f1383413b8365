package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/gate"
)

// The invariants of gates.
const (
	invariantGates     = "no cluster of a later stage is updated before the gates of the earlier ones have passed for this content"
	invariantOnlyStage = "a gate that cannot be evaluated blocks nothing before its stage, and no other placement"
)

// Every gatesShare-th scenario with staged update runs has gates.
const gatesShare = 3

// gateStreams is the first of the random streams of gates in commits.
const gateStreams = 1000

// A gateSpec is a RolloutGate: a soak if it has no interval, and otherwise one that is asked.
type gateSpec struct {
	duration, interval time.Duration
	tolerated          int
	objects            bool // it looks at objects, and not at a metric
}

func (g gateSpec) text(name string) string {
	switch {
	case g.interval == 0:
		return fmt.Sprintf("soak %s %s\n", name, g.duration)
	case g.objects:
		return fmt.Sprintf("look %s %s %d %s %s\n", name, g.duration, g.tolerated, g.interval, gateCondition)
	}
	return fmt.Sprintf("metric %s %s %d %s\n", name, g.duration, g.tolerated, g.interval)
}

// gateCondition is the condition of gates that look at ConfigMaps: whether Git has a good value, and what the cluster reports.
const gateCondition = "object.data.value.startsWith('good') && object.status.ready"

// newGate returns another state of the gate of a name.
func newGate(name string, r *rand.Rand) gateSpec {
	g := gateSpec{duration: pick(r, []time.Duration{10 * time.Second, 45 * time.Second}), objects: name == "ready"}
	if name != "calm" {
		g.duration, g.interval, g.tolerated = pick(r, []time.Duration{0, 20 * time.Second, time.Minute}), 15*time.Second, r.IntN(3)
	}
	return g
}

// addGates gives gates to the stages of strategies that have been drawn without, and changes a gate now and then. It draws from a stream
// of its own, so that scenarios differ in nothing else.
func (s *stagedSpec) addGates(r *rand.Rand) {
	names := []string{"calm", "errors", "ready"}
	for _, name := range names {
		if _, exists := s.gates[name]; !exists || r.IntN(12) == 0 {
			s.gates[name] = newGate(name, r)
		}
	}
	for _, name := range keys(s.strategies) {
		x := s.strategies[name]
		if x.gated {
			continue
		}
		x.gated, x.stages = true, slices.Clone(x.stages)
		for i := range x.stages {
			x.stages[i].gates = slices.DeleteFunc(slices.Clone(names), func(string) bool { return r.IntN(3) > 0 })
		}
		s.strategies[name] = x
	}
}

// gateConditions are what gates answer: anything, what lets them pass, or nothing that can be evaluated.
type gateConditions int

const (
	gatesVary gateConditions = iota
	gatesPass
	gatesOut
)

// A gateKey is a gate after a stage of an update run.
type gateKey struct {
	stageKey
	gate string
}

// An answered is an answer to a gate as the simulation knows it: since when it was asked for, and when it was given.
type answered struct {
	verdict   placement.GateVerdict
	asked, at time.Time
}

// A question is asked at the interval of its gate until the daemon wants something else to be asked.
type question struct {
	placement.GateQuestion
	since time.Time
}

// askGates receives the gates that have to be asked from now on.
func (d *daemon) askGates(questions []placement.GateQuestion, answer func(placement.GateAnswer)) {
	w := d.w
	d.waitWhileStopped()
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.dead {
		return
	}
	before := d.questions
	d.questions, d.answer = map[placement.GateRound]*question{}, answer
	for _, q := range questions {
		one := before[q.GateRound]
		if one == nil {
			one = &question{since: time.Now()}
			interval := q.Spec.Schedule().Every()
			w.after(min(interval, max(0, q.Last.Add(interval).Sub(w.now()))), func() { w.ask(d, one) })
		}
		one.GateQuestion = q
		d.questions[q.GateRound] = one
	}
}

// ask asks a question once, and again after its interval. Some answers are late, and some are about something else.
func (w *world) ask(d *daemon, q *question) {
	if w.daemon != d || d.dead || d.questions[q.GateRound] != q {
		return
	}
	w.after(q.Spec.Schedule().Every(), func() { w.ask(d, q) })
	if d.stopped != nil {
		return
	}
	a := placement.GateAnswer{GateRound: q.GateRound, Verdict: w.verdict(), Text: "it is so", At: w.now()}
	if q.Spec.Objects != nil {
		a.Verdict, a.Text = w.lookAt(q)
	}
	delay := time.Duration(0)
	if w.gates == gatesVary {
		switch w.gateRandom.IntN(12) {
		case 0:
			delay = time.Duration(w.gateRandom.IntN(120)) * time.Second
		case 1:
			a.Updated--
		case 2:
			a.Content += "-other"
		}
	}
	if delay == 0 {
		w.answer(d, q, a)
		return
	}
	w.after(delay, func() { w.answer(d, q, a) })
}

// verdict draws what a server answers.
func (w *world) verdict() placement.GateVerdict {
	switch w.gates {
	case gatesPass:
		return placement.GateGood
	case gatesOut:
		return placement.GateUnknown
	}
	return pick(w.gateRandom, []placement.GateVerdict{
		placement.GateGood, placement.GateGood, placement.GateGood, placement.GateGood, placement.GateGood, placement.GateGood, placement.GateUnknown, placement.GateUnknown, placement.GateBad,
	})
}

// answer hands over an answer to what is asked now, or to something else, which counts for nothing.
func (w *world) answer(d *daemon, q *question, a placement.GateAnswer) {
	if w.daemon != d || d.dead || d.stopped != nil {
		return
	}
	w.logf("gate %s of stage %s of %s is %s", a.Gate, a.Stage, a.Run, a.Verdict)
	if d.questions[a.GateRound] == q {
		k := gateKey{stageKey{runKey{a.Placement, a.Run}, a.Stage}, a.Gate}
		w.saved.stagedRuns.answers[k] = append(slices.Clip(w.saved.stagedRuns.answers[k]), answered{a.Verdict, q.since, a.At})
	}
	d.answer(w.mutant.answers(a, d.questions))
}

// lookAt has gitfleet look at the objects on clusters where somebody has made each of them look good. The answer is good only if Git says
// so and all clusters report it.
func (w *world) lookAt(q *question) (placement.GateVerdict, string) {
	reports := map[string]placement.GateVerdict{}
	one, content := q.GateQuestion, w.runContent(q.Placement, q.Run)
	one.Last = time.Time{}
	fine := len(one.Targets) > 0
	for _, t := range one.Targets {
		reports[t.Cluster] = w.verdict()
		fine = fine && reports[t.Cluster] == placement.GateGood && w.hosts[t.Cluster] != nil && !w.hosts[t.Cluster].down
	}
	for id, value := range content {
		fine = fine && (id.Kind != "ConfigMap" || kindOf(value) == good)
	}
	ctx, cancel := context.WithCancel(context.Background())
	answers, ended := make(chan placement.GateAnswer, 1), make(chan error)
	asker := gate.New(gate.Config{Log: slog.New(slog.DiscardHandler), Read: func(_ context.Context, t placement.GateTarget) ([]*unstructured.Unstructured, error) {
		return w.forged(t, reports[t.Cluster])
	}})
	asker.Set([]placement.GateQuestion{one}, func(a placement.GateAnswer) { answers <- a })
	go func() { ended <- asker.Run(ctx) }()
	a := <-answers
	cancel()
	<-ended
	if a.Verdict == placement.GateGood && !fine {
		w.violate(invariantGates, "gate %s of stage %s of %s is good: %s", q.Gate, q.Stage, q.Run, a.Text)
	}
	return a.Verdict, a.Text
}

// runContent returns the content of a run by the last decisions.
func (w *world) runContent(key api.PlacementKey, name string) map[api.ID]string {
	for _, r := range w.saved.runs[key] {
		if c := w.source.commits[r.Content.Commit]; r.Name == name && c != nil {
			return c.content(key.Name, "")
		}
	}
	return nil
}

// forged returns the objects on a cluster, which somebody has made look as the gate wants them, with what the cluster reports of them.
func (w *world) forged(t placement.GateTarget, report placement.GateVerdict) (out []*unstructured.Unstructured, err error) {
	h := w.hosts[t.Cluster]
	if h == nil || h.down || h.hung {
		return nil, errors.New("the cluster does not answer")
	}
	for _, o := range t.Objects {
		if live := h.objects[o.ID]; live == nil || !live.ours {
			out = append(out, nil)
			continue
		}
		x := o.Content.DeepCopy()
		x.Object["data"] = map[string]any{"value": "good-forged"}
		x.SetAnnotations(map[string]string{"ready": "true"})
		if report != placement.GateUnknown {
			x.Object["status"] = map[string]any{"ready": report == placement.GateGood}
		}
		out = append(out, x)
	}
	return out, nil
}

// noteGates records the gates of a run that is initialised, as the commit in force has them.
func (t *decision) noteGates(r *placement.Run) {
	for _, s := range t.head.staged.strategies[r.Strategy].stages {
		specs := map[string]gateSpec{}
		for _, name := range s.gates {
			specs[name] = t.head.staged.gates[name]
		}
		t.before.stagedRuns.gates[stageKey{runKey{t.key, r.Name}, s.region}] = specs
	}
}

// gatesPassed reports whether all gates of a stage may have passed whose clusters have all been available since a time.
func (t *decision) gatesPassed(r *placement.Run, s placement.RunStage, since time.Time) bool {
	k := stageKey{runKey{t.key, r.Name}, s.Name}
	for name, g := range t.before.stagedRuns.gates[k] {
		switch {
		case g.interval == 0:
			if !t.soaked(r, s, since, g.duration) {
				return false
			}
		case !t.answeredWell(gateKey{k, name}, g, since):
			return false
		}
	}
	return true
}

// soaked reports whether all clusters of a stage have been available for a time.
func (t *decision) soaked(r *placement.Run, s placement.RunStage, since time.Time, long time.Duration) bool {
	for _, cluster := range s.Clusters {
		at := bindingKey{t.key, cluster}
		if !t.after.keeps(at) || t.failsAndContinues(r, cluster) {
			continue
		}
		from := since
		if word, said := t.workReport(at); said && word.fullyAvailable() && word.availableSince.After(from) {
			from = word.availableSince
		}
		if !t.isReady(at) || time.Since(from) < long-reportDelay {
			return false
		}
	}
	return true
}

// answeredWell reports whether the answers to a gate that was asked since a time, or since users last let it be asked again, have been
// good for long enough, or nothing waits for it although it has failed.
func (t *decision) answeredWell(k gateKey, g gateSpec, since time.Time) bool {
	o := t.before.stagedRuns
	for _, from := range append([]time.Time{since}, o.askedAgain[t.key]...) {
		if from.Before(since) {
			continue
		}
		passed, failed := g.judge(o.answers[k], from)
		if passed || failed && o.onFailure[k.runKey] == api.OnFailureContinue {
			return true
		}
	}
	return false
}

// judge says whether a gate has passed at any time, or failed, by the answers to what was asked since a time.
func (g gateSpec) judge(answers []answered, since time.Time) (passed, failed bool) {
	bad, held, last := 0, time.Duration(0), answered{}
	for _, a := range answers {
		if a.asked.Before(since) {
			continue
		}
		switch a.verdict {
		case placement.GateBad:
			bad++
		case placement.GateGood:
			if gap := a.at.Sub(last.at); last.verdict == placement.GateGood && gap > 0 && gap <= 2*g.interval {
				held += gap
			}
			passed = passed || bad <= g.tolerated && held >= g.duration
		}
		last = a
	}
	return passed, bad > g.tolerated
}

// longestOutage is how long checkGatesOut keeps all gates from being evaluated.
const longestOutage = 10 * time.Minute

// checkGatesOut brings new content while no gate can be evaluated, and checks that it comes to all clusters that wait for no gate.
func (w *world) checkGatesOut(r *rand.Rand) {
	w.runEvent(w.endAllFaults)
	if w.daemon == nil {
		w.wake()
	}
	w.endSuspensions()
	w.endHolds()
	w.advance(time.Minute)
	w.runEvent(func() {
		w.gates = gatesOut
		d := w.newestValid().clone()
		d.makeValid(r)
		d.makeValidStaged()
		for _, values := range d.configMaps {
			values["one"] = "good-out"
		}
		w.push("new content while no gate can be evaluated", d)
	})
	for range longestOutage / approvalInterval {
		w.advance(approvalInterval)
		for _, key := range w.asking() {
			w.runEvent(func() { w.decideStage(key, false) })
		}
	}
	if !w.fine() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range keys(w.source.commits[w.source.head].placements) {
		w.checkOut(api.PlacementKey{Name: name})
	}
}

// checkOut checks that a placement has the content in force on all clusters but those of stages after a gate.
func (w *world) checkOut(key api.PlacementKey) {
	head := w.source.commits[w.source.head]
	blocked := map[string]bool{}
	if r := currentRun(w.saved.runs[key]); r != nil && head.placements[key.Name].external {
		waits := false
		for _, s := range r.Stages {
			for _, cluster := range s.Clusters {
				blocked[cluster] = waits
			}
			for _, g := range w.saved.stagedRuns.gates[stageKey{runKey{key, r.Name}, s.Name}] {
				waits = waits || g.interval > 0 && len(s.Clusters) > 0
			}
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(w.saved.entries[key])) {
		at := bindingKey{key, cluster}
		if w.saved.keeps(at) && !blocked[cluster] && !sameContent(w.content(w.saved.revision(at), at), head.content(key.Name, cluster)) {
			w.violate(invariantOnlyStage, "%s has %q on %s, which waits for no gate", key, w.saved.revision(at).Commit, cluster)
		}
	}
}

// gateText returns the gates of a stage in the format of package test/world.
func (s stageSpec) gateText() string {
	var b strings.Builder
	for _, name := range s.gates {
		b.WriteString("/gate=" + name)
	}
	return b.String()
}
