package work

import (
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// open opens the envelopes of a selection and keeps the other objects. builds returns the objects of an overlay. Of
// two objects with the same ID the first wins, and objects outside of envelopes come first.
func open(key api.PlacementKey, selected []*api.Object, scope Scope, builds func(*api.Object) ([]*api.Object, error)) content {
	o := &opener{within: key.Namespace, scope: scope, builds: builds, seen: map[api.ID]bool{}}
	o.envelopes = map[api.ID]bool{}
	if scope == nil {
		o.scope = func(api.GroupKind) (bool, bool) { return false, false }
	}
	var envelopes []*api.Object
	for _, object := range placement.Sorted(selected, func(o *api.Object) *api.Object { return o }) {
		if envelopeType(object) == "" {
			o.add(&Manifest{Object: object})
		} else {
			o.envelopes[object.ID] = true
			envelopes = append(envelopes, object)
		}
	}
	for _, e := range envelopes {
		o.unwrap(e)
	}
	if len(envelopes) > 0 {
		o.manifests = Sorted(o.manifests)
		o.refused = placement.Sorted(o.refused, func(r Refused) *api.Object { return r.Object })
	}
	return o.content
}

// envelopeType returns the type of an envelope; "" if the object is none.
func envelopeType(o *api.Object) api.EnvelopeType {
	switch o.ID.GroupKind() {
	case api.GroupKind{Group: api.PlacementGroup, Kind: "ClusterResourceEnvelope"}:
		return api.ClusterResourceEnvelopeType
	case api.GroupKind{Group: api.PlacementGroup, Kind: "ResourceEnvelope"}:
		return api.ResourceEnvelopeType
	case api.GroupKind{Kind: "ConfigMap"}:
		if api.IsEnvelopeConfigMap(o.Content.Object) {
			return api.ConfigMapEnvelopeType
		}
	}
	if o.Overlay != nil {
		return api.EnvelopeType(o.ID.Kind)
	}
	return ""
}

func (o *opener) unwrap(envelope *api.Object) {
	id := &api.EnvelopeIdentifier{Name: envelope.ID.Name, Namespace: envelope.ID.Namespace, Type: envelopeType(envelope)}
	if id.Type.IsBuilt() {
		o.addBuilt(envelope, id)
		return
	}
	data, ok := envelope.Content.Object["data"].(map[string]any)
	if !ok && envelope.Content.Object["data"] != nil {
		o.problem("envelope %s: data is not a map", objectName(id.Namespace, id.Name))
		return
	}
	if id.Type == api.ConfigMapEnvelopeType {
		o.warnDoubtful(envelope)
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if id.Type == api.ConfigMapEnvelopeType {
			o.unwrapConfigMapEntry(envelope, id, key, data[key])
		} else {
			o.unwrapEnvelopeEntry(envelope, id, key, data[key])
		}
	}
}

// unwrapEnvelopeEntry reads one entry of a ResourceEnvelope or a ClusterResourceEnvelope. Only
// the namespace in the entry counts, not the scope of its kind.
func (o *opener) unwrapEnvelopeEntry(envelope *api.Object, id *api.EnvelopeIdentifier, key string, value any) {
	ref := objectName(id.Namespace, id.Name)
	object, err := objectOf(value)
	if err != nil {
		o.problem("failed to parse the wrapped manifest data to a Kubernetes runtime object (manifestKey=%s,envelopeObjRef=%s): %w", key, ref, err)
		return
	}
	namespace := object.GetNamespace()
	name := objectName(namespace, object.GetName())
	clusterWide := id.Type == api.ClusterResourceEnvelopeType
	switch {
	case clusterWide && namespace != "":
		o.problem("a namespaced object %s (%s) has been wrapped in a cluster resource envelope %s", key, name, ref)
	case !clusterWide && namespace == "":
		o.problem("a cluster scope object %s (%s) has been wrapped in a resource envelope %s", key, name, ref)
	case !clusterWide && namespace != id.Namespace:
		o.problem("a namespaced object %s (%s) in has been wrapped in a resource envelope from another namespace (%s)", key, name, ref)
	default:
		o.addWrapped(envelope, id, key, object)
	}
}

// addBuilt adds the objects of an overlay.
func (o *opener) addBuilt(envelope *api.Object, id *api.EnvelopeIdentifier) {
	objects, err := o.builds(envelope)
	if err != nil {
		o.problem("%s: %s: %w", envelope.Overlay.At, envelope.ID, err)
		return
	}
	for _, object := range objects {
		namespace := o.reserved(object.Content)
		if namespace != "" && !(object.ID.Namespace == namespace && slices.Contains(envelope.Overlay.ReservedNamespaces, namespace)) {
			o.problem("%s: %s of %s: namespace %s is not allowed to propagate%s", object.Origin, object.ID, envelope.ID, namespace, api.ReservedHint(namespace))
			continue
		}
		o.add(&Manifest{Object: object, Envelope: id})
	}
}
