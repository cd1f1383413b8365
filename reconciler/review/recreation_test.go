package review

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/member"
)

// The comment says that an object is recreated, as far as the plan and the trials show it. That
// does not count as a refusal.
func TestRecreationsAreTold(t *testing.T) {
	web, id := api.PlacementKey{Name: "web"}, api.ID{Group: "batch", Kind: "Job", Namespace: "web", Name: "once"}
	image := func(value string) *work.Manifest {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{"image": value}}}
		return &work.Manifest{Object: &api.Object{ID: id, Content: o}}
	}
	r := &Result{
		Changes: forecast.Changes{Contents: []forecast.ContentChange{{Placement: web, Before: image("a"), After: image("b"), Clusters: []string{"a"}, Recreation: diff.Recreated}}},
		Answers: &Answers{Members: []Answer{{Cluster: "a", Objects: 1, Changes: []member.Change{{
			ID: id, Placement: web, Effect: member.Recreates, Diffs: []api.Difference{{PatchDetail: api.PatchDetail{Path: "/spec/image"}}},
		}}}}},
	}
	if text := changeTitle(r.Changes.Contents[0]); !strings.Contains(text, "<code>Job.batch/web/once</code> of <code>crp/web</code>, recreated on 1 cluster: <code>spec.image</code>") {
		t.Errorf("the comment says\n%s", text)
	}
	if got, want := r.groups()[0].changes, []string{"! Job.batch/web/once (crp/web), recreated"}; !slices.Equal(got, want) {
		t.Errorf("the cluster has %q, want %q", got, want)
	}
	text := r.membersText(false)
	for _, want := range []string{"1 object tried on 1 cluster: 0 refused, 1 recreated.", "`Job.batch/web/once` of `crp/web` on `a`: it is deleted and created anew: `/spec/image`"} {
		if !strings.Contains(text, want) {
			t.Errorf("the members say\n%s\nwant\n%s", text, want)
		}
	}
	if r.Failed() {
		t.Error("it counts as a failure")
	}
}
