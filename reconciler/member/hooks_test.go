package member

import (
	"maps"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// What waits for the Job of a hook is applied once the watch shows that the Job has run, and what comes after it is due then.
func TestObjectsWaitForHooks(t *testing.T) {
	config := simulated.New(simulated.Options{}).Cluster("east").Config()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s := sessionOf(t, config)
	jobs := connection.Resource{GroupVersionResource: batchv1.SchemeGroupVersion.WithResource("jobs"), Namespaced: true}
	w := &work.Work{Placement: web, Strategy: api.ApplyStrategy{Type: api.ClientSideApply}}
	add := func(version, kind, name, hook string, res connection.Resource) api.ID {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "default"}}}
		if hook != "" {
			o.SetAnnotations(map[string]string{"helm.sh/hook": hook})
		}
		s.kinds.Add(o.GroupVersionKind(), res)
		id := api.IDOf(o)
		w.Manifests = append(w.Manifests, &work.Manifest{Object: &api.Object{ID: id, Content: o, Hash: "h"}, Envelope: &api.EnvelopeIdentifier{Name: "web", Type: api.ClusterHelmChartType}})
		return id
	}
	config1 := add("v1", "ConfigMap", "one", "", inventory.ConfigMaps)
	after := add("v1", "ConfigMap", "after", "post-install", inventory.ConfigMaps)
	job := add("batch/v1", "Job", "migrate", "pre-install,pre-upgrade", jobs)
	s.setWorks([]*work.Work{w})
	expect := func(when string, want map[api.ID]bool) {
		t.Helper()
		for id, there := range want {
			res := inventory.ConfigMaps
			if id == job {
				res = jobs
			}
			_, err := client.Resource(res.GroupVersionResource).Namespace("default").Get(t.Context(), id.Name, metav1.GetOptions{})
			if (err == nil) != there {
				t.Errorf("%s: %s is there: %t, because of %v", when, id, err == nil, s.failure(id))
			}
		}
	}
	s.processPrepared(t.Context(), map[api.ID]bool{config1: true, after: true, job: true})
	expect("at first", map[api.ID]bool{job: true, config1: false, after: false})
	if f := s.failure(config1); f.Cond.Reason != api.HookPending || !f.Pending {
		t.Errorf("it is not said why it waits: %+v", f)
	}
	ended := *s.live.Of(job)
	ended.Ended = true
	s.record.hasEnded(job, &ended)
	s.processPrepared(t.Context(), map[api.ID]bool{job: true})
	expect("after the Job", map[api.ID]bool{job: true, config1: true, after: false})
	s.retryDue(t.Context())
	expect("at last", map[api.ID]bool{job: true, config1: true, after: true})
	if failed := maps.Collect(s.progress.Failures()); len(failed) > 0 {
		t.Errorf("there are failures: %v", failed)
	}
}
