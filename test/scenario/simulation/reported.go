package simulation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/scenario"
)

// The laws of what people are told, as they are broken.
const (
	lawSound    = "whatever is not well says why, and since when"
	lawHeld     = "a cluster that waits says what for"
	lawInternal = "nothing is too much to think about"
)

// checkReport checks a report.
func (w *world) checkReport(r *status.Report) {
	recorder := &recordingTB{TB: w.t}
	if scenario.Sound(recorder, r); len(recorder.heard) > 0 {
		w.breaks(lawSound, "%s", strings.Join(recorder.heard, "; "))
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
		w.breaks(lawInternal, "%s: %s", d.Placement, d.Internal)
	}
	name := strings.TrimPrefix(d.Placement, "crp/")
	p, ok := head.places[name]
	if !ok || p.invalid {
		return
	}
	for _, c := range d.Clusters {
		w.checkGoesOn(bindingKey{api.PlacementKey{Name: name}, c.Cluster}, c.Held)
		if c.Removing || c.Held != "" || len(head.gives(name, c.Cluster)) == 0 {
			continue
		}
		at := bindingKey{api.PlacementKey{Name: name}, c.Cluster}
		b, _ := w.decided.binding(at)
		if b.Unscheduled {
			w.breaks(lawHeld, "%s is to go from %s, and says nothing", d.Placement, c.Cluster)
		}
		if b.AssignedAt.Equal(r.At) {
			continue // it was given something just now
		}
		then := w.source.commits[c.Commit]
		if then == nil || !sameContent(w.content(b.Assigned, at), head.gives(name, c.Cluster)) && !w.relabelled(then, head, c.Cluster) {
			w.breaks(lawHeld, "%s on %s is at %q, which is not the newest, and says nothing", d.Placement, c.Cluster, c.Commit)
		}
	}
}

// relabelled reports whether the labels of a cluster have changed since, so that the commit
// would now give it other content.
func (w *world) relabelled(then, head *commit, cluster string) bool {
	return then.clusters[cluster].region != head.clusters[cluster].region
}

// A recordingTB records the failures of a check, and fails no test.
type recordingTB struct {
	testing.TB
	heard []string
}

// Helper is of no account here.
func (*recordingTB) Helper() {}

// Errorf hears of something that is wrong.
func (e *recordingTB) Errorf(format string, args ...any) {
	e.heard = append(e.heard, fmt.Sprintf(format, args...))
}
