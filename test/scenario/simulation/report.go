package simulation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/scenario"
)

// The invariants of reports.
const (
	invariantSound      = "every unhealthy condition has a reason and a time"
	invariantWaitReason = "a waiting cluster says what it waits for"
	invariantInternal   = "planning never panics"
)

// checkReport checks a report.
func (w *world) checkReport(r *status.Report) {
	recorder := &recordingTB{TB: w.t}
	if scenario.CheckReport(recorder, r); len(recorder.errors) > 0 {
		w.violate(invariantSound, "%s", strings.Join(recorder.errors, "; "))
	}
	head := w.source.commits[r.Source.InForce.Hash]
	if head == nil {
		return
	}
	for _, d := range r.Details {
		w.checkDetail(d, head, r)
	}
}

func (w *world) checkDetail(d *status.Detail, head *commit, r *status.Report) {
	if d.Internal != "" {
		w.violate(invariantInternal, "%s: %s", d.Placement, d.Internal)
	}
	name := strings.TrimPrefix(d.Placement, "crp/")
	p, ok := head.placements[name]
	if !ok || p.invalid {
		return
	}
	for _, c := range d.Clusters {
		w.checkResumed(bindingKey{api.PlacementKey{Name: name}, c.Cluster}, c.Waits)
		if c.Removing || c.Waits != "" || len(head.content(name, c.Cluster)) == 0 {
			continue
		}
		at := bindingKey{api.PlacementKey{Name: name}, c.Cluster}
		b, _ := w.decided.binding(at)
		if b.Unscheduled {
			w.violate(invariantWaitReason, "%s is to leave %s, and does not say so", d.Placement, c.Cluster)
		}
		if b.AssignedAt.Equal(r.At) {
			continue // it was assigned just now
		}
		then := w.source.commits[c.Commit]
		if then == nil || !sameContent(w.content(b.Assigned, at), head.content(name, c.Cluster)) && !w.relabelled(then, head, c.Cluster) {
			w.violate(invariantWaitReason, "%s on %s is at %q, which is not the newest, and does not say why", d.Placement, c.Cluster, c.Commit)
		}
	}
}

// relabelled reports whether the labels of a cluster have changed since, so that the commit
// would now render other content.
func (w *world) relabelled(then, head *commit, cluster string) bool {
	return then.clusters[cluster].region != head.clusters[cluster].region
}

// A recordingTB records the failures of a check, without failing the test.
type recordingTB struct {
	testing.TB
	errors []string
}

// Helper does nothing.
func (*recordingTB) Helper() {}

// Errorf records a failure.
func (e *recordingTB) Errorf(format string, args ...any) {
	e.errors = append(e.errors, fmt.Sprintf(format, args...))
}
