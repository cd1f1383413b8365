package rollout

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// A Held is a cluster that waits, and why.
type Held struct {
	Cluster string
	Reason  Reason
	// Message is a clause a person can act on.
	Message string
}

// A Reason is one of the things a cluster can wait for.
type Reason string

// The reasons.
const (
	// HeldMaxUnavailable: moving it would leave too few clusters available.
	HeldMaxUnavailable Reason = "MaxUnavailable"
	// HeldMaxSurge: too many clusters hold content already.
	HeldMaxSurge Reason = "MaxSurge"
	// HeldUnreachable: the cluster does not answer.
	HeldUnreachable Reason = "Unreachable"
	// HeldSuspended: somebody wants it left as it is.
	HeldSuspended Reason = "Suspended"
	// HeldStopped: the update of a cluster failed.
	HeldStopped Reason = "Stopped"
	// HeldCleanup: what the cluster held is still being removed.
	HeldCleanup Reason = "Cleanup"
	// HeldExternal: an update run has to move it.
	HeldExternal Reason = "External"
)

func (p *Plan) hold(b *Binding, r Reason, message string) {
	p.Held = append(p.Held, Held{Cluster: b.Cluster, Reason: r, Message: message})
}

// explain writes the messages of a rolling update, each once: most clusters
// wait for the same.
func (in *Input) explain(p *Plan) {
	messages := map[Reason]string{}
	for i := range p.Held {
		h := &p.Held[i]
		if h.Message != "" {
			continue
		}
		if messages[h.Reason] == "" {
			messages[h.Reason] = in.message(h.Reason, p)
		}
		h.Message = messages[h.Reason]
	}
}

func (in *Input) message(r Reason, p *Plan) string {
	unavailable, surge := in.shares()
	switch r {
	case HeldMaxUnavailable:
		return limit("maxUnavailable", unavailable, p.Budget.Target, p.Budget.MaxUnavailable) + in.missing(p)
	case HeldMaxSurge:
		return limit("maxSurge", surge, p.Budget.Target, p.Budget.MaxSurge) + ": waits for " + in.leaving() + " to go"
	case HeldStopped:
		return "waits for " + in.stopper(p) + "; the rollout goes on when it recovers, " +
			"with a commit that changes what it gets, or with gitfleet resume --stopped"
	}
	return "the cluster is unreachable and left as it is until it answers"
}

// limit writes a share together with what it comes to.
func limit(name string, v intstr.IntOrString, of, n int) string {
	if v.Type == intstr.Int {
		return fmt.Sprintf("%s %d", name, n)
	}
	return fmt.Sprintf("%s %s of %d = %d", name, v.StrVal, of, n)
}

// missing says what has to happen before maxUnavailable leaves room.
func (in *Input) missing(p *Plan) string {
	down, wanted := in.down(p)
	short := max(p.Budget.Target-wanted, 0)
	switch {
	case p.Budget.MaxUnavailable == 0 && p.Budget.MaxSurge == 0:
		return ", and maxSurge is zero too: nothing can move; raise one of them"
	case len(down) == 0 && short == 0:
		return ": no cluster may be updated while it is available; raise it"
	case len(down) == 0:
		return fmt.Sprintf(": only %d of %d wanted clusters could be chosen; raise it, or want fewer", wanted, p.Budget.Target)
	}
	return ": waits for " + list(down, short) + " to be available" + in.untracked(down)
}

// untracked says of those that are waited for which ones the time makes
// available; empty if none.
func (in *Input) untracked(down []string) string {
	var which []string
	for i := range in.Bindings {
		b := &in.Bindings[i]
		if b.health() == Untracked && !b.aside() && slices.Contains(down, b.Cluster) {
			which = append(which, b.Cluster)
		}
	}
	if len(which) == 0 {
		return ""
	}
	return fmt.Sprintf("; what cannot be tracked, on %s, counts as available %gs after it was applied (unavailablePeriodSeconds)",
		list(which, 0), period(in.Strategy).Seconds())
}

// down lists the wanted clusters that are not available, or will not be once
// the plan is carried out, and counts the wanted.
func (in *Input) down(p *Plan) (down []string, wanted int) {
	moved, pardons := p.Assign, p.Budget.Excused-in.suspended()
	for i := range in.Bindings {
		b := &in.Bindings[i]
		for len(moved) > 0 && moved[0].Cluster < b.Cluster {
			moved = moved[1:]
		}
		if b.Unscheduled {
			continue
		}
		wanted++
		if b.Suspended != "" {
			continue // nobody waits for it
		}
		if b.Unreachable && pardons > 0 {
			pardons-- // nobody waits for it
			continue
		}
		moving := len(moved) > 0 && moved[0].Cluster == b.Cluster && moved[0].Changed
		if moving || b.Removing || !b.ready(in) {
			down = append(down, b.Cluster)
		}
	}
	return down, wanted
}

// suspended counts the wanted clusters that are left as they are.
func (in *Input) suspended() int {
	n := 0
	for i := range in.Bindings {
		if b := &in.Bindings[i]; b.Suspended != "" && !b.Unscheduled {
			n++
		}
	}
	return n
}

// leaving lists the clusters that hold content and are not wanted.
func (in *Input) leaving() string {
	var leaving []string
	for i := range in.Bindings {
		if b := &in.Bindings[i]; b.Released() && (b.Unscheduled || b.Removing) {
			leaving = append(leaving, b.Cluster)
		}
	}
	if leaving == nil {
		return "one of the clusters that hold content"
	}
	return list(leaving, 0)
}

// list names the first few, and counts the others.
func list(names []string, more int) string {
	const few = 3
	if len(names) > few {
		more += len(names) - few
		names = names[:few]
	}
	text := strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
