package connection

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Path returns the URL paths that Kubernetes uses.
func TestPathOfObject(t *testing.T) {
	tests := map[string]struct {
		res  Resource
		id   api.ID
		want string
	}{
		"core, in a namespace": {configMapKind, api.ID{Kind: "ConfigMap", Namespace: "app", Name: "one"}, "api/v1/namespaces/app/configmaps/one"},
		"core, of the cluster": {namespaceKind, api.ID{Kind: "Namespace", Name: "app"}, "api/v1/namespaces/app"},
		"a group, in a namespace": {
			Resource{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespaced: true},
			api.ID{Group: "apps", Kind: "Deployment", Namespace: "app", Name: "web"}, "apis/apps/v1/namespaces/app/deployments/web",
		},
		"a group, of the cluster": {
			Resource{GroupVersionResource: schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}, Namespaced: false},
			api.ID{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:x"}, "apis/rbac.authorization.k8s.io/v1/clusterroles/system:x",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(test.res.Path(test.id), "/"); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
