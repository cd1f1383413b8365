package kubeapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The generated definitions have every field of the Go types with a description. If this fails
// after a change of the types, run "go generate ./reconciler/server/kubeapi".
func TestEveryFieldIsDescribed(t *testing.T) {
	schemas := map[string]spec.Schema{}
	if err := json.Unmarshal(schemasJSON, &schemas); err != nil {
		t.Fatal(err)
	}
	for _, of := range []any{
		api.ClusterResourcePlacement{}, api.ResourcePlacement{}, api.ClusterResourcePlacementStatus{}, api.ClusterResourceOverride{},
		api.ResourceOverride{}, api.ClusterResourceEnvelope{}, api.ResourceEnvelope{}, api.MemberCluster{},
		api.RolloutWindow{}, api.RolloutGate{}, api.Difference{}, api.Actor{},
	} {
		described(t, schemas, reflect.TypeOf(of))
	}
}

func described(t *testing.T, schemas map[string]spec.Schema, typ reflect.Type) {
	t.Helper()
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ.PkgPath() != strings.TrimSuffix(ourTypes, ".") {
		return
	}
	name := typ.PkgPath() + "." + typ.Name()
	properties := schemas[name].Properties
	for i := range typ.NumField() {
		field := typ.Field(i)
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") {
			described(t, schemas, field.Type)
			continue
		}
		p, found := properties[tag]
		if !found || p.Description == "" && tag != "metadata" {
			t.Errorf("%s.%s: found in the definitions: %t, described as %q", typ.Name(), field.Name, found, p.Description)
		}
		described(t, schemas, field.Type)
	}
}

// A manifest of a kind whose name is that of one of gitfleet's Go types has no schema of that type.
func TestManifestKindsHaveNoSchemaOfAGoType(t *testing.T) {
	actor := fstest.MapFS{"actor.yaml": {Data: []byte("apiVersion: films.example.com/v1\nkind: Actor\nmetadata: {name: one, namespace: web}\n")}}
	s := serve(t, reportOf(load(t, "c1", actor)))
	var doc spec3.OpenAPI
	s.get("/openapi/v3/apis/films.example.com/v1", &doc)
	if schema := doc.Components.Schemas["com.example.films.v1.Actor"]; schema == nil || len(schema.Properties) > 0 || schema.Extensions["x-kubernetes-preserve-unknown-fields"] != true {
		t.Errorf("the schema of Actor is %+v", schema)
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
		t.Error("OpenAPI v2 has no MemberCluster")
	}
}

// Clients can read both OpenAPI versions, v2 also as protobuf, and neither has keywords that only
// the other one supports.
func TestOpenAPIVersionsHaveOnlyTheirOwnKeywords(t *testing.T) {
	s := serve(t, reportOf(load(t, "c1", files)))
	var v2, v3 json.RawMessage
	s.get("/openapi/v2", &v2)
	s.get("/openapi/v3/apis/placement.kubernetes-fleet.io/v1beta1", &v3)
	if _, err := handler.ToProtoBinary(v2); err != nil {
		t.Errorf("OpenAPI v2 as protobuf: %v", err)
	}
	for version, document := range map[string]json.RawMessage{"v2": v2, "v3": v3} {
		if strings.Contains(string(document), common.ExtensionV2Schema) {
			t.Errorf("OpenAPI %s has both schemas of a type", version)
		}
	}
	if !strings.Contains(string(v3), "oneOf") {
		t.Error("OpenAPI v3 has no schema with alternatives")
	}
}

// OpenAPI describes writes with the parameter fieldValidation, although the server refuses all
// writes: kubectl sends a write only if it finds the parameter, and the refusal tells the user which
// file to change.
func TestWritesAreDescribedAsRefused(t *testing.T) {
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
