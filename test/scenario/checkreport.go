// Package scenario runs scenes of a fleet in virtual time: the real loop, with simulated
// members and a simulated repository.
package scenario

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// CheckReport checks the invariants of every report: whatever is not healthy has a reason and a
// time, a waiting cluster names what it waits for, and redundant parts agree.
func CheckReport(t testing.TB, r *status.Report) {
	t.Helper()
	s := reportCheck{t: t, names: map[string]bool{}}
	for _, d := range r.Details {
		for _, c := range d.Clusters {
			s.names[c.Cluster] = true
		}
	}
	for _, p := range r.Placements {
		s.status(p.Name, api.PlacementPrefix, &p.Status)
	}
	for _, p := range r.ResourcePlacements {
		s.status(p.Namespace+"/"+p.Name, api.ResourcePlacementPrefix, &p.Status)
	}
	for _, m := range r.PlacementStatuses {
		s.conditions(m.Namespace+"/"+m.Name, m.SourceStatus.Conditions...)
	}
	for _, c := range r.Clusters {
		s.conditions(c.Name, c.Status.Conditions...)
		for _, a := range c.Status.AgentStatus {
			s.conditions(c.Name+" agent", a.Conditions...)
		}
	}
	s.events(r.Events)
}

// A reportCheck checks one report.
type reportCheck struct {
	t     testing.TB
	names map[string]bool // of all clusters with placements
}

func (s *reportCheck) status(name, prefix string, of *api.PlacementStatus) {
	s.t.Helper()
	s.conditions(name, of.Conditions...)
	if len(of.Conditions) == 0 || of.Conditions[0].Type != prefix+api.Scheduled {
		s.t.Errorf("%s: it is not said whether it is scheduled", name)
	}
	for i := range of.PlacementStatuses {
		c := &of.PlacementStatuses[i]
		on := fmt.Sprintf("%s on %q", name, c.ClusterName)
		s.conditions(on, c.Conditions...)
		s.waiting(on, c)
		s.objects(on, c)
	}
	for _, typ := range []string{api.RolloutStarted, api.Overridden, api.WorkSynchronized, api.Applied, api.Available, api.DiffReported} {
		s.aggregate(name, typ, meta.FindStatusCondition(of.Conditions, prefix+typ), of.PlacementStatuses)
	}
}

func (s *reportCheck) conditions(of string, conditions ...metav1.Condition) {
	s.t.Helper()
	seen := map[string]bool{}
	for _, c := range conditions {
		switch {
		case seen[c.Type]:
			s.t.Errorf("%s: condition %s occurs twice", of, c.Type)
		case c.Message == "":
			s.t.Errorf("%s: %s is %s and does not say why", of, c.Type, c.Status)
		case c.Reason == "":
			s.t.Errorf("%s: %s is %s without a reason", of, c.Type, c.Status)
		case c.LastTransitionTime.IsZero():
			s.t.Errorf("%s: %s is %s since nobody knows when", of, c.Type, c.Status)
		}
		seen[c.Type] = true
	}
}

// waiting checks that a waiting cluster says what for, and names the clusters it waits for.
func (s *reportCheck) waiting(on string, c *api.PerClusterPlacementStatus) {
	s.t.Helper()
	started := meta.FindStatusCondition(c.Conditions, api.RolloutStarted)
	if started == nil || started.Status != metav1.ConditionFalse {
		return
	}
	_, why, said := strings.Cut(started.Message, "The rollout is being blocked by the rollout strategy: ")
	if !said || why == "" {
		s.t.Errorf("%s: waits, and does not say for what: %q", on, started.Message)
	}
	_, whom, waits := strings.Cut(why, "waits for ")
	if !waits || strings.HasPrefix(whom, "one of the clusters") || strings.Contains(whom, "(it is no longer selected)") {
		return
	}
	word := strings.FieldsFunc(whom, func(r rune) bool { return r == ' ' || r == ',' })
	if !s.names[word[0]] && !(len(word) > 1 && s.names[word[1]]) && !strings.Contains(whom, "more to be available") {
		s.t.Errorf("%s: waits for nobody that exists: %q", on, why)
	}
}

// objects checks that objects are listed as failed if and only if a condition says so.
func (s *reportCheck) objects(on string, c *api.PerClusterPlacementStatus) {
	s.t.Helper()
	for _, f := range c.FailedPlacements {
		s.conditions(on+": "+f.Kind+" "+f.Name, f.Condition)
		if f.Condition.Status != metav1.ConditionFalse {
			s.t.Errorf("%s: %s %s is listed as failed and is not", on, f.Kind, f.Name)
		}
	}
	for _, typ := range []string{api.Applied, api.Available} {
		if v := meta.FindStatusCondition(c.Conditions, typ); v != nil && v.Status == metav1.ConditionFalse && v.Reason != api.ApplyInProgress && len(c.FailedPlacements) == 0 {
			s.t.Errorf("%s: %s is False, and nothing is listed that failed", on, typ)
		}
	}
	for _, d := range c.DriftedPlacements {
		if len(d.ObservedDrifts) == 0 || d.ObservationTime.IsZero() || d.FirstDriftedObservedTime.IsZero() {
			s.t.Errorf("%s: %s %s drifted, and it is not said how and since when", on, d.Kind, d.Name)
		}
	}
	for _, d := range c.DiffedPlacements {
		if len(d.ObservedDiffs) == 0 || d.ObservationTime.IsZero() || d.FirstDiffedObservedTime.IsZero() {
			s.t.Errorf("%s: %s %s differs, and it is not said how and since when", on, d.Kind, d.Name)
		}
	}
}

// aggregate checks that a condition of the placement is the aggregate of those of its clusters.
func (s *reportCheck) aggregate(name, typ string, c *metav1.Condition, clusters []api.PerClusterPlacementStatus) {
	s.t.Helper()
	if c == nil || c.Reason == api.RolloutControlledByExternalController {
		return
	}
	want := metav1.ConditionTrue
	for i := range clusters {
		on := meta.FindStatusCondition(clusters[i].Conditions, typ)
		switch {
		case on == nil || on.Status == metav1.ConditionTrue:
		case on.Status == metav1.ConditionUnknown:
			want = on.Status
		case want == metav1.ConditionTrue:
			want = on.Status
		}
	}
	if c.Status != want {
		s.t.Errorf("%s: %s is %s, and by its clusters %s", name, typ, c.Status, want)
	}
}

// events checks that events are in order and unique, and name their object.
func (s *reportCheck) events(events []status.Event) {
	s.t.Helper()
	seen := make(map[status.EventKey]bool, len(events))
	for i := range events {
		e := &events[i]
		switch {
		case seen[e.Key()]:
			s.t.Errorf("listed twice: %+v", e)
		case i > 0 && e.Last.Before(events[i-1].Last):
			s.t.Errorf("out of order: %+v", e)
		case e.Count < 1 || e.Last.Before(e.First) || e.First.IsZero():
			s.t.Errorf("it cannot have happened: %+v", e)
		case e.APIVersion == "" || e.Kind == "" || e.Name == "" || e.Type == "" || e.Reason == "" || e.Message == "":
			s.t.Errorf("it does not say what happened to what: %+v", e)
		}
		seen[e.Key()] = true
	}
}
