package kubeapi

import (
	_ "embed" // the schemas of the types
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

//go:generate go tool -modfile=../../../.ci/tools/go.mod openapi-gen --output-dir ../../../.ci/openapi --output-pkg main --output-file definitions_generated.go --go-header-file /dev/null --report-filename /dev/null github.com/gitfleet/gitfleet/placement/api k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/api/resource k8s.io/apimachinery/pkg/util/intstr
//go:generate sh -c "go run ../../../.ci/openapi >openapi.json"

// schemasJSON has the schemas of the Go types by their names. A reference is the name of another type.
//
//go:embed openapi.json
var schemasJSON []byte

// typeSchemas are the schemas as they are in schemasJSON.
var typeSchemas = sync.OnceValues(func() (all map[string]json.RawMessage, err error) {
	err = json.Unmarshal(schemasJSON, &all)
	return all, err
})

// reference matches a reference in schemasJSON.
var reference = regexp.MustCompile(`"\$ref": ?"([^"]+)"`)

// The paths of definitions in the two OpenAPI versions.
const (
	v3Definitions = "#/components/schemas/"
	v2Definitions = "#/definitions/"
)

// ourTypes is the Go package of gitfleet's kinds.
const ourTypes = "github.com/gitfleet/gitfleet/placement/api."

// A description is the OpenAPI of a catalog, built on demand.
type description struct {
	catalog *catalog
	mux     func() http.Handler
}

func newDescription(c *catalog) *description {
	d := &description{catalog: c}
	d.mux = sync.OnceValue(d.build)
	return d
}

func (a *API) serveOpenAPI(w http.ResponseWriter, req *http.Request) {
	a.described.Load().mux().ServeHTTP(w, req)
}

// A routes implements what the library's handlers need.
type routes struct{ *http.ServeMux }

func (p routes) Handle(path string, h http.Handler)       { p.ServeMux.Handle(path, h) }
func (p routes) HandlePrefix(path string, h http.Handler) { p.ServeMux.Handle(path, h) }

func (d *description) build() http.Handler {
	mux := routes{http.NewServeMux()}
	v3 := handler3.NewOpenAPIService()
	v2 := &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger: "2.0", Info: about(), Definitions: spec.Definitions{}, Paths: &spec.Paths{Paths: map[string]spec.PathItem{}},
	}}
	for _, group := range d.catalog.groups() {
		for _, version := range d.catalog.versions(group) {
			gv := schema.GroupVersion{Group: group, Version: version}
			v3.UpdateGroupVersion(strings.TrimPrefix(prefix(gv), "/"), d.v3(gv))
			d.v2(gv, v2)
		}
	}
	// the only possible error is that the path is taken
	_ = v3.RegisterOpenAPIV3VersionedService("/openapi/v3", mux)
	handler.NewOpenAPIService(v2).RegisterOpenAPIVersionedService("/openapi/v2", mux)
	return mux
}

func about() *spec.Info {
	return &spec.Info{InfoProps: spec.InfoProps{Title: "gitfleet", Version: kubernetes}}
}

