package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
)

// cluster returns the status of the placement on the cluster at a position of the plan.
func (b *builder) cluster(at int, d placement.Decision, index string) api.PerClusterPlacementStatus {
	on := b.onCluster(b.p.Clusters[at])
	s := api.PerClusterPlacementStatus{ClusterName: on.Binding.Cluster, ObservedResourceIndex: index}
	if b.external() {
		s.ObservedResourceIndex = conditions.IndexOn(b.p, b.p.Clusters[at])
	}
	set := b.newConditionSet(s.ClusterName, at)
	set.add(api.Scheduled, conditions.True(api.ScheduledReason, d.Reason))
	for _, typ := range b.expected() {
		v := on.Condition(typ)
		set.add(typ, v)
		if v.Status != metav1.ConditionTrue {
			break
		}
		if typ == api.RolloutStarted {
			s.ApplicableClusterResourceOverrides = on.Content.ClusterOverrides
			s.ApplicableResourceOverrides = on.Content.Overrides
		}
	}
	b.documentedOn(&set)
	if v, blocked := conditions.DeletionsBlocked(b.p, on.OnCluster); blocked {
		set.add(api.DeletionsBlocked, v)
	}
	s.Conditions = b.finish(set, s.ClusterName)
	on.AddObjects(&s)
	return s
}

// bareDetail returns the details of a cluster without the texts about its objects, and the deletions that are blocked.
func bareDetail(p *plan.Placement, c *plan.OnCluster) (e ClusterDetail, blocked []protocol.BlockedDeletion) {
	lag := p.Lag(c)
	e = ClusterDetail{
		Cluster: c.Binding.Cluster, Commit: c.Binding.Assigned.Commit, Behind: lag.Commits, BehindSince: lag.Since,
		Failure: c.Unusual().Failure, Waits: c.Waits, Suspended: c.Unusual().Suspended, Removing: c.Binding.Removing,
	}
	if c.Deferred {
		e.Deferral = &Deferral{c.DeferredUntil(), c.Overdue}
	}
	seen := c.LastKnown()
	if seen == nil {
		return e, nil
	}
	ours := c.Unusual().Refusal == ""
	e.Applied, e.Available, e.Objects = ours && seen.Applied(), ours && seen.Available(), seen.Total
	e.Progressing = ours && seen.Done && !e.Available && c.Unusual().Failure == "" && seen.Failed() == nil
	e.FailedObjects = seen.FailedObjects()
	blocked, pending := c.BlockedDeletions()
	if pending {
		e.Deleting, blocked = len(blocked), nil
	}
	return e, blocked
}

// clusterDetail returns the details of a cluster.
func (b *builder) clusterDetail(c *plan.OnCluster) ClusterDetail {
	p := b.p
	e, blocked := bareDetail(p, c)
	seen := c.LastKnown()
	if seen == nil {
		return e
	}
	if p.Spec != nil {
		e.Cause = b.onCluster(c).Cause()
	}
	e.Failure = conditions.FailureText(c.Unusual().Failure, seen)
	for _, b := range blocked {
		e.BlockedDeletions = append(e.BlockedDeletions, b.ID.String()+": "+b.Why)
	}
	undeleted := seen.Unusual()
	for _, f := range undeleted.DeletionErrors {
		e.DeletionErrors = append(e.DeletionErrors, f.ID.String()+": "+f.Message)
	}
	for _, id := range undeleted.Lingering {
		e.Lingering = append(e.Lingering, lingeringText(undeleted, id))
	}
	for _, w := range undeleted.Waiting {
		e.Lingering = append(e.Lingering, waitingText(p.Key, w))
	}
	return e
}

// lingeringText describes an object that was deleted and still exists: since when, and why.
func lingeringText(of protocol.Incidents, id api.ID) string {
	var notes []string
	at := slices.IndexFunc(of.Terminating, func(t protocol.Terminating) bool { return t.ID == id })
	if at >= 0 {
		notes = append(notes, "since "+of.Terminating[at].Since.UTC().Format(time.RFC3339))
	}
	if i := slices.IndexFunc(of.Finalizing, func(f protocol.Finalizing) bool { return f.ID == id }); i >= 0 {
		notes = append(notes, "finalizers: "+of.Finalizing[i].Finalizers)
	}
	if slices.Contains(of.Collecting, id) {
		notes = append(notes, "until the garbage collector has deleted what was made of it")
	}
	if at >= 0 && of.Terminating[at].Why != "" {
		notes = append(notes, of.Terminating[at].Why)
	}
	if len(notes) == 0 {
		return id.String()
	}
	return id.String() + " (" + strings.Join(notes, "; ") + ")"
}

// waitingText describes objects that are not deleted yet.
func waitingText(placement api.PlacementKey, w protocol.DeletionWait) string {
	first := w.For.String()
	if w.Of != placement {
		first += " of " + w.Of.String()
	}
	if w.Objects == 1 {
		return fmt.Sprintf("%s (not deleted before %s is gone)", w.Example, first)
	}
	return fmt.Sprintf("%s and %d more (not deleted before %s is gone)", w.Example, w.Objects-1, first)
}
