package hub

import (
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An item is one object of the commit. Of object, placement, cluster,
// clusterOverride and override one is set; none, if the item only stands for a
// definition.
type item struct {
	id     api.ID
	origin api.Origin

	object          *api.Object
	placement       *Placement
	cluster         *Cluster
	clusterOverride *ClusterOverride
	override        *Override

	// scope is what a custom resource definition declares.
	scope *declaredScope
	// custom says that the object's kind is not one that every cluster has.
	custom bool
	// lines are those of fields that are compared with other objects.
	lines map[string]int

	// variant is the item without its namespace, once that was needed.
	variant *item
	// seen is the load that last used the item.
	seen int
}

type declaredScope struct {
	kind       api.GroupKind
	namespaced bool
}

// judgeNode turns one document into items.
func judgeNode(r *report, root *yaml.Node, limits Limits, words vocabulary) []*item {
	c := &converter{r: r, limits: limits, words: words, ours: isOurs(root)}
	value, ok := c.document(root)
	if !ok {
		return nil
	}
	return judge(r, value)
}

func isOurs(root *yaml.Node) bool {
	version, _ := find(root, (*fieldPath)(nil).child("apiVersion"))
	return version != nil && ourGroup(groupOf(version.Value))
}

func groupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}

func ourGroup(group string) bool { return group == api.PlacementGroup || group == api.ClusterGroup }

// judge turns one document's value into items: one, or those of a list.
func judge(r *report, value any) []*item {
	object, ok := value.(map[string]any)
	if !ok {
		r.errorf(r.top, "not a Kubernetes object but %s; %s", describe(value), notOurs)
		return nil
	}
	gvk, ok := kindOf(r, object)
	if !ok {
		return nil
	}
	if items, isList := object["items"].([]any); isList && strings.HasSuffix(gvk.Kind, "List") {
		return judgeList(r, gvk, items)
	}
	if it := judgeObject(r, gvk, object); it != nil {
		return []*item{it}
	}
	return nil
}

const notOurs = "if the file is not meant for the fleet, list it in " + IgnoreFile

func judgeList(r *report, list schema.GroupVersionKind, items []any) []*item {
	var out []*item
	for i, value := range items {
		sub := r.item(i)
		if object, ok := value.(map[string]any); ok && list.Kind != "List" {
			// The items of a typed list may leave out what the list says.
			if object["apiVersion"] == nil && object["kind"] == nil {
				object["apiVersion"] = list.GroupVersion().String()
				object["kind"] = strings.TrimSuffix(list.Kind, "List")
			}
		}
		out = append(out, judge(sub, value)...)
		r.take(sub)
	}
	return out
}

func kindOf(r *report, object map[string]any) (schema.GroupVersionKind, bool) {
	if object["apiVersion"] == nil && object["kind"] == nil {
		r.errorf(r.top, "not a Kubernetes object, since it has no apiVersion and no kind; %s", notOurs)
		return schema.GroupVersionKind{}, false
	}
	version, ok := mustString(r, object, "apiVersion")
	kind, ok2 := mustString(r, object, "kind")
	if !ok || !ok2 {
		return schema.GroupVersionKind{}, false
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil || gv.Version == "" {
		r.errorf(r.field("apiVersion"), "%q is no group and version; write one such as v1 or apps/v1", version)
		return schema.GroupVersionKind{}, false
	}
	return gv.WithKind(kind), true
}

// mustString reads a top-level field that every object has.
func mustString(r *report, object map[string]any, key string) (string, bool) {
	switch v := object[key].(type) {
	case string:
		if v != "" {
			return v, true
		}
	case nil:
	default:
		r.errorf(r.field(key), "must be a string, not %s", describe(v))
		return "", false
	}
	r.errorf(r.field(key), "missing: a Kubernetes object has apiVersion, kind and metadata.name; %s", notOurs)
	return "", false
}

func judgeObject(r *report, gvk schema.GroupVersionKind, object map[string]any) *item {
	if kustomizeConfig(r, gvk) {
		return nil
	}
	name, namespace, ok := identity(r, object)
	if !ok {
		return nil
	}
	it := &item{id: api.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: namespace, Name: name}, origin: r.origin}
	if isStranger(gvk) {
		judgeStranger(r, gvk)
		return nil
	}
	if !scopeFits(r, it, object) {
		return nil
	}
	if controlled(r, gvk, object) {
		return nil
	}
	strip(r, object)
	if _, ours := api.Kinds[gvk.GroupKind()]; ours && !declare(r, it, gvk, object) {
		return nil
	}
	if it.isConfiguration() {
		return it
	}
	return judgeContent(r, it, object)
}

