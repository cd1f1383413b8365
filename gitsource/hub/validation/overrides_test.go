package validation

import (
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// Both kinds of overrides name each object once, and refuse what KubeFleet refuses.
func TestCheckOverrideSelectors(t *testing.T) {
	const policy = "policy: {overrideRules: [{clusterSelector: {}, jsonPatchOverrides: [{op: remove, path: /spec}]}]}\n"
	const namespaces, deployments = "{group: '', version: v1, kind: Namespace, name: n%d}", "{group: apps, version: v1, kind: Deployment, name: d%d}"
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"one":       {"[{group: '', version: v1, kind: Namespace, name: web}]", nil},
		"twenty":    {"[" + numbered(namespaces, 20) + "]", nil},
		"too many":  {"[" + numbered(namespaces, 21) + "]", []string{"spec.clusterResourceSelectors: must have at most 20 entries, and has 21"}},
		"none":      {"[]", []string{"spec.clusterResourceSelectors: must have at least 1 entry"}},
		"by label":  {"[{group: '', version: v1, kind: Namespace, name: web, labelSelector: {}}]", []string{"spec.clusterResourceSelectors[0].labelSelector: label selector is not supported for resource selection; write a name"}},
		"no name":   {"[{group: '', version: v1, kind: Namespace}]", []string{"spec.clusterResourceSelectors[0].name: resource name is required for resource selection"}},
		"no kind":   {"[{group: '', version: '', kind: '', name: web}]", []string{"spec.clusterResourceSelectors[0].kind: must not be empty", "spec.clusterResourceSelectors[0].version: must not be empty"}},
		"twice":     {"[{group: apps, version: v1, kind: A, name: web}, {group: apps, version: v1, kind: A, name: web}]", []string{"spec.clusterResourceSelectors[1]: resource selector apps/v1 A web already exists, and must be unique; remove it"}},
		"its scope": {"[{group: '', version: v1, kind: Namespace, name: web}]\nplacement: {name: web, scope: Cluster}", nil},
		"the scope of a ResourcePlacement": {"[{group: '', version: v1, kind: Namespace, name: web}]\nplacement: {name: web, scope: Namespaced}", []string{
			"spec.placement.scope: clusterResourceOverride placement reference cannot be Namespaced scope; remove it",
		}},
	} {
		t.Run("ClusterResourceOverride/"+name, func(t *testing.T) {
			o := &api.ClusterResourceOverride{Spec: *decode[api.ClusterResourceOverrideSpec](t, policy+"clusterResourceSelectors: "+test.spec)}
			DefaultOverride(o.Spec.Placement, o.Spec.Policy)
			checkProblems(t, func(r *document.Report) { CheckClusterOverride(r, o) }, test.want)
		})
	}
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"one":      {"[{group: apps, version: v1, kind: Deployment, name: web}]\nplacement: {name: web, scope: Namespaced}", nil},
		"too many": {"[" + numbered(deployments, 21) + "]", []string{"spec.resourceSelectors: must have at most 20 entries, and has 21"}},
		"none":     {"[]", []string{"spec.resourceSelectors: must have at least 1 entry"}},
		"no name":  {"[{group: apps, version: v1, kind: Deployment, name: ''}]", []string{"spec.resourceSelectors[0].name: must not be empty"}},
		"twice":    {"[{group: '', version: v1, kind: Pod, name: web}, {group: '', version: v1, kind: Pod, name: web}]", []string{"spec.resourceSelectors[1]: resource selector v1 Pod web already exists, and must be unique; remove it"}},
	} {
		t.Run("ResourceOverride/"+name, func(t *testing.T) {
			o := &api.ResourceOverride{Spec: *decode[api.ResourceOverrideSpec](t, policy+"resourceSelectors: "+test.spec)}
			DefaultOverride(o.Spec.Placement, o.Spec.Policy)
			checkProblems(t, func(r *document.Report) { CheckOverride(r, o) }, test.want)
		})
	}
}

