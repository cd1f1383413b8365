package rollout

import (
	"fmt"

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
	// HeldStopped: an update made another cluster unavailable.
	HeldStopped Reason = "Stopped"
	// HeldCleanup: what the cluster held is still being removed.
	HeldCleanup Reason = "Cleanup"
	// HeldExternal: an update run has to move it.
	HeldExternal Reason = "External"
)

func (p *Plan) hold(b *Binding, r Reason, message string) {
	p.Held = append(p.Held, Held{Cluster: b.Cluster, Reason: r, Message: message})
}

// texts makes each message once, when the first cluster needs it.
type texts struct {
	in          *Input
	plan        *Plan
	unavailable string
	surge       string
	stopped     string
}

func (t *texts) of(r Reason) string {
	switch r {
	case HeldMaxUnavailable:
		return once(&t.unavailable, t.maxUnavailable)
	case HeldMaxSurge:
		return once(&t.surge, t.maxSurge)
	case HeldStopped:
		return once(&t.stopped, t.stop)
	}
	return "the cluster is unreachable: it is left as it is until it answers"
}

func once(text *string, write func() string) string {
	if *text == "" {
		*text = write()
	}
	return *text
}

func (t *texts) maxUnavailable() string {
	b := t.plan.Budget
	unavailable, _ := t.in.shares()
	text := limit("maxUnavailable", unavailable, b.Target, b.MaxUnavailable)
	if b.MaxUnavailable == 0 && b.MaxSurge == 0 {
		return text + ", and maxSurge is zero too: nothing can move until one of them is raised"
	}
	text += fmt.Sprintf(" leaves no room: %d of %d wanted clusters are available", b.Ready, b.Target)
	if b.Excused > 0 {
		text += fmt.Sprintf(", not counting %d unreachable", b.Excused)
	}
	return text
}

func (t *texts) maxSurge() string {
	b := t.plan.Budget
	_, surge := t.in.shares()
	return fmt.Sprintf("%s leaves no room: %d clusters hold content and %d are wanted",
		limit("maxSurge", surge, b.Target, b.MaxSurge), b.CanBeReady, b.Target)
}

func (t *texts) stop() string {
	return fmt.Sprintf("stopped because the update made cluster %s unavailable: "+
		"it goes on when that cluster recovers, with a commit that changes what it gets, or when somebody resumes it", t.plan.Stopped)
}

// limit writes a share together with what it comes to.
func limit(name string, v intstr.IntOrString, of, n int) string {
	if v.Type == intstr.Int {
		return fmt.Sprintf("%s %d", name, n)
	}
	return fmt.Sprintf("%s %s of %d = %d", name, v.StrVal, of, n)
}
