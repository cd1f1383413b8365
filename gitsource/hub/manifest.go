package hub

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
)

// addItems adds the items of one document: one, or those of a list.
func (p *parsed) addItems(r *document.Report, value any) {
	if object, isMap := value.(map[string]any); isMap && object["apiVersion"] != nil && api.IsEncryptedDocument(object) && !p.forClusters {
		p.objects = true
		p.unreadable = append(p.unreadable, r.Origin)
		r.AddUndecrypted(r.Object, "%s", api.UnreadableMessage(object))
		return
	}
	eachObject(r, value, "not a Kubernetes object but %s; "+ignoreHint, func(r *document.Report, gvk schema.GroupVersionKind, object map[string]any) {
		p.objects = true
		if it := objectItem(r, gvk, object); it != nil {
			p.items = append(p.items, it)
		} else {
			meta, _ := object["metadata"].(map[string]any)
			name, _ := meta["name"].(string)
			namespace, _ := meta["namespace"].(string)
			p.invalid = append(p.invalid, api.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: namespace, Name: name})
		}
	})
}

// eachObject calls visit with the object of a document, or with each object of a list. notObject
// is the message for other values, and is formatted with their description.
func eachObject(r *document.Report, value any, notObject string, visit func(*document.Report, schema.GroupVersionKind, map[string]any)) {
	object, ok := value.(map[string]any)
	if !ok {
		r.Errorf(r.Object, notObject, document.Describe(value))
		return
	}
	if api.IsEncryptedDocument(object) {
		r.Errorf(r.Object, "this is encrypted with SOPS as a whole, so that nothing says which object it is; encrypt values only (encrypted_regex), list the file in %s, or %s", tree.IgnoreFile, api.KeyAdvice)
		return
	}
	gvk, ok := kindOf(r, object)
	if !ok {
		return
	}
	items, isList := object["items"].([]any)
	if !isList || !strings.HasSuffix(gvk.Kind, "List") {
		visit(r, gvk, object)
		return
	}
	for i, value := range items {
		sub := r.Item(i)
		if object, ok := value.(map[string]any); ok && gvk.Kind != "List" && object["apiVersion"] == nil && object["kind"] == nil {
			// the items of a typed list may leave them out
			object["apiVersion"], object["kind"] = gvk.GroupVersion().String(), strings.TrimSuffix(gvk.Kind, "List")
		}
		eachObject(sub, value, notObject, visit)
		r.Merge(sub)
	}
}

const ignoreHint = "if the file is not meant for the fleet, list it in " + tree.IgnoreFile

func kindOf(r *document.Report, object map[string]any) (schema.GroupVersionKind, bool) {
	if object["apiVersion"] == nil && object["kind"] == nil {
		r.Errorf(r.Object, "not a Kubernetes object, since it has no apiVersion and no kind; %s", ignoreHint)
		return schema.GroupVersionKind{}, false
	}
	version, ok := mustString(r, object, "apiVersion")
	kind, ok2 := mustString(r, object, "kind")
	if !ok || !ok2 {
		return schema.GroupVersionKind{}, false
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

// groupVersion parses an apiVersion, and refuses those that no API server could serve.
func groupVersion(version string) (schema.GroupVersion, bool) {
	gv, err := schema.ParseGroupVersion(version)
	return gv, err == nil && len(validation.IsDNS1035Label(gv.Version)) == 0 && (gv.Group == "" || len(content.IsDNS1123Subdomain(gv.Group)) == 0)
}

// isKind reports whether an API server could serve a kind with this name: one in CamelCase.
func isKind(kind string) bool { return len(validation.IsDNS1035Label(strings.ToLower(kind))) == 0 }

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

func objectItem(r *document.Report, gvk schema.GroupVersionKind, object map[string]any) *item {
	if gvk.Group == "kustomize.config.k8s.io" {
		r.Errorf(r.Field("kind"), "a %s is read only from a file named %s; rename the file", gvk.Kind, build.FileNames[0])
		return nil
	}
	name, namespace, ok := identity(r, object)
	if !ok {
		return nil
	}
	if isUnsupportedKind(gvk) {
		validateUnsupported(r, gvk)
		return nil
	}
	it := &item{id: api.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: namespace, Name: name}, origin: r.Origin, top: r.Object}
	if !checkBuiltinScope(r, it, object) || createdByController(r, gvk, object) {
		return nil
	}
	strip(r, object)
	if _, own := api.ManifestKinds[gvk.GroupKind()]; own && !decodeOwnKind(r, it, gvk, object) {
		return nil
	}
	if it.isConfiguration() {
		return it
	}
	return validateContent(r, it, object)
}
