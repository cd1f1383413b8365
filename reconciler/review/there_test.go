package review

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A plan says of which changes clusters have them already, because it adopts held drift with the same values. Objects are
// counted once however many clusters have them.
func TestWhatIsThereAlready(t *testing.T) {
	manifest := func(kind string, value any) *work.Manifest {
		o := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "one"}, "data": map[string]any{"n": value}}
		return &work.Manifest{Object: &api.Object{ID: api.ID{Kind: kind, Name: "one"}, Content: &unstructured.Unstructured{Object: o}}}
	}
	changed := func(kind string) forecast.Changes {
		return forecast.Changes{Contents: []forecast.ContentChange{{
			Placement: api.PlacementKey{Name: "web"}, Before: manifest(kind, "1"), After: manifest(kind, "2"), Clusters: []string{"a", "b"},
		}}}
	}
	drift := func(kind, cluster string, set func(*status.Drift)) status.Drift {
		d := status.Drift{
			Placement: "crp/web", Cluster: cluster, State: api.DriftHeld, ResourceIdentifier: api.ResourceIdentifier{Version: "v1", Kind: kind, Name: "one"},
			Paths: []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/n", ValueInHub: "1", ValueInMember: "2"}}},
		}
		set(&d)
		return d
	}
	same := func(*status.Drift) {}
	masked := func(d *status.Drift) { d.Paths[0].ValueInHub, d.Paths[0].ValueInMember = diff.Mask, diff.Mask }
	deleted := forecast.Changes{Clusters: []forecast.ClusterChange{{Cluster: "a", Deleted: []forecast.Deletion{
		{Cluster: "a", Object: forecast.Object{Kind: "ConfigMap", Name: "one", Placement: "crp/web"}},
	}}}}
	for name, test := range map[string]struct {
		changes forecast.Changes
		drifts  []status.Drift
		want    string
	}{
		"nowhere":          {changed("ConfigMap"), nil, "1 object on 2 clusters"},
		"everywhere":       {changed("ConfigMap"), []status.Drift{drift("ConfigMap", "a", same), drift("ConfigMap", "b", same)}, "1 object on 2 clusters, already there"},
		"on one cluster":   {changed("ConfigMap"), []status.Drift{drift("ConfigMap", "a", same)}, "1 object on 2 clusters, 1 of them already there on 1 cluster"},
		"another value":    {changed("ConfigMap"), []status.Drift{drift("ConfigMap", "a", func(d *status.Drift) { d.Paths[0].ValueInMember = "3" })}, "1 object on 2 clusters"},
		"a long value":     {changed("ConfigMap"), []status.Drift{drift("ConfigMap", "a", func(d *status.Drift) { d.Paths[0].ValueInMember, d.Paths[0].MemberJSON = "…", []byte(`"2"`) })}, "1 object on 2 clusters, 1 of them already there on 1 cluster"},
		"another field":    {changed("ConfigMap"), []status.Drift{drift("ConfigMap", "a", func(d *status.Drift) { d.Paths[0].Path = "/data/m" })}, "1 object on 2 clusters"},
		"not held":         {changed("ConfigMap"), []status.Drift{drift("ConfigMap", "a", func(d *status.Drift) { d.State = api.DriftRepaired })}, "1 object on 2 clusters"},
		"a Secret":         {changed("Secret"), []status.Drift{drift("Secret", "a", masked)}, "1 object on 2 clusters"},
		"deleted":          {deleted, []status.Drift{drift("ConfigMap", "a", func(d *status.Drift) { d.Deleted = true })}, "1 object on 1 cluster, already there"},
		"only changed yet": {deleted, []status.Drift{drift("ConfigMap", "a", same)}, "1 object on 1 cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Result{Changes: test.changes, held: heldDrifts(&status.Report{Drifts: test.drifts})}
			if _, got := r.Status(); got != test.want {
				t.Errorf("the status is %q, want %q", got, test.want)
			}
			if isThere := strings.Contains(test.want, "already"); strings.Contains(r.summary(), "Already there, because somebody") != isThere {
				t.Errorf("the summary is %q", r.summary())
			}
		})
	}
}
