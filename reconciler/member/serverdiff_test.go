package member_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// The server decides by a dry run what differs, also for objects that gitfleet would not
// change. Neither comparison requests a dry run of an object of an aggregated API, which may
// ignore that it is a dry run.
func TestServerChanges(t *testing.T) {
	cluster := simulated.New(simulated.Options{}).Cluster("east")
	direct := cluster.Config()
	client, err := dynamic.NewForConfig(direct)
	if err != nil {
		t.Fatal(err)
	}
	create := func(resource schema.GroupVersionResource, namespace string, o *unstructured.Unstructured) {
		t.Helper()
		if _, err := client.Resource(resource).Namespace(namespace).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "", definitionOf("example.com"))
	theirs, aggregated := configMap("theirs"), gadget("example.com", "aggregated")
	theirs.Object["data"] = map[string]any{"key": "theirs"}
	aggregated.Object["spec"] = map[string]any{"size": "2"}
	create(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "default", theirs)
	create(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}, "default", aggregated)
	w := work.Work{
		Placement: api.PlacementKey{Name: "web"}, Revision: placement.Revision{Commit: "c", Hash: "1"},
		Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverNever, WhenToApply: api.ApplyAlways},
	}
	for _, o := range []*unstructured.Unstructured{configMap("new"), configMap("theirs"), gadget("example.com", "aggregated")} {
		w.Manifests = append(w.Manifests, &work.Manifest{Object: &api.Object{ID: api.IDOf(o), Object: o, Hash: "h"}})
	}
	for name, test := range map[string]struct {
		compare func(*member.Preview, context.Context, []work.Work) ([]member.Change, error)
		want    []string
		tried   []string
	}{
		"gitfleet decides": {(*member.Preview).Changes, []string{"add new", "differ theirs", "differ aggregated"}, nil},
		"the server decides": {(*member.Preview).ServerChanges, []string{"add new", "change theirs /data/key", "differ aggregated"},
			[]string{"/api/v1/namespaces/default/configmaps/new", "/api/v1/namespaces/default/configmaps/theirs"}},
	} {
		t.Run(name, func(t *testing.T) {
			gate := &gatekeeper{next: cluster.RoundTripper(), codes: map[string]int{"GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.com": 404}}
			changes, err := test.compare(previewAt(t, direct.Host, gate), t.Context(), []work.Work{w})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range changes {
				text := string(c.Effect) + " " + c.ID.Name
				for _, d := range c.Diffs {
					text += " " + d.Path
				}
				got = append(got, text)
			}
			if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			slices.Sort(gate.tried)
			if tried := slices.Compact(gate.tried); !slices.Equal(tried, test.tried) || len(gate.stored) > 0 {
				t.Errorf("tried are %q, want %q; stored are %q", tried, test.tried, gate.stored)
			}
		})
	}
	w.Strategy.WhenToTakeOver, w.Strategy.Type = api.TakeOverAlways, api.ReportDiff
	gate := &gatekeeper{next: cluster.RoundTripper(), codes: map[string]int{"GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.com": 404}}
	w.Manifests = w.Manifests[2:]
	changes, err := previewAt(t, direct.Host, gate).Changes(t.Context(), []work.Work{w})
	if err != nil || len(changes) != 1 || len(changes[0].Diffs) != 1 || changes[0].Diffs[0].Path != "/spec/size" || len(gate.tried) > 0 {
		t.Errorf("compared without a dry run: %v %+v, tried %q", err, changes, gate.tried)
	}
}
