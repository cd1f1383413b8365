package kubeapi

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/printer"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// A declared is an object of the commit in force.
type declared struct {
	namespace, name string
	version         declaredVersion
	object          func(declaredVersion) *store.Object
}

// A declaredVersion is the same while the object is.
type declaredVersion struct {
	hash   string
	origin api.Origin
	known  ledger.Declared
}

func (d declared) Key() (string, string) { return d.namespace, d.name }

func (d declared) Same(old store.Source) bool { return d.version == old.(declared).version }

func (d declared) Object() *store.Object { return d.object(d.version) }

// Transient implements store.Transient: a commit may have 10,000 objects, of which clients read few.
func (d declared) Transient() {}

// manifest returns an object of the hub as in Git, with the values of Secrets masked.
func manifest(m *api.Object, known ledger.Declared) declared {
	return declared{m.ID.Namespace, m.ID.Name, declaredVersion{m.Hash, m.Origin, known}, func(version declaredVersion) *store.Object {
		u := m.Content
		annotations := u.GetAnnotations()
		if len(annotations) > 0 { // most objects have none, and a masked copy takes memory
			annotations = shown(u).GetAnnotations()
		}
		o := &store.Object{Value: m, ObjectMeta: metaOf(metav1.ObjectMeta{
			Name: m.ID.Name, Namespace: m.ID.Namespace, Labels: u.GetLabels(), Annotations: annotations,
			UID: metadata.UID(version.known.Created, m.ID.Group, m.ID.Kind, m.ID.Namespace, m.ID.Name),
		}, version.origin, version.known)}
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
	}}
}

// shown returns a copy of the object with secret values masked.
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

// configuration returns an object of a kind that has no status: an override.
func configuration(of any, k *kind, meta metav1.ObjectMeta, version declaredVersion, content func(metav1.TypeMeta, metav1.ObjectMeta) any) declared {
	return declared{meta.Namespace, meta.Name, version, func(version declaredVersion) *store.Object {
		o := &store.Object{Value: of, ObjectMeta: metaOf(meta, version.origin, version.known)}
		o.APIVersion, o.Kind = k.gvk(k.versions[0]).ToAPIVersionAndKind()
		o.UID = metadata.UID(version.known.Created, k.name, meta.Namespace, meta.Name)
		o.Content = func(meta metav1.ObjectMeta) (any, error) { return content(o.TypeMeta, meta), nil }
		return o
	}}
}

func clusterOverride(o *hub.ClusterOverride, known ledger.Declared) declared {
	spec := maskedClusterOverride(o.Spec)
	return configuration(o, clusterOverrides, o.ObjectMeta, declaredVersion{o.Hash, o.Origin, known}, func(kind metav1.TypeMeta, meta metav1.ObjectMeta) any {
		return &api.ClusterResourceOverride{TypeMeta: kind, ObjectMeta: meta, Spec: spec}
	})
}

func override(o *hub.Override, known ledger.Declared) declared {
	spec := maskedOverride(o.Spec)
	return configuration(o, overrides, o.ObjectMeta, declaredVersion{o.Hash, o.Origin, known}, func(kind metav1.TypeMeta, meta metav1.ObjectMeta) any {
		return &api.ResourceOverride{TypeMeta: kind, ObjectMeta: meta, Spec: spec}
	})
}

func strategy(k *kind, o *hub.StagedManifest, spec *api.StagedUpdateStrategySpec, known ledger.Declared) declared {
	return configuration(o, k, o.ObjectMeta, declaredVersion{o.Hash, o.Origin, known}, func(kind metav1.TypeMeta, meta metav1.ObjectMeta) any {
		return &api.ClusterStagedUpdateStrategy{TypeMeta: kind, ObjectMeta: meta, Spec: *spec}
	})
}

func budget(o *hub.Budget, known ledger.Declared) declared {
	return configuration(o, budgets, o.ObjectMeta, declaredVersion{o.Hash, o.Origin, known}, func(kind metav1.TypeMeta, meta metav1.ObjectMeta) any {
		return &api.ClusterResourcePlacementDisruptionBudget{TypeMeta: kind, ObjectMeta: meta, Spec: o.Spec}
	})
}

func rolloutWindow(o *hub.Window, known ledger.Declared) declared {
	return configuration(printer.Window{Spec: &o.Spec, Compiled: o.Compiled}, windows, o.ObjectMeta, declaredVersion{o.Hash, o.Origin, known}, func(kind metav1.TypeMeta, meta metav1.ObjectMeta) any {
		return &api.RolloutWindow{TypeMeta: kind, ObjectMeta: meta, Spec: o.Spec}
	})
}

func gate(o *hub.Gate, known ledger.Declared) declared {
	return configuration(o.RolloutGate, gates, o.ObjectMeta, declaredVersion{o.Hash, o.Origin, known}, func(kind metav1.TypeMeta, meta metav1.ObjectMeta) any {
		return &api.RolloutGate{TypeMeta: kind, ObjectMeta: meta, Spec: o.Spec}
	})
}

// metaOf returns the metadata of a declared object as it is served.
func metaOf(meta metav1.ObjectMeta, origin api.Origin, known ledger.Declared) metav1.ObjectMeta {
	meta.Annotations = maps.Clone(meta.Annotations)
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[api.CommitAnnotation], meta.Annotations[api.PathAnnotation] = known.Commit, origin.String()
	meta.Generation = known.Generation
	meta.CreationTimestamp = metav1.NewTime(known.Created)
	return meta
}
