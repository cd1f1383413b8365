package kubeapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The kinds of manifests have the names of their CustomResourceDefinition, those of built-in kinds
// or guessed ones, and each version is a kind of its own. gitfleet's kinds are always there.
func TestCatalogOfACommit(t *testing.T) {
	s := load(t, "c1", fstest.MapFS{"a.yaml": {Data: []byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: people.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Person, plural: people, singular: person, shortNames: [pp], categories: [humans]}
  versions: [{name: v1, served: true, storage: true}, {name: v1beta1, served: true, storage: false}]
---
apiVersion: example.com/v1
kind: Person
metadata: {name: ada, namespace: web}
---
apiVersion: example.com/v1beta1
kind: Person
metadata: {name: bob, namespace: web}
---
apiVersion: policies.example.com/v1
kind: NetworkPolicy
metadata: {name: x, namespace: web}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: web}
---
apiVersion: v1
kind: Namespace
metadata: {name: web}
`)}})
	c := newCatalog(s)
	for name, want := range map[string]struct {
		of         schema.GroupVersionResource
		kind       string
		namespaced bool
		short      []string
		categories []string
	}{
		"from its definition":        {schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "people"}, "Person", true, []string{"pp"}, []string{"humans"}},
		"another version":            {schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "people"}, "Person", true, []string{"pp"}, []string{"humans"}},
		"guessed":                    {schema.GroupVersionResource{Group: "policies.example.com", Version: "v1", Resource: "networkpolicies"}, "NetworkPolicy", true, nil, nil},
		"guessed, with a vowel":      {schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gateways"}, "Gateway", true, nil, nil},
		"built in":                   {schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "Deployment", true, []string{"deploy"}, []string{"all"}},
		"cluster-scoped":             {schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "Namespace", false, []string{"ns"}, nil},
		"the definition as manifest": {schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "CustomResourceDefinition", false, []string{"crd"}, nil},
		"gitfleet's":                 {clusterPlacements.storeKey(), "ClusterResourcePlacement", false, []string{"crp"}, placementCategories},
	} {
		k := c.byResource[want.of]
		if k == nil {
			t.Errorf("%s: %v is not served", name, want.of)
			continue
		}
		if k.name != want.kind || k.namespaced != want.namespaced || !slices.Equal(k.short, want.short) || !slices.Equal(k.categories, want.categories) {
			t.Errorf("%s: %+v", name, k)
		}
	}
	if got := c.versions("example.com"); !slices.Equal(got, []string{"v1", "v1beta1"}) {
		t.Errorf("versions of example.com: %v", got)
	}
	if got := c.versions(api.PlacementGroup); got[0] != "v1beta1" {
		t.Errorf("versions of the placement group: %v; the first has to be the one with all fields", got)
	}
	if c.equal(newCatalog(nil)) || !c.equal(newCatalog(s)) || !newCatalog(nil).equal(newCatalog(nil)) {
		t.Error("equal says something else")
	}
}

// The values that an override sets in a Secret, or in a namespace with Secrets, are masked; the
// spec of the commit stays as it is.
func TestMaskedOverrides(t *testing.T) {
	policy := func() *api.OverridePolicy {
		return &api.OverridePolicy{OverrideRules: []api.OverrideRule{{JSONPatchOverrides: []api.JSONPatchOverride{
			{Path: "/data/password", Value: json.RawMessage(`"s3cret"`)}, {Path: "/stringData", Value: json.RawMessage(`{"a":"s3cret"}`)},
			{Path: "/metadata/labels/x", Value: json.RawMessage(`"label"`)}, {Path: "/database", Value: json.RawMessage(`"mysql"`)}, {Path: "/data/old"},
		}}}}
	}
	values := func(p *api.OverridePolicy) (out []string) {
		for _, patch := range p.OverrideRules[0].JSONPatchOverrides {
			out = append(out, string(patch.Value))
		}
		return out
	}
	plain := values(policy())
	masked := []string{string(maskedJSON), string(maskedJSON), `"label"`, `"mysql"`, ""}
	for name, test := range map[string]struct {
		terms []api.ResourceSelector
		want  []string
	}{
		"a ConfigMap":               {[]api.ResourceSelector{{Kind: "ConfigMap", Name: "a"}}, plain},
		"a Secret":                  {[]api.ResourceSelector{{Kind: "ConfigMap", Name: "a"}, {Kind: "Secret", Name: "b"}}, masked},
		"a Secret of another group": {[]api.ResourceSelector{{Group: "example.com", Kind: "Secret", Name: "b"}}, plain},
	} {
		p := policy()
		if got := values(maskedOverride(api.ResourceOverrideSpec{ResourceSelectors: test.terms, Policy: p}).Policy); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if !slices.Equal(values(p), plain) {
			t.Errorf("%s: the spec was changed: %q", name, values(p))
		}
	}
	for name, test := range map[string]struct {
		terms []api.ResourceSelectorTerm
		want  []string
	}{
		"a namespace":   {[]api.ResourceSelectorTerm{{Kind: "Namespace", Name: "web"}}, masked},
		"a ClusterRole": {[]api.ResourceSelectorTerm{{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "x"}}, plain},
	} {
		if got := values(maskedClusterOverride(api.ClusterResourceOverrideSpec{ClusterResourceSelectors: test.terms, Policy: policy()}).Policy); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if s := maskedOverride(api.ResourceOverrideSpec{ResourceSelectors: []api.ResourceSelector{{Kind: "Secret"}}}); s.Policy != nil {
		t.Errorf("without a policy: %+v", s)
	}
}

// Objects and lists are served as JSON, indented JSON and YAML with the same content.
func TestFormats(t *testing.T) {
	s := serve(t, reportOf(nil, crpOf("api", 1), crpOf("web", 1)))
	empty := serve(t, reportOf(load(t, "c1", fstest.MapFS{})))
	for _, path := range []string{"/clusterresourceplacements", "/clusterresourceplacements/web"} {
		for accept, want := range map[string]string{"application/json": `"apiVersion":"`, "application/yaml": "apiVersion: placement"} {
			if code, text := s.ask("GET", placementPath+path, accept, ""); code != http.StatusOK || !strings.Contains(text, want) || !strings.Contains(text, "web") {
				t.Errorf("%s as %s: %d %s", path, accept, code, text)
			}
		}
		if code, text := s.ask("GET", placementPath+path+"?pretty=true", "application/json", ""); code != http.StatusOK || !strings.Contains(text, "\n  \"apiVersion\": \"") {
			t.Errorf("%s, pretty: %d %s", path, code, text)
		}
	}
	if code, text := empty.ask("GET", placementPath+"/clusterresourceplacements", "application/json", ""); code != http.StatusOK || !strings.Contains(text, `"items":[]`) || !json.Valid([]byte(text)) {
		t.Errorf("an empty list: %d %s", code, text)
	}
}
