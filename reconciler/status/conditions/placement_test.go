package conditions

import (
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// The condition Scheduled says why nothing could be decided, or how many clusters were found.
func TestScheduledCondition(t *testing.T) {
	tests := map[string]struct {
		change func(p *plan.Placement)
		want   string
	}{
		"nothing is decided yet": {func(p *plan.Placement) { p.Pending = true }, "Unknown SchedulePending: Scheduling has not completed"},
		"planning panicked":      {func(p *plan.Placement) { p.InternalError = "index out of range" }, "False SchedulingFailed: An internal error kept the placement from being decided; it keeps what it holds. The log has the details"},
		"the selectors are invalid": {func(p *plan.Placement) { p.Selection.Invalid = "the kind Foo is not known" },
			"False InvalidResourceSelectors: the kind Foo is not known"},
		"a panic outranks invalid selectors": {func(p *plan.Placement) { p.InternalError, p.Selection.Invalid = "x", "y" },
			"False SchedulingFailed: An internal error kept the placement from being decided; it keeps what it holds. The log has the details"},
		"all clusters are found": {func(p *plan.Placement) { p.Schedule = placement.Outcome{Fulfilled: true, Found: 2, Wanted: 2} },
			"True SchedulingPolicyFulfilled: found all cluster needed as specified by the scheduling policy, found 2 cluster(s)"},
		"a cluster is missing": {func(p *plan.Placement) { p.Schedule = placement.Outcome{Found: 2, Wanted: 3} },
			"False SchedulingPolicyUnfulfilled: could not find all clusters needed as specified by the scheduling policy, found 2 cluster(s) instead"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := &plan.Placement{}
			test.change(p)
			if v := Scheduled(p); string(v.Status)+" "+v.Reason+": "+v.Message != test.want {
				t.Errorf("got  %s %s: %s\nwant %s", v.Status, v.Reason, v.Message, test.want)
			}
		})
	}
}

// The reason and the message of each aggregated condition, with the number of clusters.
func TestAggregatedConditions(t *testing.T) {
	overridden := &plan.Placement{Clusters: []*plan.OnCluster{{Content: &work.Rendered{}}, {Content: &work.Rendered{Overrides: []api.NamespacedName{{Name: "x"}}}}}}
	for typ, want := range map[string][3]string{
		api.RolloutStarted: {
			"Unknown RolloutStartedUnknown: There are still 2 cluster(s) in the process of deciding whether to roll out the latest resources or not",
			"False RolloutNotStartedYet: The rollout is being blocked by the rollout strategy in 2 cluster(s)",
			"True RolloutStarted: All 2 cluster(s) start rolling out the latest resource",
		},
		api.Overridden: {
			"Unknown OverriddenPending: There are still 2 cluster(s) in the process of overriding the selected resources if there is any override defined",
			"False OverriddenFailed: Failed to override resources in 2 cluster(s)",
			"True OverriddenSucceeded: The selected resources are successfully overridden in 2 cluster(s)",
		},
		api.WorkSynchronized: {
			"Unknown WorkSynchronizedUnknown: There are still 2 cluster(s) in the process of creating or updating the work object(s) in the hub cluster",
			"False WorkNotSynchronizedYet: There are 2 cluster(s) which have not finished creating or updating work(s) yet",
			"True WorkSynchronized: Work(s) are successfully created or updated in 2 target cluster(s)' namespaces",
		},
		api.Applied: {
			"Unknown ApplyPending: There are still 2 cluster(s) in the process of applying the resources on the member cluster",
			"False ApplyFailed: Failed to apply resources to 2 cluster(s), please check the `failedPlacements` status",
			"True ApplySucceeded: The selected resources are successfully applied to 2 cluster(s)",
		},
		api.Available: {
			"Unknown ResourceAvailableUnknown: There are still 2 cluster(s) in the process of checking the availability of the selected resources",
			"False ResourceNotAvailableYet: The selected resources in 2 cluster(s) are still not available yet",
			"True ResourceAvailable: The selected resources in 2 cluster(s) are available now",
		},
		api.DiffReported: {
			"Unknown DiffReportingPending: There are still 2 cluster(s) in the process of checking for configuration differences",
			"False DiffReportingIncompleteOrFailed: Diff reporting in 2 clusters is still in progress or has failed",
			"True DiffReportingCompleted: Diff reporting in 2 cluster(s) has been completed",
		},
	} {
		for i, n := range []Counts{{True: 1, False: 1, Unknown: 2}, {True: 1, False: 2}, {True: 2}} {
			if v := Aggregate(overridden, typ, n); string(v.Status)+" "+v.Reason+": "+v.Message != want[i] {
				t.Errorf("%s of %+v: %s %s: %s", typ, n, v.Status, v.Reason, v.Message)
			}
		}
	}
	if v := Aggregate(&plan.Placement{}, api.Overridden, Counts{True: 2}); v != (True(api.NoOverrideSpecified, noOverrideText)) {
		t.Errorf("without overrides: %+v", v)
	}
}
