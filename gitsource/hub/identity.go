package hub

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validate/content"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
)

const ignoreHint = "if the file is not meant for the fleet, list it in " + tree.IgnoreFile

func kindOf(r *document.Report, object map[string]any) (runtimeschema.GroupVersionKind, bool) {
	if object["apiVersion"] == nil && object["kind"] == nil {
		if len(object) > 0 { // else no key could be read, and what was reported of them is of help
			r.DropProblems()
		}
		r.Errorf(r.Object, "not a Kubernetes object, since it has no apiVersion and no kind; %s", ignoreHint)
		return runtimeschema.GroupVersionKind{}, false
	}
	version, ok := mustString(r, object, "apiVersion")
	kind, ok2 := mustString(r, object, "kind")
	if !ok || !ok2 {
		return runtimeschema.GroupVersionKind{}, false
	}
	gv, ok := groupVersion(version)
	switch {
	case !ok:
		r.Errorf(r.Field("apiVersion"), "%q is not a group and version; write one such as v1 or apps/v1", version)
	case !isKind(kind):
		r.Errorf(r.Field("kind"), "%q is not a kind; write one such as ConfigMap", kind)
		ok = false
	}
	return gv.WithKind(kind), ok
}

// mustString reads a required top-level field.
func mustString(r *document.Report, object map[string]any, key string) (string, bool) {
	switch v := object[key].(type) {
	case nil:
	case string:
		if v != "" {
			return v, true
		}
	default:
		r.Errorf(r.Field(key), "must be a string, not %s", document.Describe(v))
		return "", false
	}
	r.Errorf(r.Field(key), "missing: a Kubernetes object has apiVersion, kind and metadata.name; %s", ignoreHint)
	return "", false
}

// groupVersion parses an apiVersion, and refuses those that no API server could serve.
func groupVersion(version string) (runtimeschema.GroupVersion, bool) {
	gv, err := runtimeschema.ParseGroupVersion(version)
	return gv, err == nil && len(validation.IsDNS1035Label(gv.Version)) == 0 && (gv.Group == "" || len(content.IsDNS1123Subdomain(gv.Group)) == 0)
}

// isKind reports whether an API server could serve a kind with this name: one in CamelCase.
func isKind(kind string) bool { return len(validation.IsDNS1035Label(strings.ToLower(kind))) == 0 }

// formerGroup is the former API group of KubeFleet's kinds.
const formerGroup = "fleet.azure.com"

var (
	// writtenByControllers are the kinds that users only read: KubeFleet's controllers or gitfleet
	// write them.
	writtenByControllers = strings.Fields(`ClusterResourcePlacementStatus ClusterResourceBinding ResourceBinding ClusterResourceSnapshot
		ResourceSnapshot ClusterSchedulingPolicySnapshot SchedulingPolicySnapshot ClusterResourceOverrideSnapshot
		ResourceOverrideSnapshot Work AppliedWork InternalMemberCluster`)
)

// isUnsupportedKind reports whether a kind is in one of gitfleet's groups and not supported, or is
// one of gitfleet's kinds in no group, its former group or a misspelled one. Placements are so in every other group: as content of
// another kind, what they have placed would be deleted.
func isUnsupportedKind(gvk runtimeschema.GroupVersionKind) bool {
	if !document.IsOwnGroup(gvk.Group) {
		gk, supported := kindNamed(gvk.Kind)
		return supported && (gvk.Group == formerGroup || gvk.Group == "" || isPlacementKind(gvk.Kind) || api.Closest(gvk.Group, []string{gk.Group}) != "")
	}
	kind, known := api.ManifestKinds[gvk.GroupKind()]
	return !known || !slices.Contains(kind.Versions, gvk.Version)
}

func isPlacementKind(kind string) bool {
	return kind == "ClusterResourcePlacement" || kind == "ResourcePlacement"
}

// validateUnsupported reports a kind or version that gitfleet does not support.
func validateUnsupported(r *document.Report, gvk runtimeschema.GroupVersionKind) {
	if gk, ok := kindNamed(gvk.Kind); ok {
		r.Errorf(r.Field("apiVersion"), "%s is not known in %s; write apiVersion: %s/%s",
			gvk.Kind, gvk.GroupVersion(), gk.Group, api.ManifestKinds[gk].Versions[0])
		return
	}
	switch {
	case slices.Contains(writtenByControllers, gvk.Kind):
		r.Warnf(r.Field("kind"), "%s is written by controllers and has no effect in Git; remove it", gvk.Kind)
	default:
		r.Errorf(r.Field("kind"), "unknown kind %s in group %s; %s", gvk.Kind, gvk.Group, schema.SuggestKnown(gvk.Kind, kindNames()))
	}
}

