package view

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
	"github.com/gitfleet/gitfleet/test/reports"
)

// described returns what a function writes into a description, with single spaces.
func described(write func(s *description)) string {
	s := &description{Page: output.Page{Width: 80}, now: reports.Noon}
	write(s)
	return strings.Join(strings.Fields(s.b.String()), " ")
}

func TestPolicyText(t *testing.T) {
	for want, of := range map[string]*api.PlacementPolicy{
		"PickAll": nil, "PickFixed": {PlacementType: api.PickFixed}, "PickN 3": {PlacementType: api.PickN, NumberOfClusters: new(int32(3))}, "PickFixed east, west": {PlacementType: api.PickFixed, ClusterNames: []string{"east", "west"}},
	} {
		if got := policyText(of); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A large selection is listed in part and counted.
func TestSelectedText(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "ConfigMap/a", 10: strings.Repeat("ConfigMap/a|", 9) + "ConfigMap/a", 12: strings.Repeat("ConfigMap/a|", 10) + "and 2 more"} {
		all := make([]api.ResourceIdentifier, n)
		for i := range all {
			all[i] = api.ResourceIdentifier{Kind: "ConfigMap", Name: "a"}
		}
		if got := strings.Join(selectedText(all), "|"); got != want {
			t.Errorf("%d objects: %q, want %q", n, got, want)
		}
	}
}

// Why a cluster waits is written once: by its condition if that says so, and otherwise below it.
func TestDescribeSaysOnceWhyAClusterWaits(t *testing.T) {
	started := func(is metav1.ConditionStatus, reason, message string) *api.PlacementStatus {
		return &api.PlacementStatus{PlacementStatuses: []api.PerClusterPlacementStatus{{ClusterName: "east", Conditions: []metav1.Condition{{
			Type: api.RolloutStarted, Status: is, Reason: reason, Message: message, LastTransitionTime: reports.Ago(time.Minute),
		}}}}}
	}
	for name, test := range map[string]struct {
		status *api.PlacementStatus
		want   string
	}{
		"by its condition":        {started(metav1.ConditionFalse, api.RolloutNotStartedYet, "the rollout waits: maxUnavailable 1 reached"), "RolloutStarted False, RolloutNotStarted, for 60s the rollout waits: maxUnavailable 1 reached"},
		"of another condition":    {started(metav1.ConditionTrue, api.RolloutStartedReason, "it has started"), "east waiting maxUnavailable 1 reached"},
		"without a status so far": {&api.PlacementStatus{}, "east waiting maxUnavailable 1 reached"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &status.Report{
				Clusters: []*api.MemberCluster{reports.MemberCluster("east", true)},
				Details:  []*status.Detail{{Placement: "crp/web", Clusters: []status.ClusterDetail{{Cluster: "east", Waits: "maxUnavailable 1 reached"}}}},
			}
			got := described(func(s *description) { s.clusters(r, test.status, "crp/web") })
			if strings.Count(got, "maxUnavailable 1 reached") != 1 {
				t.Errorf("not once in %q", got)
			}
			if !strings.Contains(strings.ReplaceAll(got, api.RolloutNotStartedYet, "RolloutNotStarted"), test.want) {
				t.Errorf("no %q in %q", test.want, got)
			}
		})
	}
}

