package discovery

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/rbac"
)

// Resources returns how a cluster serves some kinds. Kinds that it does not serve are left out.
func Resources(ctx context.Context, cfg *rest.Config, wanted map[schema.GroupVersionKind]bool) (rbac.Resources, error) {
	known := New(func() (*discovery.DiscoveryClient, error) { return discovery.NewDiscoveryClientForConfig(cfg) })
	if err := known.Resolve(ctx, wanted); err != nil {
		return nil, connection.Plain(err)
	}
	resources := rbac.Resources{}
	for gvk := range wanted {
		if r, ok := known.Of(gvk); ok {
			resources[gvk] = r.GroupResource()
		}
	}
	return resources, nil
}
