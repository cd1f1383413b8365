package view

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
	"github.com/gitfleet/gitfleet/test/reports"
)

// Names as long as they often are.
const (
	longCluster   = "production-eu-west-1"
	longNamespace = "storefront-checkout1"
	longPlacement = "rp/" + longNamespace + "/checkout-and-payment-frontends"
	longFile      = "placements/storefront/checkout/frontends.yaml:17"
	longReason    = "maxUnavailable 25% of 12 = 3: waits for " + longCluster + " and production-eu-west-2 to be available"
)

// No line is wider than a terminal, and elsewhere each line says everything about its subject.
func TestLinesFitATerminal(t *testing.T) {
	id := api.ResourceIdentifier{Group: "autoscaling", Kind: "HorizontalPodAutoscaler", Namespace: longNamespace, Name: "checkout-frontend"}
	at := metav1.Time{Time: reports.Noon}
	detail := &status.Detail{Placement: longPlacement, Clusters: []status.ClusterDetail{{Cluster: longCluster, Commit: reports.FirstCommit, Objects: 12, Waits: longReason}}}
	r := &status.Report{At: reports.Noon, Clusters: []*api.MemberCluster{reports.MemberCluster(longCluster, true)}, Details: []*status.Detail{detail}}
	for name, text := range map[string]func(output.Page) string{
		"explain": func(p output.Page) string {
			return explanationText(&status.Explanation{Placement: longPlacement, PlacementType: api.PickN, Origin: longFile, Scheduled: metav1.Condition{Reason: "SchedulingPolicyFulfilled", Message: longReason},
				Problems: []string{longReason + longFile}, Clusters: []status.ExplainedCluster{{
					Cluster: longCluster, Reason: longReason, How: longReason, Waits: longReason, Tie: longReason,
					Required: []placement.TermVerdict{{Parts: []placement.Comparison{{Demand: "label topology.kubernetes.io/region in (eu-west-1, eu-west-2)", Found: "eu-central-1"}}}},
				}}}, p)
		},
		"trace": func(p output.Page) string {
			return traceText(&status.Trace{ResourceIdentifier: id, Cluster: longCluster, Origin: longFile, Placement: longPlacement, PlacementOrigin: longFile, Why: longReason, Waits: longReason,
				Commit: &status.TracedCommit{Hash: reports.FirstCommit, Author: "Ada Lovelace", Time: reports.Noon, Subject: "Raise the limits of the frontend of the checkout"}}, p)
		},
		"tree": func(p output.Page) string {
			return treeText(&status.Tree{Placement: longPlacement, Origin: longFile, Clusters: []status.TreeCluster{{Cluster: longCluster, Commit: reports.FirstCommit, Objects: []status.TreeObject{
				{ResourceIdentifier: id, State: status.ObjectProgressing, Message: longReason}, {ResourceIdentifier: api.ResourceIdentifier{Kind: "Service", Namespace: longNamespace, Name: "checkout"}, State: status.ObjectAvailable},
			}}}}, r, p)
		},
		"describe": func(p output.Page) string {
			s := &description{Page: p, now: reports.Noon.Add(time.Hour)}
			s.clusters(r, &api.PlacementStatus{PlacementStatuses: []api.PerClusterPlacementStatus{{ClusterName: longCluster, FailedPlacements: []api.FailedResourcePlacement{{
				ResourceIdentifier: id, Condition: metav1.Condition{Type: api.Available, Reason: api.ManifestNotAvailableYet, Message: longReason, LastTransitionTime: at},
			}}}}}, longPlacement)
			s.placementsOn(r, longCluster)
			s.drifts([]status.Drift{{ResourceIdentifier: id, Cluster: longCluster, State: api.DriftContested, Since: reports.Noon, By: []api.Actor{{Manager: "kubectl-client-side-apply", Operation: "Update"}},
				Paths: []api.Difference{{PatchDetail: api.PatchDetail{Path: "/spec/minReplicas", ValueInMember: "1", ValueInHub: longReason}}}}})
			s.events([]status.Event{{Kind: "ResourcePlacement", Namespace: longNamespace, Name: strings.TrimPrefix(longPlacement, "rp/"+longNamespace+"/"), Type: event.TypeWarning, Reason: "Failed", Count: 3, First: reports.Noon, Last: reports.Noon}}, true)
			return s.b.String()
		},
	} {
		t.Run(name, func(t *testing.T) {
			const width = 80
			wide := false
			for line := range strings.Lines(text(output.Page{Width: width})) {
				wide = wide || output.Width(line) > width+1
			}
			if !wide {
				t.Fatal("no line is wide, so that this tests nothing")
			}
			for line := range strings.Lines(text(output.Page{Width: width, Terminal: true, Color: true})) {
				if n := output.Width(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		})
	}
	const want = longPlacement + "\n  " + longFile + "\n" + `└─ production-eu-west-1  waiting  a1a1a1a1  maxUnavailable 25% of 12 = 3: waits
   │  for production-eu-west-1 and production-eu-west-2 to be available
   ├─ HorizontalPodAutoscaler.autoscaling/storefront-checkout1/checkout-frontend
   │     progressing
   └─ Service/storefront-checkout1/checkout                      available
`
	got := treeText(&status.Tree{Placement: longPlacement, Origin: longFile, Clusters: []status.TreeCluster{{Cluster: longCluster, Commit: reports.FirstCommit, Objects: []status.TreeObject{
		{ResourceIdentifier: id, State: status.ObjectProgressing}, {ResourceIdentifier: api.ResourceIdentifier{Kind: "Service", Namespace: longNamespace, Name: "checkout"}, State: status.ObjectAvailable},
	}}}}, r, output.Page{Width: 80, Terminal: true})
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
