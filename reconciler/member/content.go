package member

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/gitfleet/gitfleet/placement/api"
)

// content says what would be lost with an object beside itself; empty if
// nothing. What cannot be found out counts as a loss.
func (s *session) content(ctx context.Context, res resource, it *item) string {
	var what string
	var err error
	switch it.id().GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		what, err = s.inNamespace(ctx, it.Name)
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		what, err = s.ofDefinition(ctx, res, it.id())
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		what, err = s.inClaim(ctx, res, it.id())
	}
	if err != nil {
		return fmt.Sprintf("it cannot be told whether the %s has content: %v", it.Kind, plain(err))
	}
	if what != "" {
		return fmt.Sprintf("the %s has content that is not gitfleet's: %s", it.Kind, what)
	}
	return ""
}

// staysIn names an object of ours in a namespace; empty if there is none, or it
// is no namespace. What was to go with it has gone before, and what is left is
// held, wanted, or could not be removed yet.
func (s *session) staysIn(ctx context.Context, it *item) string {
	if (it.id().GroupKind() != schema.GroupKind{Kind: "Namespace"}) {
		return ""
	}
	namespace, stays := it.Name, ""
	for _, inv := range s.inv {
		for it := range inv.items.all() {
			if name := it.Kind + " " + it.Name; it.Namespace == namespace && (stays == "" || name < stays) {
				if l, err := s.present(ctx, &it); err != nil || l != nil && !l.terminating {
					stays = name
				}
			}
		}
	}
	return stays
}

// ofDefinition names an object of the kind that a definition defines, and that is
// not on its way out.
func (s *session) ofDefinition(ctx context.Context, res resource, id api.ID) (string, error) {
	crd, err := s.read(ctx, res, id)
	if err != nil || crd == nil {
		return "", err
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if served, _ := version["served"].(bool); !served {
			continue
		}
		name, _ := version["name"].(string)
		r := schema.GroupVersionResource{Group: group, Version: name, Resource: plural}
		return s.first(ctx, r, plural, "", func(o *metav1.PartialObjectMetadata) bool { return o.DeletionTimestamp == nil })
	}
	return "", nil
}

// inClaim names the volume that a claim is bound to.
func (s *session) inClaim(ctx context.Context, res resource, id api.ID) (string, error) {
	claim, err := s.read(ctx, res, id)
	if err != nil || claim == nil {
		return "", err
	}
	if volume, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName"); volume != "" {
		return "the volume " + volume, nil
	}
	return "", nil
}

// inNamespace names something in a namespace that is neither ours, nor owned by
// something else, nor made by Kubernetes for every namespace.
func (s *session) inNamespace(ctx context.Context, namespace string) (string, error) {
	asking, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	client, err := s.conn().discovery()
	if err != nil {
		return "", err
	}
	lists, err := discovery.ServerPreferredNamespacedResourcesWithContext(asking, client)
	if err != nil {
		return "", err
	}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return "", err
		}
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "list") || passing[schema.GroupKind{Group: gv.Group, Kind: r.Kind}] {
				continue
			}
			kind := schema.GroupKind{Group: gv.Group, Kind: r.Kind}
			name, err := s.first(ctx, gv.WithResource(r.Name), r.Kind, namespace, func(o *metav1.PartialObjectMetadata) bool { return !s.dispensable(o, kind) })
			if err != nil || name != "" {
				return name, err
			}
		}
	}
	return "", nil
}

// passing are kinds whose objects come and go by themselves.
var passing = map[schema.GroupKind]bool{
	{Kind: "Event"}: true, {Group: "events.k8s.io", Kind: "Event"}: true,
	{Kind: "Endpoints"}: true, {Group: "discovery.k8s.io", Kind: "EndpointSlice"}: true,
	{Group: "coordination.k8s.io", Kind: "Lease"}: true,
	{Group: "metrics.k8s.io", Kind: "PodMetrics"}: true,
}

// first names an object of one kind, in a namespace or in all, that would be lost.
func (s *session) first(ctx context.Context, r schema.GroupVersionResource, kind, namespace string, lost func(*metav1.PartialObjectMetadata) bool) (string, error) {
	opts := metav1.ListOptions{Limit: 500}
	for {
		list, err := s.page(ctx, r, namespace, opts)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			if o := &list.Items[i]; lost(o) {
				return kind + " " + o.Name, nil
			}
		}
		if opts.Continue = list.Continue; opts.Continue == "" {
			return "", nil
		}
	}
}

// dispensable reports whether an object may be deleted with its namespace. An object
// with our label must also be in an inventory, since copies of an object keep its labels.
func (s *session) dispensable(o *metav1.PartialObjectMetadata, kind schema.GroupKind) bool {
	if given(kind, o.Name) || len(o.OwnerReferences) > 0 || o.DeletionTimestamp != nil {
		return true
	}
	id := api.ID{Group: kind.Group, Kind: kind.Kind, Namespace: o.Namespace, Name: o.Name}
	return o.Labels[api.ManagedByLabel] == s.cfg.Fleet && slices.ContainsFunc(slices.Collect(maps.Values(s.inv)), func(inv *inventory) bool { return inv.items.has(id) })
}

// given reports whether Kubernetes itself puts such an object into every
// namespace.
func given(kind schema.GroupKind, name string) bool {
	return kind == schema.GroupKind{Kind: "ServiceAccount"} && name == "default" ||
		kind == schema.GroupKind{Kind: "ConfigMap"} && name == "kube-root-ca.crt"
}

func (s *session) page(ctx context.Context, r schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	client, err := s.conn().metadata()
	if err != nil {
		return nil, err
	}
	return fittingPage(opts, func(opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
		defer cancel()
		return client.Resource(r).Namespace(namespace).List(ctx, opts)
	})
}
