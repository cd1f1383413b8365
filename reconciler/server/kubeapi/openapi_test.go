package kubeapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The generated definitions have every field of the Go types with a description. If this fails
// after a change of the types, run "go generate ./reconciler/server/kubeapi".
func TestEveryFieldIsDescribed(t *testing.T) {
	definitions := GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef(path) })
	for _, of := range []any{
		api.ClusterResourcePlacement{}, api.ResourcePlacement{}, api.ClusterResourcePlacementStatus{}, api.ClusterResourceOverride{},
		api.ResourceOverride{}, api.ClusterResourceEnvelope{}, api.ResourceEnvelope{}, api.MemberCluster{},
	} {
		described(t, definitions, reflect.TypeOf(of))
	}
}

func described(t *testing.T, definitions map[string]common.OpenAPIDefinition, typ reflect.Type) {
	t.Helper()
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ.PkgPath() != strings.TrimSuffix(ourTypes, ".") {
		return
	}
	name := typ.PkgPath() + "." + typ.Name()
	properties := definitions[name].Schema.Properties
	for i := range typ.NumField() {
		field := typ.Field(i)
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") {
			described(t, definitions, field.Type)
			continue
		}
		p, found := properties[tag]
		if !found || p.Description == "" && tag != "metadata" {
			t.Errorf("%s.%s: found in the definitions: %t, described as %q", typ.Name(), field.Name, found, p.Description)
		}
		described(t, definitions, field.Type)
	}
}

// kubectl finds the fields of a kind by its path, and the definitions that they refer to.
func TestOpenAPILeadsToEveryField(t *testing.T) {
	s := serve(t, reportOf(load(t, "c1", files)))
	for version, want := range map[string]bool{"v1beta1": true, "v1": false} {
		var doc spec3.OpenAPI
		s.get("/openapi/v3/apis/placement.kubernetes-fleet.io/"+version, &doc)
		operation := doc.Paths.Paths["/apis/placement.kubernetes-fleet.io/"+version+"/clusterresourceplacements/{name}"].Get
		if kind := operation.Extensions["x-kubernetes-group-version-kind"].(map[string]any)["kind"]; kind != "ClusterResourcePlacement" {
			t.Errorf("%s: the path is of %v", version, kind)
		}
		root := doc.Components.Schemas["io.kubernetes-fleet.placement."+version+".ClusterResourcePlacement"]
		spec := refer(t, &doc, root, "spec")
		refer(t, &doc, spec, "policy")
		strategy := refer(t, &doc, spec, "strategy")
		if _, found := strategy.Properties["deleteStrategy"]; found != want {
			t.Errorf("%s has a deleteStrategy: %t", version, found)
		}
	}
	var list struct{ Paths map[string]any }
	s.get("/openapi/v3", &list)
	if list.Paths["apis/apps/v1"] == nil || list.Paths["api/v1"] == nil {
		t.Errorf("the groups of manifests are not described: %v", list.Paths)
	}
	var old spec.Swagger
	s.get("/openapi/v2", &old)
	if _, found := old.Definitions["io.kubernetes-fleet.cluster.v1beta1.MemberCluster"]; !found {
		t.Error("the older form has no MemberCluster")
	}
}

// Clients can read both versions, the older one also as protobuf, and neither has keywords that
// only the other one supports.
func TestBothFormsAreWhole(t *testing.T) {
	s := serve(t, reportOf(load(t, "c1", files)))
	var older, newer json.RawMessage
	s.get("/openapi/v2", &older)
	s.get("/openapi/v3/apis/placement.kubernetes-fleet.io/v1beta1", &newer)
	if _, err := handler.ToProtoBinary(older); err != nil {
		t.Errorf("the older form as protobuf: %v", err)
	}
	for name, form := range map[string]json.RawMessage{"older": older, "newer": newer} {
		if strings.Contains(string(form), common.ExtensionV2Schema) {
			t.Errorf("the %s form has both schemas of a type", name)
		}
	}
	if !strings.Contains(string(newer), "oneOf") {
		t.Error("the newer form knows no type of two kinds")
	}
}

// A client that checks whether the server validates fields is told that it does. So it sends
// its write, and learns from the refusal which file to change.
func TestChangesAreDescribedAsRefused(t *testing.T) {
	s := serve(t, reportOf(load(t, "c1", files)))
	for _, path := range []string{placementPath + "/clusterresourceplacements/{name}", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"} {
		var doc spec3.OpenAPI
		s.get("/openapi/v3"+strings.Join(strings.Split(path, "/")[:4], "/"), &doc)
		patch := doc.Paths.Paths[path].Patch
		if patch == nil || patch.Responses.StatusCodeResponses[http.StatusMethodNotAllowed] == nil ||
			!slices.ContainsFunc(patch.Parameters, func(p *spec3.Parameter) bool { return p.Name == "fieldValidation" && p.In == "query" }) {
			t.Errorf("a change of %s: %+v", path, patch)
		}
	}
}

// refer follows a property to its definition.
func refer(t *testing.T, doc *spec3.OpenAPI, s *spec.Schema, field string) *spec.Schema {
	t.Helper()
	property := s.Properties[field]
	next := doc.Components.Schemas[referred(&property, "#/components/schemas/")]
	if next == nil {
		raw, _ := json.Marshal(property)
		t.Fatalf("%s refers to nothing: %s", field, raw)
	}
	return next
}
