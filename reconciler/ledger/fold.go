package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/conversion"

	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// equalities compares values deeply; a nil and an empty list are equal.
var equalities = conversion.EqualitiesOrDie(time.Time.Equal)

// Fold adds an observation, and reports whether anything has changed that matters to a plan or
// a report. It drops outdated observations, and those about a placement that does not hold the
// cluster. Fold is idempotent.
func (l *Ledger) Fold(o protocol.Observation) bool {
	switch o := o.(type) {
	case protocol.ClusterSeen:
		return foldCluster(l, o)
	case protocol.WorkSeen:
		return foldWork(l, o)
	}
	return false
}

func foldCluster(l *Ledger, o protocol.ClusterSeen) bool {
	old := l.clusters[o.Cluster]
	if old != nil && o.At.Before(old.At) {
		return false
	}
	next := Cluster{ClusterSeen: o, Since: o.At}
	if len(o.Forbidden) > 0 {
		next.ForbiddenSince = o.At
		if old != nil && len(old.Forbidden) > 0 {
			next.ForbiddenSince = old.ForbiddenSince
		}
	}
	if o.Unrenewed != "" {
		next.UnrenewedSince = o.At
		if old != nil && old.Unrenewed != "" {
			next.UnrenewedSince = old.UnrenewedSince
		}
	}
	if o.Properties != nil {
		next.Observed = o.At
	}
	if old != nil {
		next.carryOver(old)
	}
	if o.Healthy {
		next.LastSeen = o.At
		if next.Joined.IsZero() {
			next.Joined = o.At
		}
	}
	if o.Owners != nil {
		l.findRivals(&next)
	}
	if old != nil && len(old.Rivals) > 0 && len(next.Rivals) == 0 {
		disturb(l, Subject{Cluster: o.Cluster}, o.At)
	}
	if next.UID != "" && (old == nil || old.UID != next.UID) {
		next.Identified = o.At
	}
	changed := old == nil || !next.equals(old)
	if changed {
		next.version = l.next()
	}
	l.putCluster(&next)
	rebuilt := l.rebuild(&next)
	l.markUnsaved(clusterKey(o.Cluster))
	return rebuilt || changed
}

// carryOver copies the facts that this observation did not read from the previous one.
func (c *Cluster) carryOver(old *Cluster) {
	c.LastSeen, c.Joined, c.Identified, c.version = old.LastSeen, old.Joined, old.Identified, old.version
	if c.Healthy == old.Healthy {
		c.Since = old.Since
	}
	if c.Properties == nil {
		c.Observed = old.Observed
	}
	if c.Owners == nil {
		c.Rivals = old.Rivals
	}
	c.ClusterSeen = c.After(old.ClusterSeen)
}

// equals reports whether two records of a cluster are equal except for the time of observation.
func (c *Cluster) equals(o *Cluster) bool {
	return c.Healthy == o.Healthy && c.Error == o.Error && c.Unrenewed == o.Unrenewed && c.Unread == o.Unread && slices.Equal(c.Forbidden, o.Forbidden) &&
		c.UID == o.UID && c.Claimant == o.Claimant && c.Joined.Equal(o.Joined) && maps.Equal(c.Properties, o.Properties) && slices.Equal(c.Owners, o.Owners) && c.Restored.Equal(o.Restored) &&
		slices.Equal(c.Rivals, o.Rivals) && (c.Namespaces == nil) == (o.Namespaces == nil) && slices.Equal(c.Namespaces, o.Namespaces)
}

