package status

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
)

// progress returns the status of a cluster on which all conditions up to name are true, except
// that the last one has the given status.
func progress(name, last string, status metav1.ConditionStatus) api.PerClusterPlacementStatus {
	s := api.PerClusterPlacementStatus{ClusterName: name}
	for _, typ := range []string{api.Scheduled, api.RolloutStarted, api.Overridden, api.WorkSynchronized, api.Applied, api.Available} {
		if typ == last {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: typ, Status: status})
			break
		}
		s.Conditions = append(s.Conditions, metav1.Condition{Type: typ, Status: metav1.ConditionTrue})
	}
	return s
}

// The conditions of a placement aggregate those of its clusters, up to the first that is not
// true. Unknown takes precedence over false, and later conditions are not set.
func TestPlacementConditionsAggregateThoseOfClusters(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	fine := func(name string) api.PerClusterPlacementStatus { return progress(name, api.Available, yes) }
	nameless := api.PerClusterPlacementStatus{Conditions: []metav1.Condition{{Type: api.Scheduled, Status: no}}}
	tests := map[string]struct {
		clusters []api.PerClusterPlacementStatus
		schedule placement.Outcome
		want     string
	}{
		"all true": {
			[]api.PerClusterPlacementStatus{fine("a"), fine("b")}, placement.Outcome{Fulfilled: true, Found: 2},
			"Scheduled=True(2) RolloutStarted=True(2) Overridden=True WorkSynchronized=True(2) Applied=True(2) Available=True(2)",
		},
		"one not applied": {
			[]api.PerClusterPlacementStatus{fine("a"), progress("b", api.Applied, no)}, placement.Outcome{Fulfilled: true, Found: 2},
			"Scheduled=True(2) RolloutStarted=True(2) Overridden=True WorkSynchronized=True(2) Applied=False(1)",
		},
		"one blocked, one not applied": {
			[]api.PerClusterPlacementStatus{progress("a", api.RolloutStarted, no), progress("b", api.Applied, no)}, placement.Outcome{Fulfilled: true, Found: 2},
			"Scheduled=True(2) RolloutStarted=False(1)",
		},
		"one not synchronized yet, one not overridden": {
			[]api.PerClusterPlacementStatus{progress("a", api.WorkSynchronized, unknown), progress("b", api.Overridden, no)}, placement.Outcome{Fulfilled: true, Found: 2},
			"Scheduled=True(2) RolloutStarted=True(2) Overridden=False(1)",
		},
		"one just picked": {
			[]api.PerClusterPlacementStatus{fine("a"), progress("b", api.RolloutStarted, unknown)}, placement.Outcome{Fulfilled: true, Found: 2},
			"Scheduled=True(2) RolloutStarted=Unknown(1)",
		},
		"unknown outranks false": {
			[]api.PerClusterPlacementStatus{progress("a", api.Applied, no), progress("b", api.Applied, unknown), progress("c", api.Applied, no)}, placement.Outcome{Fulfilled: true, Found: 3},
			"Scheduled=True(3) RolloutStarted=True(3) Overridden=True WorkSynchronized=True(3) Applied=Unknown(1)",
		},
		"two of three": {
			[]api.PerClusterPlacementStatus{fine("a"), fine("b"), nameless}, placement.Outcome{Found: 2, Wanted: 3},
			"Scheduled=False(2) RolloutStarted=True(2) Overridden=True WorkSynchronized=True(2) Applied=True(2) Available=True(2)",
		},
		"one and a ghost": {
			[]api.PerClusterPlacementStatus{fine("a"), nameless}, placement.Outcome{Found: 1, Wanted: 2},
			"Scheduled=False(1) RolloutStarted=True(1) Overridden=True WorkSynchronized=True(1) Applied=True(1) Available=True(1)",
		},
		"no member": {
			nil, placement.Outcome{Fulfilled: true},
			"Scheduled=True(0)",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := &builder{in: Input{Now: time.Unix(1, 0)}, p: &plan.Placement{Spec: &hub.Placement{}, Schedule: test.schedule}}
			b.lines = sharedlist.List[line]{}.Edit(len(test.clusters))
			for i, c := range test.clusters {
				b.lines.Set(i, line{statuses: statusesOf(c.Conditions)})
			}
			var got []string
			for _, c := range b.conditions(&api.PlacementStatus{}) {
				got = append(got, strings.TrimPrefix(c.Type, api.PlacementPrefix)+"="+string(c.Status)+number(c.Message))
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("got  %s\nwant %s", text, test.want)
			}
		})
	}
}

// number returns the number in a message.
func number(message string) string {
	for word := range strings.FieldsSeq(message) {
		var n int
		if _, err := fmt.Sscanf(word, "%d", &n); err == nil {
			return fmt.Sprintf("(%d)", n)
		}
	}
	return ""
}

// A placement that only reports differences never has the condition Applied, and vice versa.
func TestReportDiffHasItsOwnConditions(t *testing.T) {
	for _, typ := range []api.ApplyStrategyType{api.ClientSideApply, api.ServerSideApply, api.ReportDiff} {
		spec := &hub.Placement{Spec: api.PlacementSpec{Strategy: api.RolloutStrategy{ApplyStrategy: &api.ApplyStrategy{Type: typ}}}}
		b := &builder{p: &plan.Placement{Spec: spec}}
		got, want := strings.Join(b.expected(), " "), "RolloutStarted Overridden WorkSynchronized Applied Available"
		if typ == api.ReportDiff {
			want = "RolloutStarted Overridden WorkSynchronized DiffReported"
		}
		if got != want {
			t.Errorf("%s: %s", typ, got)
		}
	}
}

// The first condition that is not true is the reason that is shown; with types, only those count.
func TestFirstUntrueCondition(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	of := func(statuses ...metav1.ConditionStatus) (out []metav1.Condition) {
		for i, typ := range []string{api.Scheduled, api.RolloutStarted, api.Applied}[:len(statuses)] {
			out = append(out, metav1.Condition{Type: api.PlacementPrefix + typ, Status: statuses[i]})
		}
		return out
	}
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		types      []string
		want       string
	}{
		"none":                   {nil, nil, ""},
		"all are true":           {of(yes, yes, yes), nil, ""},
		"one is false":           {of(yes, yes, no), nil, api.Applied},
		"an unknown comes first": {of(yes, unknown, no), nil, api.RolloutStarted},
		"of a type":              {of(no, unknown, no), []string{api.Applied}, api.Applied},
		"of two types":           {of(no, unknown, no), []string{api.Applied, api.RolloutStarted}, api.RolloutStarted},
		"not of a type":          {of(yes, unknown), []string{api.Scheduled}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if c := FirstUntrue(test.conditions, test.types...); c != nil {
				got = strings.TrimPrefix(c.Type, api.PlacementPrefix)
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