// Each rule of an override selects clusters by label, and either deletes or patches.
func TestCheckOverrideRules(t *testing.T) {
	const at, patch = "spec.policy.overrideRules", "{op: remove, path: /spec}"
	selecting := func(terms string) string {
		return "[{clusterSelector: {clusterSelectorTerms: " + terms + "}, jsonPatchOverrides: [" + patch + "]}]"
	}
	patching := func(patches string) string { return "[{clusterSelector: {}, jsonPatchOverrides: " + patches + "}]" }
	for name, test := range map[string]struct {
		rules string
		want  []string
	}{
		"every cluster":            {"[{clusterSelector: {}, jsonPatchOverrides: [" + patch + "]}]", nil},
		"none":                     {"[]", []string{at + ": must have at least 1 entry"}},
		"too many":                 {"[" + numbered("{clusterSelector: {}, jsonPatchOverrides: [{op: remove, path: /spec/f%d}]}", 21) + "]", []string{at + ": must have at most 20 entries, and has 21"}},
		"no cluster":               {"[{jsonPatchOverrides: [" + patch + "]}]", []string{at + "[0].clusterSelector: missing, so this rule applies to no cluster; write clusterSelector: {clusterSelectorTerms: []} for every cluster (warning)"}},
		"clusters by label":        {selecting("[{labelSelector: {matchLabels: {env: prod}}}]"), nil},
		"clusters by property":     {selecting("[{labelSelector: {}, propertySelector: {matchExpressions: []}}]"), []string{at + "[0].clusterSelector.clusterSelectorTerms[0]: invalid clusterSelector: only labelSelector is supported"}},
		"clusters in an order":     {selecting("[{labelSelector: {}, propertySorter: {name: a, sortOrder: Ascending}}]"), []string{at + "[0].clusterSelector.clusterSelectorTerms[0]: invalid clusterSelector: only labelSelector is supported"}},
		"a term without labels":    {selecting("[{}]"), []string{at + "[0].clusterSelector.clusterSelectorTerms[0]: invalid clusterSelector: labelSelector is required"}},
		"malformed labels":         {selecting("[{labelSelector: {matchLabels: {a b: c}}}]"), []string{at + "[0].clusterSelector.clusterSelectorTerms[0].labelSelector: invalid clusterSelector: key: "}},
		"too many terms":           {selecting("[" + numbered("{labelSelector: {matchLabels: {a: b%d}}}", 11) + "]"), []string{at + "[0].clusterSelector.clusterSelectorTerms: must have at most 10 entries, and has 11"}},
		"deletion":                 {"[{clusterSelector: {}, overrideType: Delete}]", nil},
		"deletion with patches":    {"[{clusterSelector: {}, overrideType: Delete, jsonPatchOverrides: [" + patch + "]}]", []string{at + "[0].jsonPatchOverrides: invalid JSONPatchOverrides: JSONPatchOverrides cannot be set when the override type is Delete; remove them"}},
		"no patch":                 {patching("[]"), []string{at + "[0].jsonPatchOverrides: invalid JSONPatchOverrides: JSONPatchOverrides cannot be empty; write at least one patch"}},
		"too many patches":         {patching("[" + numbered("{op: remove, path: /spec/f%d}", 21) + "]"), []string{at + "[0].jsonPatchOverrides: must have at most 20 entries, and has 21"}},
		"a removal of null":        {patching("[{op: remove, path: /spec, value: null}]"), nil},
		"a removal with a value":   {patching("[{op: remove, path: /spec, value: 1}]"), []string{at + "[0].jsonPatchOverrides[0].value: invalid JSONPatchOverride /spec: remove operation cannot have value; leave it out"}},
		"an addition with a value": {patching("[{op: add, path: /spec/a, value: 1}]"), nil},
		"a patch of the kind":      {patching("[" + patch + ", {op: replace, path: /kind, value: a}]"), []string{at + "[0].jsonPatchOverrides[1].path: invalid JSONPatchOverride /kind: cannot override typeMeta fields"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &api.ResourceOverride{Spec: *decode[api.ResourceOverrideSpec](t, "resourceSelectors: [{group: '', version: v1, kind: Pod, name: web}]\npolicy: {overrideRules: "+test.rules+"}")}
			DefaultOverride(o.Spec.Placement, o.Spec.Policy)
			checkProblems(t, func(r *document.Report) { CheckOverride(r, o) }, test.want)
		})
	}
	// A missing policy is reported by the comparison with the schema.
	checkProblems(t, func(r *document.Report) {
		CheckOverride(r, &api.ResourceOverride{Spec: *decode[api.ResourceOverrideSpec](t, "resourceSelectors: [{group: '', version: v1, kind: Pod, name: web}]")})
	}, nil)
}

// The first segments of a path decide whether an override may change it. They are compared
// exactly as written.
func TestPatchPathFault(t *testing.T) {
	const (
		empty  = "path cannot be empty"
		start  = "path must start with /"
		typ    = "cannot override typeMeta fields"
		meta   = "cannot override field metadata"
		fields = "cannot override metadata fields except annotations and labels"
		status = "cannot override status fields"
		blank  = "path cannot contain empty string"
	)
	for path, want := range map[string]string{
		"": empty, "spec": start, " /spec": start, "metadata/labels": start,
		"/kind": typ, "/apiVersion": typ, "/kind/x": typ,
		"/metadata": meta, "/metadata/name": fields, "/metadata/finalizers/0": fields, "/metadata/Labels": fields, "/metadata/": fields,
		"/status": status, "/status/phase": status,
		"/": blank, "//": blank, "/spec//x": blank, "/spec/": blank, "/spec/ /x": blank, "/metadata/labels/": blank,
		"/Kind": "", "/apiVersionabc": "", "/metadatas": "", "/Status": "", "/spec/status": "", "/spec/kind": "",
		"/metadata/labels": "", "/metadata/annotations": "", "/metadata/labels/apiVersion": "", "/metadata/annotations/a~1b": "",
		"/spec/a b": "", "/data/-": "",
	} {
		if got := patchPathFault(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

// A selector is described like an object in the output of kubectl.
func TestSelectorText(t *testing.T) {
	got := []string{
		SelectorText(api.ResourceSelector{Version: "v1", Kind: "Namespace", Name: "web"}),
		SelectorText(api.ResourceSelector{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web"}),
	}
	if want := "v1 Namespace web, apps/v1 Deployment web"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}