// note remembers the line of a field.
func (it *item) note(r *report, p *fieldPath) {
	if it.lines == nil {
		it.lines = map[string]int{}
	}
	it.lines[p.String()] = r.lineOf(p)
}

// at is the origin of a field, as far as it was noted.
func (it *item) at(field string) api.Origin {
	origin := it.origin
	if line, ok := it.lines[field]; ok {
		origin.Line = line
	}
	return origin
}

func (it *item) isConfiguration() bool {
	return it.placement != nil || it.cluster != nil || it.clusterOverride != nil || it.override != nil
}

func kustomizeConfig(r *report, gvk schema.GroupVersionKind) bool {
	if gvk.Group != "kustomize.config.k8s.io" {
		return false
	}
	r.errorf(r.field("kind"), "a %s is read only from a file named %s; rename the file", gvk.Kind, kustomizationNames[0])
	return true
}

// identity reads what names an object.
func identity(r *report, object map[string]any) (name, namespace string, ok bool) {
	metadata, isMap := object["metadata"].(map[string]any)
	if !isMap {
		if object["metadata"] != nil {
			r.errorf(r.field("metadata"), "must be a mapping, not %s", describe(object["metadata"]))
		} else {
			r.errorf(r.field("metadata", "name"), "missing; give the object a name")
		}
		return "", "", false
	}
	name, ok = nameIn(r, metadata, "name")
	namespace, ok2 := nameIn(r, metadata, "namespace")
	if ok && name == "" {
		ok = false
		if metadata["generateName"] != nil {
			r.errorf(r.field("metadata", "generateName"), "objects with only generate name are not supported; write metadata.name")
		} else {
			r.errorf(r.field("metadata", "name"), "missing; give the object a name")
		}
	}
	stringMap(r, metadata, "labels")
	stringMap(r, metadata, "annotations")
	return name, namespace, ok && ok2
}

func nameIn(r *report, metadata map[string]any, key string) (string, bool) {
	field := r.field("metadata", key)
	switch v := metadata[key].(type) {
	case nil:
		return "", true
	case string:
		for _, msg := range path.IsValidPathSegmentName(v) {
			r.errorf(field, "%q is no name: it %s", v, msg)
			return "", false
		}
		if strings.ContainsFunc(v, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }) {
			r.errorf(field, "%q is no name: it has blanks or unprintable letters", v)
			return "", false
		}
		return v, true
	default:
		r.errorf(field, "must be a string, not %s; put it in quotes", describe(v))
		return "", false
	}
}

func stringMap(r *report, metadata map[string]any, key string) {
	switch m := metadata[key].(type) {
	case nil:
	case map[string]any:
		allStrings(r, m, r.field("metadata", key))
	default:
		r.errorf(r.field("metadata", key), "must be a mapping, not %s", describe(m))
	}
}

// allStrings checks a mapping of strings, in the order of its keys.
func allStrings(r *report, m map[string]any, p *fieldPath) bool {
	ok := true
	for _, key := range sortedKeys(m) {
		if _, isString := m[key].(string); !isString {
			ok = false
			r.errorf(p.child(key), "must be a string, not %s; put it in quotes", describe(m[key]))
		}
	}
	return ok
}

// scopeFits compares the namespace of an object with the scope of its kind,
// where the kind is one that every cluster has.
func scopeFits(r *report, it *item, object map[string]any) bool {
	namespaced, known := api.Namespaced(it.id.GroupKind())
	it.custom = !known
	switch {
	case known && namespaced && it.id.Namespace == "":
		r.errorf(r.field("metadata", "namespace"), needsNamespace, it.id.Kind)
		return false
	case known && !namespaced && it.id.Namespace != "":
		r.warnf(r.field("metadata", "namespace"), dropsNamespace, it.id.Kind)
		delete(object["metadata"].(map[string]any), "namespace")
		it.id.Namespace = ""
	}
	return true
}

const (
	needsNamespace = "missing: a %s lives in a namespace, and none is assumed; write it"
	dropsNamespace = "a %s lives in no namespace; this is ignored, remove it"
)
