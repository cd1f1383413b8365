package kubeapi

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A manifest is an object of the hub as in Git, with the values of Secrets masked.
type manifest struct {
	o     *api.Object
	known ledger.Declared
}

func (m manifest) Key() (string, string) { return m.o.ID.Namespace, m.o.ID.Name }

func (m manifest) Same(old store.Source) bool {
	was := old.(manifest)
	return was.known == m.known && (was.o == m.o || was.o.Hash == m.o.Hash && was.o.Origin == m.o.Origin)
}

func (m manifest) Object() *store.Object {
	u := m.o.Object
	meta := metav1.ObjectMeta{
		Name: m.o.ID.Name, Namespace: m.o.ID.Namespace, Labels: u.GetLabels(), Annotations: shown(u).GetAnnotations(),
		UID: status.UID(m.known.Created, m.o.ID.Group, m.o.ID.Kind, m.o.ID.Namespace, m.o.ID.Name),
	}
	meta = metaOf(meta, m.o.Origin, m.known)
	o := &store.Object{ObjectMeta: meta, Value: m.o}
	o.APIVersion, o.Kind = u.GetAPIVersion(), u.GetKind()
	o.Content = func(meta metav1.ObjectMeta) (any, error) {
		content := maps.Clone(shown(u).Object)
		inner, _ := content["metadata"].(map[string]any)
		inner = maps.Clone(inner)
		inner["uid"], inner["resourceVersion"], inner["generation"] = meta.UID, meta.ResourceVersion, meta.Generation
		inner["creationTimestamp"], inner["annotations"] = meta.CreationTimestamp, meta.Annotations
		content["metadata"] = inner
		return content, nil
	}
	return o
}

// shown returns the object with secret values masked. Most objects have none and are not
// copied.
func shown(u *unstructured.Unstructured) *unstructured.Unstructured {
	redacted := diff.Redact(u)
	if u.GetKind() == "Secret" && u.GetAPIVersion() == "v1" {
		encodable(redacted.Object)
	}
	return redacted
}

// encodable encodes the masked values of a Secret as base64, as clients expect.
func encodable(secret map[string]any) {
	data, _ := secret["data"].(map[string]any)
	for key, value := range data {
		if value == diff.Mask {
			data[key] = maskedData
		}
	}
}

// A declared is a kind of configuration that has no status: an override.
type declared struct {
	of      any
	kind    metav1.TypeMeta
	meta    metav1.ObjectMeta
	origin  api.Origin
	hashes  hub.Hashes
	known   ledger.Declared
	content func(metav1.ObjectMeta) any
}

func (d declared) Key() (string, string) { return d.meta.Namespace, d.meta.Name }

func (d declared) Same(old store.Source) bool {
	was := old.(declared)
	return was.known == d.known && was.hashes == d.hashes && was.origin == d.origin
}

func (d declared) Object() *store.Object {
	meta := d.meta
	meta.UID = status.UID(d.known.Created, d.kind.Kind, meta.Namespace, meta.Name)
	return &store.Object{
		TypeMeta: d.kind, ObjectMeta: metaOf(meta, d.origin, d.known), Value: d.of,
		Content: func(meta metav1.ObjectMeta) (any, error) { return d.content(meta), nil },
	}
}

func clusterOverride(o *hub.ClusterOverride, known ledger.Declared) declared {
	spec := maskedClusterOverride(o.Spec)
	kind := metav1.TypeMeta{APIVersion: api.PlacementGroup + "/v1beta1", Kind: "ClusterResourceOverride"}
	return declared{o, kind, o.ObjectMeta, o.Origin, o.Hashes, known, func(meta metav1.ObjectMeta) any {
		return &api.ClusterResourceOverride{TypeMeta: kind, ObjectMeta: meta, Spec: spec}
	}}
}

func override(o *hub.Override, known ledger.Declared) declared {
	spec := maskedOverride(o.Spec)
	kind := metav1.TypeMeta{APIVersion: api.PlacementGroup + "/v1beta1", Kind: "ResourceOverride"}
	return declared{o, kind, o.ObjectMeta, o.Origin, o.Hashes, known, func(meta metav1.ObjectMeta) any {
		return &api.ResourceOverride{TypeMeta: kind, ObjectMeta: meta, Spec: spec}
	}}
}
