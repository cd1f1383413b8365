package rollout

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gitfleet/gitfleet/placement"
)

// A gateAnswer is what a gate says: when it passed, zero if it has not, and why.
type gateAnswer struct {
	text   string
	passed time.Time
}

// check asks the gates of a stage whose clusters are all updated. It returns what is waited for.
func (w *stageWalk) check(s *placement.RunStage, members []*Target) (missing []string) {
	for i := range s.Gates {
		g := &s.Gates[i]
		switch soak := g.Spec.Soak; {
		case soak != nil:
			record(g, w.soak(s, members, soak.For()), w.in.Now)
		case g.Spec.Schedule() != nil && g.Passed.IsZero() && g.Failed.IsZero():
			w.judge(g)
		}
		switch {
		case !g.Failed.IsZero() && w.run.Continues(): // the strategy says that nothing waits for it
		case g.Passed.IsZero():
			missing = append(missing, "for "+g.Text())
		}
		if !g.Failed.IsZero() {
			w.plan.Progress.FailedGates = append(w.plan.Progress.FailedGates, g.Text())
		}
	}
	return missing
}

// resetGates makes the gates of a stage start from the beginning, since its clusters are not all updated.
func (w *stageWalk) resetGates(s *placement.RunStage) {
	for i := range s.Gates {
		g := &s.Gates[i]
		if !g.Failed.IsZero() {
			continue
		}
		if g.Reset(); g.Answer != "" {
			record(g, gateAnswer{text: "not all clusters of the stage have been available with the content"}, w.in.Now)
		}
	}
}

// judge passes a gate, or lets it fail, by the answers of others.
func (w *stageWalk) judge(g *placement.RunGate) {
	text, passed, failed := g.Judge()
	a := gateAnswer{text: text}
	switch {
	case passed:
		a.passed = w.in.Now
	case failed:
		g.Failed = w.in.Now
	}
	record(g, a, w.in.Now)
}

// record records the answer of a gate.
func record(g *placement.RunGate, a gateAnswer, now time.Time) {
	if a.text != g.Answer || !a.passed.Equal(g.Passed) {
		g.Answer, g.Passed, g.Since = a.text, a.passed, now
	}
}

// soak asks whether all clusters of a stage have been available without an interruption for a time. It asks again until the stage is
// finished, so that a cluster which is lost while other tasks are waited for makes it begin again.
func (w *stageWalk) soak(s *placement.RunStage, members []*Target, long time.Duration) gateAnswer {
	in, since := w.in, s.Updated
	var down []string
	for _, b := range members {
		_, failed := b.failure(in)
		switch {
		case failed && !b.WasAvailable && w.run.Continues(): // the strategy says that nothing waits for it
		case !b.ready(in) || b.Seen.UpSince.IsZero():
			down = append(down, b.Cluster)
			w.plan.wake(b.readyAt(in))
		default:
			if from := b.soaksFrom(in); from.After(since) {
				since = from
			}
		}
	}
	ends := since.Add(long)
	switch {
	case len(members) == 0:
		return gateAnswer{text: "the stage has no cluster that could be observed"}
	case len(down) > 0:
		return gateAnswer{text: fmt.Sprintf("%s not known to be available; the %s begin again", list(down, 0), duration.HumanDuration(long))}
	case ends.After(in.Now):
		w.plan.wake(ends)
		return gateAnswer{text: fmt.Sprintf("available since %s, which has to last until %s", since.UTC().Format(time.RFC3339), ends.UTC().Format(time.RFC3339))}
	}
	return gateAnswer{text: fmt.Sprintf("available since %s", since.UTC().Format(time.RFC3339)), passed: ends}
}

// soaksFrom is since when a cluster has counted as available without an interruption.
func (b *Target) soaksFrom(in *Input) time.Time {
	if at := b.readyAt(in); b.health() == Untracked && at.After(b.Seen.UpSince) {
		return at
	}
	return b.Seen.UpSince
}
