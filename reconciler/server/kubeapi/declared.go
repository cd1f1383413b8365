package kubeapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
)

// A manifest is an object of the hub as it stands in Git, but for the values of
// Secrets.
type manifest struct{ o *api.Object }

func (m manifest) Key() (string, string) { return m.o.ID.Namespace, m.o.ID.Name }
func (m manifest) Of() any               { return m.o }

func (m manifest) First(at store.Moment) store.Known { return first(at) }

func (m manifest) Next(at store.Moment, old store.Source, known store.Known) (store.Known, bool) {
	was := old.(manifest)
	if was.o.Hash == m.o.Hash && was.o.Origin == m.o.Origin {
		return known, false
	}
	if was.o.Hash != m.o.Hash {
		known.Generation++
		known.Commit = at.Commit
	}
	return known, true
}

func (m manifest) Object(known store.Known) *store.Object {
	u := m.o.Object
	meta := metav1.ObjectMeta{
		Name: m.o.ID.Name, Namespace: m.o.ID.Namespace, Labels: u.GetLabels(), Annotations: shown(u).GetAnnotations(),
		UID: types.UID(derivedUID(m.o.ID.Group, m.o.ID.Kind, m.o.ID.Namespace, m.o.ID.Name)),
	}
	meta = declaredMeta(meta, m.o.Origin, known)
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

// shown is the object without what must not be shown. Most have nothing of the
// kind, and are not copied.
func shown(u *unstructured.Unstructured) *unstructured.Unstructured {
	redacted := diff.Redact(u)
	if u.GetKind() == "Secret" && u.GetAPIVersion() == "v1" {
		encodable(redacted.Object)
	}
	return redacted
}

// encodable makes the masked values of a Secret such as a client can read: it
// expects base64 there.
func encodable(secret map[string]any) {
	data, _ := secret["data"].(map[string]any)
	for key, value := range data {
		if value == diff.Mask {
			data[key] = maskedData
		}
	}
}

// A declared is a configuration of gitfleet that has no status: an override.
type declared struct {
	of      any
	kind    metav1.TypeMeta
	meta    metav1.ObjectMeta
	spec    any
	origin  api.Origin
	content func(metav1.ObjectMeta) any
}

func (d declared) Key() (string, string) { return d.meta.Namespace, d.meta.Name }
func (d declared) Of() any               { return d.of }

func (d declared) First(at store.Moment) store.Known { return first(at) }

func (d declared) Next(at store.Moment, old store.Source, known store.Known) (store.Known, bool) {
	was := old.(declared)
	if !reflect.DeepEqual(was.spec, d.spec) {
		known.Generation++
	} else if reflect.DeepEqual(was.meta, d.meta) {
		if was.origin == d.origin {
			return known, false
		}
		return known, true
	}
	known.Commit = at.Commit
	return known, true
}

func (d declared) Object(known store.Known) *store.Object {
	meta := d.meta
	meta.UID = types.UID(derivedUID(d.kind.Kind, meta.Namespace, meta.Name))
	return &store.Object{
		TypeMeta: d.kind, ObjectMeta: declaredMeta(meta, d.origin, known), Value: d.of,
		Content: func(meta metav1.ObjectMeta) (any, error) { return d.content(meta), nil },
	}
}

func clusterOverride(o *hub.ClusterOverride) declared {
	spec := maskedClusterOverride(o.Spec)
	kind := metav1.TypeMeta{APIVersion: api.PlacementGroup + "/v1beta1", Kind: "ClusterResourceOverride"}
	return declared{o, kind, o.ObjectMeta, o.Spec, o.Origin, func(meta metav1.ObjectMeta) any {
		return &api.ClusterResourceOverride{TypeMeta: kind, ObjectMeta: meta, Spec: spec}
	}}
}

func override(o *hub.Override) declared {
	spec := maskedOverride(o.Spec)
	kind := metav1.TypeMeta{APIVersion: api.PlacementGroup + "/v1beta1", Kind: "ResourceOverride"}
	return declared{o, kind, o.ObjectMeta, o.Spec, o.Origin, func(meta metav1.ObjectMeta) any {
		return &api.ResourceOverride{TypeMeta: kind, ObjectMeta: meta, Spec: spec}
	}}
}

// declaredMeta adds what a client of Kubernetes expects to find.
func declaredMeta(meta metav1.ObjectMeta, origin api.Origin, known store.Known) metav1.ObjectMeta {
	meta = metaOf(meta, known)
	meta.Annotations[api.PathAnnotation] = origin.String()
	return meta
}

// derivedUID is the same for the same object at every time, on every machine.
func derivedUID(parts ...string) string {
	h := sha256.Sum256([]byte(fmt.Sprint(strings.Join(parts, "\x00"), "\x00")))
	s := hex.EncodeToString(h[:16])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
