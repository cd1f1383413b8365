package member

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// Objects that Kubernetes creates in each namespace, objects with an owner, and objects in an
// inventory may be deleted with the namespace. A label alone is not enough, since copies of an
// object have it too.
func TestWhatGoesWithItsNamespace(t *testing.T) {
	configMaps, ours := schema.GroupKind{Kind: "ConfigMap"}, map[string]string{api.ManagedByLabel: "prod"}
	tests := map[string]struct {
		kind schema.GroupKind
		meta metav1.ObjectMeta
		want bool
	}{
		"ours":                         {configMaps, metav1.ObjectMeta{Name: "one", Labels: ours}, true},
		"a copy of ours":               {configMaps, metav1.ObjectMeta{Name: "copy", Labels: ours}, false},
		"ours by its name only":        {configMaps, metav1.ObjectMeta{Name: "one"}, false},
		"of another fleet":             {configMaps, metav1.ObjectMeta{Name: "one", Labels: map[string]string{api.ManagedByLabel: "test"}}, false},
		"of another group":             {schema.GroupKind{Group: "example.com", Kind: "ConfigMap"}, metav1.ObjectMeta{Name: "one", Labels: ours}, false},
		"of somebody else":             {configMaps, metav1.ObjectMeta{Name: "theirs"}, false},
		"on its way out":               {configMaps, metav1.ObjectMeta{Name: "theirs", DeletionTimestamp: &metav1.Time{}}, true},
		"owned":                        {configMaps, metav1.ObjectMeta{Name: "theirs", OwnerReferences: []metav1.OwnerReference{{Name: "owner"}}}, true},
		"of Kubernetes":                {configMaps, metav1.ObjectMeta{Name: "kube-root-ca.crt"}, true},
		"like one of Kubernetes":       {schema.GroupKind{Group: "example.com", Kind: "ConfigMap"}, metav1.ObjectMeta{Name: "kube-root-ca.crt"}, false},
		"the service account of all":   {schema.GroupKind{Kind: "ServiceAccount"}, metav1.ObjectMeta{Name: "default"}, true},
		"a service account of its own": {schema.GroupKind{Kind: "ServiceAccount"}, metav1.ObjectMeta{Name: "app"}, false},
	}
	s := sessionAt(t, apiserver.NewConfigMaps())
	inv := &inventory.Inventory{Placement: web}
	inv.Items.Put(inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: "one"})
	s.inv[web] = inv
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.meta.Namespace = "app"
			if got := s.pruner.deletableWithNamespace(&metav1.PartialObjectMetadata{ObjectMeta: test.meta}, test.kind); got != test.want {
				t.Errorf("it may go: %t, want %t", got, test.want)
			}
		})
	}
}
