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
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
)

// content returns what else would be lost with an object; empty if nothing. If it cannot be
// determined, that counts as a loss.
func (p *pruner) content(ctx context.Context, res connection.Resource, it *inventory.Item) string {
	var what string
	var err error
	switch it.ID().GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		what, err = p.foreignIn(ctx, it.Name)
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		what, err = p.instanceOf(ctx, res, it.ID())
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		what, err = p.volumeOf(ctx, res, it.ID())
	}
	if err != nil {
		return fmt.Sprintf("it cannot be told whether the %s has content: %v", it.Kind, connection.Plain(err))
	}
	if what != "" {
		return fmt.Sprintf("the %s has content that is not gitfleet's: %s", it.Kind, what)
	}
	return ""
}

// remainingIn returns an object of ours in a namespace; empty if there is none, or if the item
// is not a namespace. Objects that were to be deleted together with the namespace are gone at
// that point. The remaining ones are held or desired, or could not be removed yet.
func (p *pruner) remainingIn(ctx context.Context, it *inventory.Item) string {
	if (it.ID().GroupKind() != schema.GroupKind{Kind: "Namespace"}) {
		return ""
	}
	namespace, stays := it.Name, ""
	for _, inv := range p.inv {
		for it := range inv.Items.All() {
			if name := it.Kind + " " + it.Name; it.Namespace == namespace && (stays == "" || name < stays) {
				if l, err := p.present(ctx, &it); err != nil || l != nil && !l.Terminating {
					stays = name
				}
			}
		}
	}
	return stays
}

// instanceOf returns an object of the kind that a CustomResourceDefinition defines, unless the
// object is terminating.
func (p *pruner) instanceOf(ctx context.Context, res connection.Resource, id api.ID) (string, error) {
	crd, err := p.conn.Read(ctx, res, id)
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
		return p.firstLost(ctx, r, plural, "", func(o *metav1.PartialObjectMetadata) bool { return o.DeletionTimestamp == nil })
	}
	return "", nil
}

// volumeOf returns the volume that a claim is bound to.
func (p *pruner) volumeOf(ctx context.Context, res connection.Resource, id api.ID) (string, error) {
	claim, err := p.conn.Read(ctx, res, id)
	if err != nil || claim == nil {
		return "", err
	}
	if volume, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName"); volume != "" {
		return "the volume " + volume, nil
	}
	return "", nil
}

// foreignIn returns an object in a namespace that is not ours, has no owner, and is not one
// that Kubernetes creates in every namespace.
func (p *pruner) foreignIn(ctx context.Context, namespace string) (string, error) {
	asking, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	client, err := p.conn.Discovery()
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
			if !slices.Contains(r.Verbs, "list") || ephemeral[schema.GroupKind{Group: gv.Group, Kind: r.Kind}] {
				continue
			}
			kind := schema.GroupKind{Group: gv.Group, Kind: r.Kind}
			name, err := p.firstLost(ctx, gv.WithResource(r.Name), r.Kind, namespace, func(o *metav1.PartialObjectMetadata) bool { return !p.deletableWithNamespace(o, kind) })
			if err != nil || name != "" {
				return name, err
			}
		}
	}
	return "", nil
}

// ephemeral are kinds whose objects come and go by themselves.
var ephemeral = map[schema.GroupKind]bool{
	{Kind: "Event"}: true, {Group: "events.k8s.io", Kind: "Event"}: true,
	{Kind: "Endpoints"}: true, {Group: "discovery.k8s.io", Kind: "EndpointSlice"}: true,
	{Group: "coordination.k8s.io", Kind: "Lease"}: true,
	{Group: "metrics.k8s.io", Kind: "PodMetrics"}: true,
}

// firstLost returns an object of one kind that would be lost, in one namespace or in all.
func (p *pruner) firstLost(ctx context.Context, r schema.GroupVersionResource, kind, namespace string, lost func(*metav1.PartialObjectMetadata) bool) (string, error) {
	opts := metav1.ListOptions{Limit: 500}
	for {
		list, err := p.conn.Page(ctx, r, namespace, &opts)
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

// deletableWithNamespace reports whether an object may be deleted with its namespace. An object
// with our label must also be in an inventory, since copies of an object have its labels.
func (p *pruner) deletableWithNamespace(o *metav1.PartialObjectMetadata, kind schema.GroupKind) bool {
	if systemObject(kind, o.Name) || len(o.OwnerReferences) > 0 || o.DeletionTimestamp != nil {
		return true
	}
	id := api.ID{Group: kind.Group, Kind: kind.Kind, Namespace: o.Namespace, Name: o.Name}
	return o.Labels[api.ManagedByLabel] == p.cfg.Fleet && slices.ContainsFunc(slices.Collect(maps.Values(p.inv)), func(inv *inventory.Inventory) bool { return inv.Items.Has(id) })
}

// systemObject reports whether Kubernetes itself creates such an object in every namespace.
func systemObject(kind schema.GroupKind, name string) bool {
	return kind == schema.GroupKind{Kind: "ServiceAccount"} && name == "default" ||
		kind == schema.GroupKind{Kind: "ConfigMap"} && name == "kube-root-ca.crt"
}
