package hub

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/gitsource/hub/serverfields"
	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/variable"
)

// validateContent validates an object that a placement may select, and sets the rest of its
// item.
func validateContent(r *document.Report, it *item, object map[string]any) *item {
	if rule := contentRules[it.id.GroupKind()]; rule != nil && !rule(r, it, object) {
		return nil
	}
	if !validation.CheckAnnotations(r, r.Object, object) {
		return nil
	}
	if encrypted := api.CiphertextIn(object); encrypted != nil && encrypted.Tool == "SOPS" {
		r.AddUndecrypted(nil, "%s: %s", it.id, encrypted.Message())
	} else if encrypted != nil {
		r.Add(problem.Failure, nil, "%s: %s", it.id, encrypted.Message())
	} else if !r.Problems.HasErrors() {
		schema.CheckBuiltin(r, r.Object, object)
	}
	serverfields.WarnOfControllers(r, object)
	recordReplicas(r, it, object)
	hash, err := api.HashOf(object, nil)
	if err != nil {
		r.Errorf(r.Object, "cannot be written as JSON: %v", err)
		return nil
	}
	it.object = &api.Object{
		ID: it.id, Content: &unstructured.Unstructured{Object: object}, Hash: hash, Origin: it.origin, Numbers: r.Numbers, Release: r.Release,
	}
	if path := variableIn(object); path != nil && !it.isBuilder() {
		slices.Reverse(path)
		at := r.Object.Within(object, path)
		it.object.Variable = &api.FieldPosition{Field: at.String(), Line: r.LineOf(at)}
	}
	return it
}

// contentRules validate kinds whose mistakes would otherwise be found on the members only, or
// never.
var contentRules = map[api.GroupKind]func(*document.Report, *item, map[string]any) bool{
	{Kind: "ConfigMap"}: func(r *document.Report, it *item, o map[string]any) bool {
		if !areTextMaps(r, o, "data", "binaryData") {
			return false
		}
		if api.IsEnvelopeConfigMap(o) {
			checkTextEnvelope(r, it, o)
		}
		return true
	},
	{Kind: "Secret"}: func(r *document.Report, _ *item, o map[string]any) bool {
		return areTextMaps(r, o, "data", "stringData") && dataIsBase64(r, o)
	},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: definition,
}

func areTextMaps(r *document.Report, object map[string]any, a, b string) bool {
	ok := isTextMap(r, object[a], r.Field(a))
	return isTextMap(r, object[b], r.Field(b)) && ok
}

// dataIsBase64 refuses data that an API server would refuse.
func dataIsBase64(r *document.Report, object map[string]any) bool {
	ok := true
	data, _ := object["data"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		value := data[key].(string)
		if _, err := base64.StdEncoding.DecodeString(value); err != nil && api.EncryptedWith(value) == "" {
			r.Errorf(r.Field("data", key), "is not base64; encode it, or write the plain text under stringData")
			ok = false
		}
	}
	return ok
}

// definition records the scope that a custom resource definition declares.
func definition(r *document.Report, it *item, object map[string]any) bool {
	group, _, _ := unstructured.NestedString(object, "spec", "group")
	kind, _, _ := unstructured.NestedString(object, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(object, "spec", "scope")
	const missing = "missing: a CustomResourceDefinition names the group and the kind it defines"
	if group == "" {
		r.Errorf(r.Field("spec", "group"), missing)
	}
	if kind == "" {
		r.Errorf(r.Field("spec", "names", "kind"), missing)
	}
	if scope != "Namespaced" && scope != "Cluster" {
		r.Errorf(r.Field("spec", "scope"), "must be Namespaced or Cluster")
		return false
	}
	it.scope = &declaredScope{api.GroupKind{Group: group, Kind: kind}, scope == "Namespaced"}
	return group != "" && kind != ""
}

// variableIn returns the path of the first field of an object that contains a variable, in reverse order; nil if there is none. Objects
// with the substitute annotation, also those in an envelope, are skipped.
func variableIn(v any) (path []string) {
	switch v := v.(type) {
	case map[string]any:
		if meta, _ := v["metadata"].(map[string]any); meta != nil {
			if notes, _ := meta["annotations"].(map[string]any); notes[api.SubstituteAnnotation] != nil {
				return nil
			}
		}
		first := ""
		for key, field := range v {
			if path != nil && key > first {
				continue
			}
			below := variableIn(field)
			if hasVariable(key) {
				below = []string{}
			}
			if below != nil {
				path, first = append(below, key), key
			}
		}
	case []any:
		for i, item := range v {
			if below := variableIn(item); below != nil {
				return append(below, strconv.Itoa(i))
			}
		}
	case string:
		if hasVariable(v) && !strings.Contains(v, api.SubstituteAnnotation) {
			return []string{}
		}
	}
	return path
}

// hasVariable reports whether a text has variables that are not escaped.
func hasVariable(text string) bool {
	if !variable.In(text) {
		return false
	}
	_, found, err := variable.Split(text)
	return len(found) > 0 || err != nil
}

// replicasField is where an object sets its replicas.
const replicasField = "spec.replicas"

// recordReplicas records the line on which an object sets replicas, for scaledObjects.
func recordReplicas(r *document.Report, it *item, object map[string]any) {
	if _, sets, _ := unstructured.NestedFieldNoCopy(object, "spec", "replicas"); sets {
		p := r.Field("spec", "replicas")
		it.lines = map[string]int{replicasField: r.LineOf(p)}
	}
}