func foldWork(l *Ledger, o protocol.WorkSeen) bool {
	p := l.placements[o.Placement]
	if p == nil {
		return false
	}
	e := p.entries.of(o.Cluster)
	if e == nil || e.Seen != nil && o.At.Before(e.SeenAt()) {
		return false
	}
	if o.Removed && !e.Binding.Removing {
		return false // from an earlier removal; the placement exists again
	}
	known := e.Seen
	if o.Done {
		known = cmp.Or(e.CompleteOf(&e.Binding), known)
	}
	next, seen := *e, withTimes(o, known)
	next.Seen, next.inventory = p.entries.share(&seen), o.Inventory
	next.setTime(SeenAt, o.At)
	assigned := o.Revision.Hash == e.Binding.Assigned.Hash
	switch {
	case !assigned || o.Compared || !o.Available():
		next.times[AvailableSince] = 0
	default:
		next.setFirst(AvailableSince, o.At)
	}
	if assigned && !o.At.Before(e.Binding.AssignedAt) {
		next.recordProgress(o, e.lastComplete(&e.Binding))
	}
	next.setFirst(ReportedSince, o.At)
	// The first report about an assignment, or after the cluster was unreachable, is news whatever it says: content may
	// count as failed for a reason that the member does not know, and is replaced only after the member has reported.
	since := e.Binding.AssignedAt
	if back := healthSince(l, o.Cluster); back.After(since) && !o.At.Before(back) {
		since = back
	}
	confirmed := e.Reported() && e.Seen != nil && !e.SeenAt().Before(since)
	if key := entryKey(o.Placement, o.Cluster); len(e.drifts())+len(o.Unusual().Drifts) == 0 || equalities.DeepEqual(e.drifts(), o.Unusual().Drifts) {
		l.markUnsaved(key)
	} else {
		l.markUrgent(key) // the stored observation would not show a reverted drift
	}
	if confirmed && len(o.Unusual().Deletions) == 0 && next.times[AvailableSince] == e.times[AvailableSince] && next.inventory == e.inventory && next.Unusual().Writing == e.Unusual().Writing && sameWork(next.Seen, e.Seen) {
		p.entries.put(&next) // a repeated report without a visible change
		return false
	}
	l.setEntry(p, o.Cluster, &next)
	return true
}

// healthSince returns when the health of a cluster last changed; zero if it is not known.
func healthSince(l *Ledger, cluster string) time.Time {
	if c := l.clusters[cluster]; c != nil {
		return c.Since
	}
	return time.Time{}
}

// recordProgress records when the assigned revision was first observed to be applied, to be
// available, and not to be available, and whether a write may be why it is not available. complete is the last complete report
// before; nil if there is none.
func (e *Entry) recordProgress(o protocol.WorkSeen, complete *protocol.WorkState) {
	judged, in := o.WithoutSuspended(), *e.Unusual()
	if in.LastComplete = nil; !o.Done {
		in.LastComplete = complete
	}
	switch {
	case judged.Available():
		in.UnavailableSince, in.Writing = time.Time{}, false
	case o.Done && in.UnavailableSince.IsZero():
		in.UnavailableSince = o.At
	}
	in.Writing = in.Writing || o.Wrote && !judged.Available()
	e.setCircumstances(in)
	if judged.Applied() {
		e.setFirst(AppliedAt, o.At)
	}
	if judged.Available() {
		e.setFirst(AvailableAt, o.At)
	}
}

// withTimes returns the observation with a time for every verdict. If the member has not sent
// one, it is the time of the first in a row of observations with the same verdict. old is what was known before.
func withTimes(seen protocol.WorkSeen, old *protocol.WorkState) protocol.WorkState {
	w := seen.WorkState
	w.Exceptions = slices.Clone(w.Exceptions)
	for i := range w.Exceptions {
		o := &w.Exceptions[i]
		was := old.Object(o.ID)
		setSince(&o.Applied, was.Applied, seen.At)
		if !o.Applied.OK {
			continue
		}
		if !was.Applied.OK {
			was.Available = protocol.Verdict{OK: true} // it was not an exception
		}
		setSince(&o.Available, was.Available, seen.At)
	}
	return w
}

func setSince(v *protocol.Verdict, was protocol.Verdict, at time.Time) {
	switch {
	case !v.Since.IsZero() || v.OK:
	case !was.OK && !was.Since.IsZero():
		v.Since = was.Since
	default:
		v.Since = at
	}
}

// sameWork reports whether two observations of a work are equal except for their deletions.
func sameWork(w, o *protocol.WorkState) bool {
	if w == o {
		return true
	}
	now, was, same := w.Unusual(), o.Unusual(), *w
	now.Deletions, same.Incidents = was.Deletions, o.Incidents
	return equalities.DeepEqual(same, *o) && equalities.DeepEqual(now, was)
}