func prefix(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

// routes returns the paths of a kind for reading, with their operations.
func (k *kind) routes(gv schema.GroupVersion) map[string]string {
	if k.verbs != nil {
		return nil
	}
	base := prefix(gv) + "/" + k.plural
	if !k.namespaced {
		return map[string]string{base: "list", base + "/{name}": "get"}
	}
	inside := prefix(gv) + "/namespaces/{namespace}/" + k.plural
	return map[string]string{base: "list", inside: "list", inside + "/{name}": "get"}
}

func (k *kind) extensions(version string) spec.Extensions {
	return spec.Extensions{"x-kubernetes-group-version-kind": map[string]any{"group": k.group, "version": version, "kind": k.name}}
}

func (d *description) v3(gv schema.GroupVersion) *spec3.OpenAPI {
	doc := &spec3.OpenAPI{
		Version: "3.0.0", Info: about(), Paths: &spec3.Paths{Paths: map[string]*spec3.Path{}},
		Components: &spec3.Components{Schemas: d.schemas(gv, v3Definitions)},
	}
	for _, k := range d.catalog.of(gv) {
		content := map[string]*spec3.MediaType{"application/json": {MediaTypeProps: spec3.MediaTypeProps{
			Schema: spec.RefSchema(v3Definitions + k.schemaName(gv)),
		}}}
		ok := &spec3.Responses{ResponsesProps: spec3.ResponsesProps{StatusCodeResponses: map[int]*spec3.Response{
			http.StatusOK: {ResponseProps: spec3.ResponseProps{Description: "OK", Content: content}},
		}}}
		for path, action := range k.routes(gv) {
			operation := &spec3.Operation{OperationProps: spec3.OperationProps{Description: action + " " + k.plural, Responses: ok}}
			operation.Extensions = k.extensions(gv.Version)
			operation.AddExtension("x-kubernetes-action", action)
			doc.Paths.Paths[path] = &spec3.Path{PathProps: spec3.PathProps{Get: operation}}
			if action == "get" {
				doc.Paths.Paths[path].Patch = k.refusal(gv.Version)
			}
		}
	}
	return doc
}

// refusal describes writes, which are refused. A client that learns here that the server
// validates fields sends the write, and the response says which file to change instead. Other
// clients would stop at their own validation.
func (k *kind) refusal(version string) *spec3.Operation {
	refused := &spec3.Responses{ResponsesProps: spec3.ResponsesProps{StatusCodeResponses: map[int]*spec3.Response{
		http.StatusMethodNotAllowed: {ResponseProps: spec3.ResponseProps{Description: "Refused: the answer names the file in Git to change"}},
	}}}
	operation := &spec3.Operation{OperationProps: spec3.OperationProps{Description: "change " + k.plural, Responses: refused}}
	operation.Extensions = k.extensions(version)
	operation.AddExtension("x-kubernetes-action", "patch")
	for _, name := range []string{"dryRun", "fieldValidation"} {
		operation.Parameters = append(operation.Parameters, &spec3.Parameter{ParameterProps: spec3.ParameterProps{
			Name: name, In: "query", Description: "Accepted, and of no effect.", Schema: spec.StringProperty(),
		}})
	}
	return operation
}

func (d *description) v2(gv schema.GroupVersion, doc *spec.Swagger) {
	for name, s := range d.schemas(gv, v2Definitions) {
		doc.Definitions[name] = *s
	}
	for _, k := range d.catalog.of(gv) {
		for path, action := range k.routes(gv) {
			ok := spec.Response{ResponseProps: spec.ResponseProps{Description: "OK", Schema: spec.RefSchema(v2Definitions + k.schemaName(gv))}}
			operation := &spec.Operation{OperationProps: spec.OperationProps{
				Description: action + " " + k.plural,
				Responses:   &spec.Responses{ResponsesProps: spec.ResponsesProps{StatusCodeResponses: map[int]spec.Response{http.StatusOK: ok}}},
			}}
			operation.Extensions = k.extensions(gv.Version)
			operation.AddExtension("x-kubernetes-action", action)
			doc.Paths.Paths[path] = spec.PathItem{PathItemProps: spec.PathItemProps{Get: operation}}
		}
	}
}

// reversed returns the prefix of the names of definitions, such as
// io.kubernetes-fleet.placement.v1.
func reversed(gv schema.GroupVersion) string {
	parts := strings.Split(gv.Group, ".")
	slices.Reverse(parts)
	return strings.TrimPrefix(strings.Join(append(parts, gv.Version), ".")+".", ".")
}

func (k *kind) schemaName(gv schema.GroupVersion) string { return reversed(gv) + k.name }

// schemas returns the definitions of the kinds of a group version, with all that they refer to.
func (d *description) schemas(gv schema.GroupVersion, at string) map[string]*spec.Schema {
	name := func(definition string) string {
		if own, ours := strings.CutPrefix(definition, ourTypes); ours {
			return reversed(gv) + own
		}
		return definition
	}
	all, _ := typeSchemas() // a test reads them all
	out := map[string]*spec.Schema{}
	var add func(string)
	add = func(definition string) {
		raw, known := all[definition]
		if !known || out[name(definition)] != nil {
			return
		}
		var referred []string
		raw = reference.ReplaceAllFunc(raw, func(found []byte) []byte {
			to := string(reference.FindSubmatch(found)[1])
			referred = append(referred, to)
			return []byte(`"$ref":"` + at + name(to) + `"`)
		})
		s := &spec.Schema{}
		_ = json.Unmarshal(raw, s)
		out[name(definition)] = formed(s, at)
		for _, other := range referred {
			add(other)
		}
	}
	for _, k := range d.catalog.of(gv) {
		if slices.Contains(builtIn, k) {
			add(ourTypes + k.name)
		}
		if out[k.schemaName(gv)] == nil {
			out[k.schemaName(gv)] = openSchema(k)
		}
		out[k.schemaName(gv)].AddExtension("x-kubernetes-group-version-kind", []any{k.extensions(gv.Version)["x-kubernetes-group-version-kind"]})
		if gv.Version != k.versions[0] {
			k.prune(gv, at, out)
		}
	}
	return out
}

// formed returns a schema for one of the two OpenAPI versions, since the library has both for
// some types.
func formed(s *spec.Schema, at string) *spec.Schema {
	v2, both := s.Extensions[common.ExtensionV2Schema]
	if !both {
		return s
	}
	delete(s.Extensions, common.ExtensionV2Schema)
	if at == v2Definitions {
		raw, _ := json.Marshal(v2)
		s = &spec.Schema{}
		_ = json.Unmarshal(raw, s)
	}
	return s
}

// openSchema returns the schema of a kind whose fields are not known here.
func openSchema(k *kind) *spec.Schema {
	s := spec.MapProperty(nil)
	s.Description = k.name
	if k.declared {
		s.Description += ", as declared in the repository. The API server of a member cluster knows its fields."
	}
	s.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	return s
}

// prune removes the fields that a version does not have.
func (k *kind) prune(gv schema.GroupVersion, at string, schemas map[string]*spec.Schema) {
	for _, field := range k.lacks[gv.Version] {
		in := schemas[k.schemaName(gv)]
		steps := strings.Split(field, ".")
		for _, step := range steps[:len(steps)-1] {
			next := in.Properties[strings.TrimSuffix(step, "[]")]
			if next.Items != nil {
				next = *next.Items.Schema
			}
			if in = schemas[referred(&next, at)]; in == nil {
				break
			}
		}
		if in != nil {
			delete(in.Properties, steps[len(steps)-1])
		}
	}
}

func referred(s *spec.Schema, at string) string {
	for _, one := range append([]spec.Schema{*s}, s.AllOf...) {
		if ref := one.Ref.String(); ref != "" {
			return strings.TrimPrefix(ref, at)
		}
	}
	return ""
}

// kubernetes is the Kubernetes version of the API.
const kubernetes = "1.37"
