package build

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

// kustomize keeps OpenAPI schemas, by which it merges the lists of patches, in global variables.
// The field openapi of a kustomization replaces them, also for all later builds of the process.
// While buildLock is free, the schemas are therefore always the built-in ones.

// builtinSchemas are the definitions of the built-in schemas, which take longer to read than
// most builds. nil until they are needed; whoever uses them holds buildLock.
var builtinSchemas spec.Definitions

// replacesSchemas reports whether a build replaces the global schemas.
func (t Target) replacesSchemas() bool {
	return slices.ContainsFunc(t.parts, func(k *kustomization) bool { return len(k.spec.OpenAPI) > 0 })
}

// withoutSchemas calls build with the global schemas of a new process, which kustomize reads when
// it needs them, and restores the built-in schemas when build returns or panics.
func withoutSchemas(build func()) {
	openapi.ResetOpenAPI()
	defer func() {
		openapi.ResetOpenAPI()
		if builtinSchemas == nil {
			builtinSchemas = openapi.Schema().Definitions
			openapi.ResetOpenAPI()
		}
		openapi.SuppressBuiltInSchemaUse() // do not read them again
		openapi.AddDefinitions(builtinSchemas)
	}()
	build()
}

const kindExtension = "x-kubernetes-group-version-kind"

// checkSchema reports what kustomize cannot use in an OpenAPI schema: it panics if the kind of a
// definition is incomplete, and would never end following a reference that leads to itself.
func checkSchema(r *document.Report, schema any) {
	top, isMap := schema.(map[string]any)
	definitions, given := top["definitions"]
	if _, ok := definitions.(map[string]any); !isMap || given && !ok {
		r.Errorf(r.Field("definitions"), "an OpenAPI schema is a mapping that has definitions, which is a mapping of schemas")
		return
	}
	ends := map[string]bool{}
	var check func(p *document.FieldPath, value any)
	check = func(p *document.FieldPath, value any) {
		switch v := value.(type) {
		case []any:
			for i, item := range v {
				check(p.At(i), item)
			}
		case map[string]any:
			if ref, _ := v["$ref"].(string); isEndless(schema, ref, ends) {
				r.Errorf(p.Child("$ref"), "the references of this schema lead to themselves, so that a build would never end; remove one of them")
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if key == kindExtension && !isKinds(v[key]) {
					r.Errorf(p.Child(key), "kustomize needs a group, a version and a kind here, as strings")
				} else {
					check(p.Child(key), v[key])
				}
			}
		}
	}
	check(nil, schema)
}

// isEndless reports whether following references from ref never ends. If it ends, all references on
// the way are added to ends, so that they are followed once.
func isEndless(schema any, ref string, ends map[string]bool) bool {
	seen := map[string]bool{}
	for ref != "" && !ends[ref] {
		if seen[ref] {
			return true
		}
		seen[ref] = true
		next, _ := definition(schema, ref).(map[string]any)
		ref, _ = next["$ref"].(string)
	}
	maps.Copy(ends, seen)
	return false
}

// definition returns what a reference to something below the definitions of a schema refers to;
// nil if there is no such thing.
func definition(schema any, ref string) any {
	_, pointer, _ := strings.Cut(ref, "#/")
	if !strings.HasPrefix(pointer, "definitions/") {
		return nil // kustomize does not find it either
	}
	for key := range strings.SplitSeq(pointer, "/") {
		m, _ := schema.(map[string]any)
		schema = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)]
	}
	return schema
}

// isKinds reports whether an extension has a kind, or a list of kinds.
func isKinds(value any) bool {
	kinds, ok := value.([]any)
	if !ok {
		kinds = []any{value}
	}
	return !slices.ContainsFunc(kinds, func(kind any) bool {
		m, _ := kind.(map[string]any)
		_, hasVersion := m["version"].(string)
		_, hasKind := m["kind"].(string)
		return !hasVersion || !hasKind
	})
}
