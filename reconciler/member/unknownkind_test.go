package member

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// The error about an unknown kind says what would help: another version, its definition, or
// waiting if the definition is placed here too.
func TestUnknownKindsAreExplained(t *testing.T) {
	definition := func(kind, version string, served bool) *work.Manifest {
		m := oneManifest()
		m.Object.ID = api.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "gadgets.example.com"}
		m.Object.Object.Object = map[string]any{"spec": map[string]any{
			"group": "example.com", "names": map[string]any{"kind": kind},
			"versions": []any{map[string]any{"name": version, "served": served}},
		}}
		return m
	}
	gadget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	const missing = `no matches for kind "Gadget" in version "example.com/v1": the cluster has no CustomResourceDefinition of kind Gadget in group example.com with version v1: place it`
	tests := map[string]struct {
		gvk   schema.GroupVersionKind
		holds *work.Manifest
		fails bool // the definition cannot be applied
		want  string
	}{
		"no definition":        {gadget, nil, false, missing},
		"of another kind":      {gadget, definition("Gizmo", "v1", true), false, missing},
		"of another version":   {gadget, definition("Gadget", "v2", true), false, missing},
		"of one not served":    {gadget, definition("Gadget", "v1", false), false, missing},
		"one that is coming":   {gadget, definition("Gadget", "v1", true), false, `no matches for kind "Gadget" in version "example.com/v1": its CustomResourceDefinition gadgets.example.com, which crp/web places here, is not established yet`},
		"one that fails":       {gadget, definition("Gadget", "v1", true), true, "its CustomResourceDefinition gadgets.example.com, which crp/web places here, is not applied: see why there"},
		"one of Kubernetes":    {schema.GroupVersionKind{Group: "batch", Version: "v1beta1", Kind: "CronJob"}, nil, false, `no matches for kind "CronJob" in version "batch/v1beta1": the Kubernetes of the cluster does not have it: use`},
		"one of Kubernetes io": {schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v9", Kind: "Ingress"}, nil, false, "the Kubernetes of the cluster does not have it: use"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			s.kinds = discovery.New(nil)
			w := work.Work{Placement: api.PlacementKey{Name: "web"}}
			if test.holds != nil {
				w.Manifests = []*work.Manifest{test.holds}
			}
			s.want([]work.Work{w})
			if test.fails {
				s.trouble = map[api.ID]*trouble{test.holds.ID: {cond: metav1.Condition{Status: metav1.ConditionFalse}}}
			}
			if got := s.applier.unknownKind(test.gvk).Error(); !strings.Contains(got, test.want) {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}
