// Package content finds out what else would be lost if an object were deleted: objects in a
// namespace, instances of a CustomResourceDefinition, the volume of a claim.
package content

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// A Checker looks for content on one cluster. All fields must be set.
type Checker struct {
	Conn *connection.Conn
	// Fleet is the value of the managed-by label.
	Fleet string
	// Owns reports whether an inventory lists an object.
	Owns func(api.ID) bool
	// Timeout bounds the discovery of the kinds that a namespace may contain.
	Timeout time.Duration
}

// Of says what else would be lost with an object; empty if nothing. If it cannot be determined,
// that counts as a loss.
func (c *Checker) Of(ctx context.Context, res connection.Resource, id api.ID) string {
	var what string
	var err error
	switch id.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		what, err = c.foreignIn(ctx, id.Name)
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		what, err = c.instanceOf(ctx, res, id)
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		what, err = c.volumeOf(ctx, res, id)
	}
	if err != nil {
		return fmt.Sprintf("it cannot be told whether the %s has content: %v", id.Kind, connection.Plain(err))
	}
	if what != "" {
		return fmt.Sprintf("the %s has content that is not gitfleet's: %s", id.Kind, what)
	}
	return ""
}

// instanceOf returns an object of the kind that a CustomResourceDefinition defines, unless the
// object is terminating.
func (c *Checker) instanceOf(ctx context.Context, res connection.Resource, id api.ID) (string, error) {
	crd, err := c.Conn.Read(ctx, res, id)
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
		return c.firstLost(ctx, r, plural, "", func(o *metav1.PartialObjectMetadata) bool { return o.DeletionTimestamp == nil })
	}
	return "", nil
}

// volumeOf returns the volume that a claim is bound to.
func (c *Checker) volumeOf(ctx context.Context, res connection.Resource, id api.ID) (string, error) {
	claim, err := c.Conn.Read(ctx, res, id)
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
func (c *Checker) foreignIn(ctx context.Context, namespace string) (string, error) {
	asking, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	lists, err := c.Conn.PreferredResources(asking)
	if err != nil {
		return "", err
	}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return "", err
		}
		for _, r := range l.APIResources {
			kind := schema.GroupKind{Group: gv.Group, Kind: r.Kind}
			if !r.Namespaced || !slices.Contains(r.Verbs, "list") || ephemeral[kind] {
				continue
			}
			name, err := c.firstLost(ctx, gv.WithResource(r.Name), r.Kind, namespace, func(o *metav1.PartialObjectMetadata) bool { return !c.deletableWithNamespace(o, kind) })
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
func (c *Checker) firstLost(ctx context.Context, r schema.GroupVersionResource, kind, namespace string, lost func(*metav1.PartialObjectMetadata) bool) (string, error) {
	at := connection.Listing{ListOptions: metav1.ListOptions{Limit: 500}}
	for {
		list, err := c.Conn.Page(ctx, r, namespace, &at.ListOptions)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			if o := &list.Items[i]; lost(o) {
				return kind + " " + o.Name, nil
			}
		}
		if more, err := at.Next(list, len(list.Items)); !more {
			return "", err
		}
	}
}

// deletableWithNamespace reports whether an object may be deleted with its namespace. An object
// with our label must also be in an inventory, since copies of an object have its labels.
func (c *Checker) deletableWithNamespace(o *metav1.PartialObjectMetadata, kind schema.GroupKind) bool {
	if CreatedByKubernetes(kind, o.Name) || len(o.OwnerReferences) > 0 || o.DeletionTimestamp != nil {
		return true
	}
	id := api.ID{Group: kind.Group, Kind: kind.Kind, Namespace: o.Namespace, Name: o.Name}
	return o.Labels[api.ManagedByLabel] == c.Fleet && c.Owns(id)
}

// CreatedByKubernetes reports whether Kubernetes itself creates such an object in every namespace.
func CreatedByKubernetes(kind schema.GroupKind, name string) bool {
	return kind == schema.GroupKind{Kind: "ServiceAccount"} && name == "default" ||
		kind == schema.GroupKind{Kind: "ConfigMap"} && name == "kube-root-ca.crt"
}