// A cluster is described with what is wrong there, and a cluster that could not be selected is
// counted.
func TestDescribeClusters(t *testing.T) {
	r := &status.Report{
		Clusters: []*api.MemberCluster{reports.MemberCluster("ams", true), reports.MemberCluster("ber", false)},
		Details: []*status.Detail{{Placement: "crp/web", Clusters: []status.ClusterDetail{
			{Cluster: "ams", Commit: reports.FirstCommit, Available: true, BlockedDeletions: []string{"ConfigMap/web/a: too much"}, DeletionErrors: []string{"ConfigMap/web/b: denied"}, Lingering: []string{"ConfigMap/web/c", "ConfigMap/web/d"}},
			{Cluster: "ber"},
		}}},
	}
	st := &api.PlacementStatus{PlacementStatuses: []api.PerClusterPlacementStatus{
		{ClusterName: "ams", FailedPlacements: []api.FailedResourcePlacement{{
			ResourceIdentifier: api.ResourceIdentifier{Kind: "ConfigMap", Namespace: "web", Name: "e"}, Condition: metav1.Condition{Type: api.Available, Reason: api.ManifestNotAvailableYet, Message: "starting"},
		}}},
		{Conditions: reports.Conditions("!" + api.Scheduled)},
	}}
	got := described(func(s *description) { s.clusters(r, st, "crp/web") })
	for _, want := range []string{
		"ams held a1a1a1a1", "ConfigMap/web/e not available, ManifestNotAvailableYet starting", "deletions blocked: ConfigMap/web/a: too much",
		"not deleted; retried: ConfigMap/web/b: denied", "deleted, and not gone yet: ConfigMap/web/c, ConfigMap/web/d",
		"ber unreachable Healthy is not true yet", "a cluster is missing Scheduled False",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if got := described(func(s *description) {
		s.clusters(&status.Report{Details: []*status.Detail{{}}}, &api.PlacementStatus{}, "crp/web")
	}); got != "" {
		t.Errorf("without clusters: %q", got)
	}
}

// A drift is described with the fields, how often it occurred, and who made it.
func TestDescribeDrift(t *testing.T) {
	d := status.Drift{Cluster: "east", State: api.DriftContested, Since: reports.Noon.Add(-time.Hour), Count: 3, By: []api.Actor{{Manager: "kubectl-edit", Operation: "Update"}},
		ResourceIdentifier: api.ResourceIdentifier{Kind: "ConfigMap", Name: "one"},
		Paths:              []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/a", ValueInMember: "1", ValueInHub: "2"}}, {PatchDetail: api.PatchDetail{Path: "/data/b"}}}}
	const want = "Drift: ConfigMap/one on east contested, first seen 60m ago, 3 times, by kubectl-edit (Update) /data/a: 1 on the cluster, 2 in Git /data/b: - on the cluster, - in Git"
	if got := described(func(s *description) { s.drifts([]status.Drift{d}) }); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	d.Count, d.By, d.Paths = 1, nil, nil
	if got := described(func(s *description) { s.drifts([]status.Drift{d}) }); got != "Drift: ConfigMap/one on east contested, first seen 60m ago" {
		t.Errorf("once: %q", got)
	}
	if got := described(func(s *description) { s.drifts(nil) }); got != "" {
		t.Errorf("none: %q", got)
	}
}

// An event is described with its repetitions, and with its object or its cluster.
func TestDescribeEvents(t *testing.T) {
	e := status.Event{Kind: "ClusterResourcePlacement", Name: "web", Type: event.TypeWarning, Reason: "Failed", Message: "denied", Cluster: "east", Count: 3, First: reports.Noon.Add(-time.Hour), Last: reports.Noon.Add(-time.Minute)}
	for named, want := range map[bool]string{
		true: "Events: 60s ago Warning Failed (3 times in 59m) crp/web denied", false: "Events: 60s ago Warning Failed (3 times in 59m) on east denied",
	} {
		if got := described(func(s *description) { s.events([]status.Event{e}, named) }); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	e.Count, e.Cluster = 1, ""
	if got := described(func(s *description) { s.events([]status.Event{e}, false) }); got != "Events: 60s ago Warning Failed denied" {
		t.Errorf("once: %q", got)
	}
}

// Conditions have their reasons in columns if they fit, and otherwise below.
func TestDescribeConditions(t *testing.T) {
	long := strings.Repeat("Reason", 10)
	for reason, want := range map[string]string{
		"Why": "Applied  False    Why  for 60s\n  denied\n",
		long:  "Applied  False    for 60s\n    " + long + "\n    denied\n",
	} {
		s := &description{Page: output.Page{Width: 60}, now: reports.Noon}
		s.conditions(0, []metav1.Condition{{Type: "Applied", Status: metav1.ConditionFalse, Reason: reason, Message: "denied", LastTransitionTime: reports.Ago(time.Minute)}})
		if got := s.b.String(); got != strings.ReplaceAll(want, "\n  denied", "\n    denied") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A member is described with the labels that users gave, and the placements on it.
func TestDescribeAMember(t *testing.T) {
	c := reports.MemberCluster("east", true)
	c.Labels = map[string]string{"b": "2", "a": "1", api.MemberNameLabel: "east"}
	c.Spec.Taints = []api.Taint{{Key: "k", Value: "v", Effect: "NoSchedule"}}
	r := &status.Report{Clusters: []*api.MemberCluster{c}, Details: []*status.Detail{
		{Placement: "crp/web", Clusters: []status.ClusterDetail{{Cluster: "east", Available: true, Commit: reports.FirstCommit, Objects: 2}, {Cluster: "west"}}},
	}}
	got := described(func(s *description) {
		if err := s.cluster(r, "east"); err != nil {
			t.Error(err)
		}
	})
	for _, want := range []string{"Labels: a=1 b=2 Taint: k=v:NoSchedule", "last answered", "Placements: crp/web available a1a1a1a1 2 objects"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	r.Details = nil
	if got := described(func(s *description) { s.cluster(r, "east") }); !strings.HasSuffix(got, "No placement is on this cluster.") {
		t.Errorf("without placements: %q", got)
	}
	if err := new(description).cluster(r, "esat"); err == nil || err.Error() != "there is no cluster esat; did you mean east?" {
		t.Errorf("an unknown one: %v", err)
	}
}

func TestSinceUnknown(t *testing.T) {
	s := &description{now: reports.Noon}
	for want, at := range map[string]time.Time{"unknown": {}, "60m": reports.Noon.Add(-time.Hour), "0s": reports.Noon.Add(time.Hour)} {
		if got := s.since(at); got != want {
			t.Errorf("%s is %s ago, want %s", at, got, want)
		}
	}
}
