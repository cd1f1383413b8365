// Package reading tests the Kubernetes API of the daemon with its clients: an unmodified kubectl, and
// client-go's informers.
package reading

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/server/access"
	"github.com/gitfleet/gitfleet/reconciler/server/kubeapi"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// A daemon is the API server of a daemon, with reports that the test publishes.
type daemon struct {
	t      testing.TB
	api    atomic.Pointer[kubeapi.API]
	url    string
	report *status.Report
	// hangUp closes the connections of all clients.
	hangUp func()
}

func start(t testing.TB) *daemon {
	t.Helper()
	d := &daemon{t: t, report: &status.Report{}}
	d.restart()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { d.api.Load().ServeHTTP(w, req) }))
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections) // which comes first
	d.url, d.hangUp = srv.URL, srv.CloseClientConnections
	return d
}

// restart replaces the server by a new one with the same state, as after a restart of the
// process.
func (d *daemon) restart() {
	d.t.Helper()
	a, err := kubeapi.New(kubeapi.Config{Store: store.New(time.Now())})
	if err != nil {
		d.t.Fatal(err)
	}
	a.Publish(d.report)
	d.api.Store(a)
}

// publish publishes a copy of the last report with a change. A published report is immutable.
func (d *daemon) publish(change func(*status.Report)) {
	r := *d.report
	change(&r)
	d.report = &r
	d.api.Load().Publish(d.report)
}

// kubeconfig writes the same file as "gitfleet kubeconfig".
func (d *daemon) kubeconfig() string {
	d.t.Helper()
	raw, err := access.Client{Server: d.url}.Kubeconfig("gitfleet")
	if err != nil {
		d.t.Fatal(err)
	}
	path := filepath.Join(d.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		d.t.Fatal(err)
	}
	return path
}

// began returns a time some days ago, so that tables show a stable age in whole days.
func began() metav1.Time { return metav1.NewTime(time.Now().Add(-10*24*time.Hour - 12*time.Hour)) }

// placed returns a placement on clusters. On those in failed it is not applied.
func placed(name string, failed string, clusters ...string) *api.ClusterResourcePlacement {
	p := &api.ClusterResourcePlacement{TypeMeta: metav1.TypeMeta{APIVersion: api.PlacementGroup + "/v1beta1", Kind: "ClusterResourcePlacement"}}
	p.Name, p.Generation, p.CreationTimestamp, p.UID = name, 5, began(), "cb8f6d0b-0000-4000-8000-000000000001"
	p.Annotations = map[string]string{api.PathAnnotation: "placements/" + name + ".yaml:1", api.CommitAnnotation: "5f0c1e"}
	p.Spec.ResourceSelectors = []api.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "test"}}
	p.Spec.Policy = &api.PlacementPolicy{PlacementType: api.PickAll}
	p.Status.ObservedResourceIndex = "0"
	p.Status.SelectedResources = []api.ResourceIdentifier{{Version: "v1", Kind: "Namespace", Name: "test"}, {Version: "v1", Kind: "ConfigMap", Name: "test-1", Namespace: "test"}}
	state, reason, message := metav1.ConditionTrue, "ApplySucceeded", fmt.Sprintf("The selected resources are successfully applied to %d cluster(s)", len(clusters))
	if failed != "" {
		state, reason, message = metav1.ConditionFalse, "ApplyFailed", "Failed to apply resources to 1 cluster(s), please check the `failedPlacements` status"
	}
	p.Status.Conditions = []metav1.Condition{
		condition("ClusterResourcePlacementScheduled", metav1.ConditionTrue, "SchedulingPolicyFulfilled", fmt.Sprintf("found all cluster needed as specified by the scheduling policy, found %d cluster(s)", len(clusters))),
		condition("ClusterResourcePlacementApplied", state, reason, message),
	}
	for _, cluster := range clusters {
		s := api.PerClusterPlacementStatus{ClusterName: cluster, ObservedResourceIndex: "0", Conditions: []metav1.Condition{
			condition("Scheduled", metav1.ConditionTrue, "Scheduled", `Successfully scheduled resources for placement in "`+cluster+`": picked by scheduling policy`),
		}}
		if cluster == failed {
			s.FailedPlacements = []api.FailedResourcePlacement{{
				ResourceIdentifier: p.Status.SelectedResources[1],
				Condition:          condition("Applied", metav1.ConditionFalse, "ManifestApplyFailed", `Failed to apply the manifest (error: namespaces "test" not found)`),
			}}
		}
		p.Status.PlacementStatuses = append(p.Status.PlacementStatuses, s)
	}
	return p
}

func condition(typ string, state metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: typ, Status: state, Reason: reason, Message: message, ObservedGeneration: 5,
		LastTransitionTime: metav1.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC),
	}
}

func member(name string) *api.MemberCluster {
	c := &api.MemberCluster{TypeMeta: metav1.TypeMeta{APIVersion: api.ClusterGroup + "/v1beta1", Kind: "MemberCluster"}}
	c.Name, c.CreationTimestamp = name, began()
	c.Status.Conditions = []metav1.Condition{condition("Joined", metav1.ConditionTrue, "MemberClusterJoined", "the cluster has answered")}
	c.Status.AgentStatus = []api.AgentStatus{{Type: api.MemberAgent, LastReceivedHeartbeat: began()}}
	c.Status.Properties = map[string]api.PropertyValue{"kubernetes-fleet.io/node-count": {Value: "3"}}
	return c
}

var manifests = fstest.MapFS{"apps/test.yaml": {Data: []byte(`apiVersion: v1
kind: Namespace
metadata: {name: test}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: test}
spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}
`)}}

// fill publishes a small fleet.
func (d *daemon) fill() {
	d.t.Helper()
	head, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "5f0c1e", Time: began().Time}, manifests)
	if err != nil {
		d.t.Fatal(err)
	}
	remembered := ledger.New()
	remembered.Declare(head.Commit.Hash, head.Commit.Time, func(yield func(api.ID, ledger.DeclaredHashes) bool) {
		for _, o := range head.Objects {
			yield(o.ID, ledger.DeclaredHashes{Hash: o.Hash})
		}
	})
	d.publish(func(r *status.Report) {
		r.InForce, r.Source.InForce, r.Declared = head, head.Commit, remembered.Declared()
		r.Source.Git.URL, r.Source.Git.Ref = "https://git.example.com/fleet.git", "main"
		r.Placements = []*api.ClusterResourcePlacement{
			placed("crp-1", "", "aks-member-1", "aks-member-2"), placed("web", "", "aks-member-1"), placed("web-2-crp", "aks-member-2", "aks-member-1", "aks-member-2"),
		}
		r.Clusters = []*api.MemberCluster{member("aks-member-1"), member("aks-member-2")}
		r.Events = []status.Event{{
			APIVersion: api.PlacementGroup + "/v1beta1", Kind: "ClusterResourcePlacement", Name: "crp-1", UID: string(r.Placements[0].UID), Type: "Normal",
			Reason: "PlacementApplied", Message: "Resources have been applied to the selected cluster(s)", First: began().Time, Last: began().Time, Count: 1,
		}}
	})
}