// kindNamed returns gitfleet's kind with a name.
func kindNamed(kind string) (api.GroupKind, bool) {
	for _, group := range []string{api.PlacementGroup, api.ClusterGroup, api.OverlayGroup} {
		gk := api.GroupKind{Group: group, Kind: kind}
		if _, ok := api.ManifestKinds[gk]; ok {
			return gk, true
		}
	}
	return api.GroupKind{}, false
}

// kindNames returns the kinds that users may mean, sorted.
func kindNames() []string {
	var names []string
	for gk := range api.ManifestKinds {
		names = append(names, gk.Kind)
	}
	slices.Sort(names)
	return names
}

// identity reads the name and namespace of an object.
func identity(r *document.Report, object map[string]any) (name, namespace string, ok bool) {
	metadata, isMap := object["metadata"].(map[string]any)
	if !isMap && object["metadata"] != nil {
		r.Errorf(r.Field("metadata"), "must be a mapping, not %s", document.Describe(object["metadata"]))
		return "", "", false
	}
	name, ok = nameIn(r, metadata, "name")
	namespace, ok2 := nameIn(r, metadata, "namespace")
	switch {
	case !ok || name != "":
	case metadata["generateName"] != nil:
		r.Errorf(r.Field("metadata", "generateName"), "objects with only generate name are not supported; write metadata.name")
		ok = false
	case !isMap:
		r.Errorf(r.Field("metadata"), "missing; give the object a name, or, %s", ignoreHint)
		ok = false
	default:
		r.Errorf(r.Field("metadata", "name"), "missing; give the object a name")
		ok = false
	}
	isTextMap(r, metadata["labels"], r.Field("metadata", "labels"))
	isTextMap(r, metadata["annotations"], r.Field("metadata", "annotations"))
	return name, namespace, ok && ok2
}

func nameIn(r *document.Report, metadata map[string]any, key string) (string, bool) {
	field := r.Field("metadata", key)
	switch v := metadata[key].(type) {
	case nil:
		return "", true
	case string:
		for _, msg := range content.IsPathSegmentName(v) {
			r.Errorf(field, "%q is not a valid name: it %s", v, msg)
			return "", false
		}
		if strings.ContainsFunc(v, unicode.IsControl) {
			r.Errorf(field, "%q is not a valid name: it contains control characters", v)
			return "", false
		}
		return v, true
	default:
		r.Errorf(field, "must be a string, not %s; put it in quotes", document.Describe(v))
		return "", false
	}
}

// isTextMap reports whether a field is a mapping of strings, or missing.
func isTextMap(r *document.Report, value any, p *document.FieldPath) bool {
	m, isMap := value.(map[string]any)
	if !isMap && value != nil {
		r.Errorf(p, "must be a mapping, not %s", document.Describe(value))
		return false
	}
	ok := true
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if _, isString := m[key].(string); !isString {
			ok = false
			r.Errorf(p.Child(key), "must be a string, not %s; put it in quotes", document.Describe(m[key]))
		}
	}
	return ok
}

// checkBuiltinScope compares the namespace of an object with the scope of its kind, if the kind
// is built in.
func checkBuiltinScope(r *document.Report, it *item, object map[string]any) bool {
	namespaced, known := api.Namespaced(it.id.GroupKind())
	it.custom = !known
	switch {
	case known && namespaced && it.id.Namespace == "":
		r.Errorf(r.Field("metadata", "namespace"), needsNamespace, api.WithArticle(it.id.Kind))
		return false
	case known && !namespaced && it.id.Namespace != "":
		if !it.built() {
			r.Warnf(r.Field("metadata", "namespace"), dropsNamespace, api.WithArticle(it.id.Kind))
		}
		delete(object["metadata"].(map[string]any), "namespace")
		it.id.Namespace = ""
	}
	return true
}

const (
	needsNamespace = "missing: %s is namespaced; write the namespace"
	dropsNamespace = "%s is cluster-scoped; this is ignored, remove it"
)
