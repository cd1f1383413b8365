package member

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A resource is how the cluster serves a kind.
type resource struct {
	schema.GroupVersionResource
	namespaced bool
}

// path returns the URL path of an object of the resource.
func (r resource) path(id api.ID) []string {
	parts := []string{"apis", r.Group, r.Version}
	if r.Group == "" {
		parts = []string{"api", r.Version}
	}
	if r.namespaced {
		parts = append(parts, "namespaces", id.Namespace)
	}
	return append(parts, r.Resource, id.Name)
}

// kinds knows how the cluster serves the kinds we have asked for. It asks the
// server as rarely as it can, and keeps only what was asked for.
type kinds struct {
	client discovery.DiscoveryInterface
	known  map[schema.GroupVersionKind]resource
	asked  bool
}

// resolve finds out about kinds. What the server does not serve is missing
// from known afterwards; err means that it could not be asked.
func (k *kinds) resolve(ctx context.Context, wanted map[schema.GroupVersionKind]bool) error {
	missing := map[schema.GroupVersion]bool{}
	for gvk := range wanted {
		if _, ok := k.known[gvk]; !ok {
			missing[gvk.GroupVersion()] = true
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if !k.asked && len(missing) > 2 {
		return k.resolveAll(wanted)
	}
	for gv := range missing {
		list, err := k.client.ServerResourcesForGroupVersion(gv.String())
		if notFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("ask for the kinds of %s: %w", gv, err)
		}
		k.note(gv, list, wanted)
	}
	return ctx.Err()
}

// resolveAll asks for everything at once: two requests, whatever the number of
// group versions.
func (k *kinds) resolveAll(wanted map[schema.GroupVersionKind]bool) error {
	_, byGV, failed, err := k.client.(discovery.AggregatedDiscoveryInterface).GroupsAndMaybeResources()
	if err != nil {
		return fmt.Errorf("ask for the kinds: %w", err)
	}
	if byGV == nil {
		return nil // a server without aggregated discovery is asked piece by piece next time
	}
	for gvk := range wanted {
		if err := failed[gvk.GroupVersion()]; err != nil {
			return fmt.Errorf("ask for the kinds of %s: %w", gvk.GroupVersion(), err)
		}
	}
	k.asked = true
	for gv, list := range byGV {
		k.note(gv, list, wanted)
	}
	return nil
}

func (k *kinds) note(gv schema.GroupVersion, list *metav1.APIResourceList, wanted map[schema.GroupVersionKind]bool) {
	for _, r := range list.APIResources {
		gvk := gv.WithKind(r.Kind)
		if wanted[gvk] && !strings.Contains(r.Name, "/") {
			k.known[gvk] = resource{gv.WithResource(r.Name), r.Namespaced}
		}
	}
}
