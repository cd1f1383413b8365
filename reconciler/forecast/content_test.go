package forecast

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// content returns a content of ConfigMaps with values.
func content(values ...string) *work.Rendered {
	c := &work.Rendered{Hash: fmt.Sprint(values)}
	for i, value := range values {
		id := api.ID{Kind: "ConfigMap", Namespace: "web", Name: fmt.Sprint(i)}
		c.Manifests = append(c.Manifests, &work.Manifest{Object: &api.Object{ID: id, Hash: value, Content: &unstructured.Unstructured{}}})
	}
	return c
}

// placed returns a placement with a content on each of some clusters.
func placed(clusters int, of func(n int) *work.Rendered) *plan.Placement {
	p := &plan.Placement{}
	for n := range clusters {
		p.Clusters = append(p.Clusters, &plan.OnCluster{Binding: &placement.Binding{Cluster: fmt.Sprintf("member-%04d", n)}, Content: of(n)})
	}
	return p
}

// A change lists all its clusters, also those that differ in other objects.
func TestContentChanges(t *testing.T) {
	const clusters = 1000
	same := strings.Fields(strings.Repeat("same ", 50))
	var all []*work.Rendered
	for _, values := range []string{"a x", "b x", "b y"} {
		all = append(all, content(append(strings.Fields(values), same...)...))
	}
	old := placed(clusters, func(int) *work.Rendered { return all[0] })
	now := placed(clusters, func(n int) *work.Rendered { return all[1+n%2] })
	got := contentChanges(old, now)
	if len(got) != 2 || len(got[0].Clusters) != clusters || len(got[1].Clusters) != clusters/2 || got[1].Clusters[0] != "member-0001" {
		t.Errorf("got %+v", got)
	}
}
