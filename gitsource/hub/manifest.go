package hub

import (
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/gitsource/hub/serverfields"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/listitem"
)

// A parsed has the items of one file or one build.
type parsed struct {
	document.File
	items []*item
	// invalid are the objects that have problems of their own, so that they are not among the items.
	invalid []api.ID
	uses    []listitem.Use
	used    int // number of the last load that used it
	// unreadable are the documents of which nothing says which objects they have. forClusters says that a build is for clusters, and
	// fails as a whole if it has such a document.
	unreadable  []api.Origin
	forClusters bool
	objects     bool             // a document says that it is an object, which may be invalid
	steps       int64            // those of a rendering
	charts      map[string]int64 // the steps of the charts of a kustomization, by what identifies a rendering
	transient   bool             // a build that failed for a reason that may be gone at the next load
	templates   []template       // objects with variables that are replaced for each cluster
	names       []string         // those of the variables; nil until they are needed
}

// A template is an object of a build in which variables are replaced for each cluster.
type template struct {
	origin  api.Origin
	release string
	object  map[string]any
	// texts are the keys of the fields that stay texts.
	texts map[string]bool
	// encrypted reports whether the object has values that are encrypted in the repository.
	encrypted bool
}

// parseFile parses a file and validates each object in it.
func parseFile(name string, data []byte, limits limit.Limits, maxSize int64) *parsed {
	out := &parsed{}
	out.File = document.Read(name, data, limits, maxSize, out.addItems)
	return out
}

// addItems adds the items of one document: one, or those of a list.
func (p *parsed) addItems(r *document.Report, value any) {
	if object, isMap := value.(map[string]any); isMap && object["apiVersion"] != nil && api.IsEncryptedDocument(object) && !p.forClusters {
		p.objects = true
		p.unreadable = append(p.unreadable, r.Origin)
		r.AddUndecrypted(r.Object, "%s", api.UnreadableMessage(object))
		return
	}
	eachObject(r, value, "not a Kubernetes object but %s; "+ignoreHint, func(r *document.Report, gvk runtimeschema.GroupVersionKind, object map[string]any) {
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
func eachObject(r *document.Report, value any, notObject string, visit func(*document.Report, runtimeschema.GroupVersionKind, map[string]any)) {
	object, ok := value.(map[string]any)
	if !ok {
		r.DropProblems()
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

func objectItem(r *document.Report, gvk runtimeschema.GroupVersionKind, object map[string]any) *item {
	if gvk.Group == "kustomize.config.k8s.io" {
		r.Errorf(r.Field("kind"), "%s is read only from a file named %s; rename the file", api.WithArticle(gvk.Kind), build.FileNames[0])
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
	if !checkBuiltinScope(r, it, object) || serverfields.CreatedByController(r, gvk, object) {
		return nil
	}
	serverfields.Strip(r, object)
	if _, own := api.ManifestKinds[gvk.GroupKind()]; own && !decodeOwnKind(r, it, gvk, object) {
		return nil
	}
	if it.isConfiguration() {
		return it
	}
	return validateContent(r, it, object)
}

// share deduplicates equal parts of definitions in memory.
func (p *parsed) share(schemas *schema.Sharing) {
	for _, it := range p.items {
		if it.scope != nil && it.object != nil {
			schemas.Add(it.object.Content.Object)
		}
	}
}
