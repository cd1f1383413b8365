package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The reasons for which a cluster waits.
const (
	// waitsMaxUnavailable: updating it would leave too few clusters available.
	waitsMaxUnavailable reason = "MaxUnavailable"
	// waitsMaxSurge: too many clusters hold content.
	waitsMaxSurge reason = "MaxSurge"
	// waitsUnreachable: the cluster does not answer.
	waitsUnreachable reason = "Unreachable"
	// waitsSuspended: the cluster or placement is suspended.
	waitsSuspended reason = "Suspended"
	// waitsDeferral: new content is frozen, or its window is closed.
	waitsDeferral reason = "Deferral"
	// waitsStopped: an update failed and stopped the rollout.
	waitsStopped reason = "Stopped"
	// waitsExternal: an update run has to update it.
	waitsExternal reason = "External"
)

func (p *Plan) addWaiting(b *Target, r reason, message string) {
	p.Waiting = append(p.Waiting, Waiting{Cluster: b.Cluster, reason: r, Message: message})
}

// writeMessages fills in the messages of waiting clusters, each once: most clusters wait for the
// same.
func (in *Input) writeMessages(p *Plan) {
	messages := map[reason]string{}
	for i := range p.Waiting {
		w := &p.Waiting[i]
		if w.Message != "" {
			continue
		}
		if messages[w.reason] == "" {
			messages[w.reason] = in.message(w.reason, p)
		}
		w.Message = messages[w.reason]
		if b := in.target(w.Cluster); w.reason == waitsMaxUnavailable && b.knownUnavailable() {
			w.Message += in.unavailableHint(b)
		}
	}
}

// unavailableHint says why an unavailable cluster is not updated or removed outside of the budget.
func (in *Input) unavailableHint(b *Target) string {
	move := "updated"
	if b.Unscheduled {
		move = "removed"
	}
	at := b.outsideBudgetAt(in)
	switch {
	case b.isOutsideBudget(in): // it is removed once no selected cluster can move
		return ""
	case at.IsZero():
		return "; it is unavailable too, and not " + move + " outside of the budget before it has reported again"
	case at.After(b.Seen.DownSince.Add(in.RepairAfter)):
		return "; it is unavailable too, which gitfleet's last write there may have caused, and not " + move + " outside of the budget while that is in progress"
	}
	return fmt.Sprintf("; it is unavailable too, since %s, and %s outside of the budget after %s (rollout.repairAfter)",
		b.Seen.DownSince.UTC().Format(time.RFC3339), move, duration.HumanDuration(in.RepairAfter))
}

func (in *Input) message(r reason, p *Plan) string {
	unavailable, surge := in.shares()
	switch r {
	case waitsMaxUnavailable:
		return limit("maxUnavailable", unavailable, p.Budget.Target, p.Budget.MaxUnavailable) + in.maxUnavailableHint(p)
	case waitsMaxSurge:
		return limit("maxSurge", surge, p.Budget.Target, p.Budget.MaxSurge) + ": waits for " + in.leaving() + " to go"
	case waitsStopped:
		return "waits for " + in.stopMessage(p) + "; the rollout goes on when it recovers, " +
			"with a commit that changes what it gets, or with gitfleet resume --stopped --reason TEXT"
	case waitsUnreachable:
		return "the cluster is unreachable and left as it is until it answers"
	}
	panic("rollout: no message for the reason " + string(r))
}

// limit writes a percentage together with its value.
func limit(name string, v intstr.IntOrString, of, n int) string {
	if v.Type == intstr.Int {
		return fmt.Sprintf("%s %d", name, n)
	}
	return fmt.Sprintf("%s %s of %d = %d", name, v.StrVal, of, n)
}

// maxUnavailableHint says what has to happen before maxUnavailable allows another update.
func (in *Input) maxUnavailableHint(p *Plan) string {
	down, selected := in.notAvailable(p)
	short := max(p.Budget.Target-selected, 0)
	switch {
	case p.Budget.MaxUnavailable == 0 && p.Budget.MaxSurge == 0:
		return ", and maxSurge is zero too: nothing can move; raise one of them"
	case len(down) == 0 && short == 0:
		return ": no cluster may be updated while it is available; raise it"
	case len(down) == 0:
		return fmt.Sprintf(": only %d of %d wanted clusters could be selected; raise it, or want fewer", selected, p.Budget.Target)
	}
	return ": waits for " + list(down, short) + " to be available" + in.untracked(down) + in.outOfSight()
}

// outOfSight says which of the clusters waited for became unreachable or suspended during their
// update; empty if none.
func (in *Input) outOfSight() string {
	var which []string
	for i := range in.Targets {
		if b := &in.Targets[i]; b.keepsPlace(in) && !b.Unscheduled {
			which = append(which, b.Cluster)
		}
	}
	if len(which) == 0 {
		return ""
	}
	return fmt.Sprintf("; during an update, a cluster that becomes unreachable or suspended is waited for %s longer (rollout.repairAfter): %s",
		duration.HumanDuration(in.RepairAfter), list(which, 0))
}

// untracked says which of the clusters waited for become available after a time; empty if none.
func (in *Input) untracked(down []string) string {
	var which []string
	for i := range in.Targets {
		b := &in.Targets[i]
		if b.health() == Untracked && !b.blocked() && slices.Contains(down, b.Cluster) {
			which = append(which, b.Cluster)
		}
	}
	if len(which) == 0 {
		return ""
	}
	return fmt.Sprintf("; what cannot be tracked, on %s, counts as available %gs after it was applied (unavailablePeriodSeconds)",
		list(which, 0), period(in.Strategy).Seconds())
}

// notAvailable lists the selected clusters that are not available, or will not be once the plan
// is executed, and counts the selected ones.
func (in *Input) notAvailable(p *Plan) (notAvailable []string, selected int) {
	moving := map[string]bool{}
	for _, a := range p.Assign {
		moving[a.Cluster] = a.Changed
	}
	skipped := in.skipped() // not waited for
	for i := range in.Targets {
		b := &in.Targets[i]
		if b.Unscheduled {
			continue
		}
		selected++
		if !skipped[i] && (moving[b.Cluster] || !b.ready(in)) {
			notAvailable = append(notAvailable, b.Cluster)
		}
	}
	return notAvailable, selected
}

// leaving lists the clusters that hold content and are not selected.
func (in *Input) leaving() string {
	var leaving []string
	for i := range in.Targets {
		if b := &in.Targets[i]; b.HasRevision() && b.Unscheduled {
			leaving = append(leaving, b.Cluster)
		}
	}
	if leaving == nil {
		return "one of the clusters that hold content"
	}
	return list(leaving, 0)
}

// list names the first few clusters and counts the others.
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
