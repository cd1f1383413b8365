package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// first returns the first problem that check reports; empty if there is none.
func first(check func(*document.Report)) string {
	r := &document.Report{}
	check(r)
	if len(r.Problems) == 0 {
		return ""
	}
	return r.Problems[0].Marked()
}

// same compares a message with the beginning of the one that is wanted; empty wants none.
func same(t *testing.T, name, got, want string) {
	t.Helper()
	if !strings.HasPrefix(got, want) || want == "" && got != "" {
		t.Errorf("%s: says %q, want %q", name, got, want)
	}
}

// Each rule of a placement is reported at its field.
func TestCheckPlacement(t *testing.T) {
	namespaces := []api.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "web"}}
	number := func(n int32) *int32 { return &n }
	for name, test := range map[string]struct {
		change func(*api.PlacementSpec)
		want   string
	}{
		"nothing":      {func(*api.PlacementSpec) {}, ""},
		"no selectors": {func(s *api.PlacementSpec) { s.ResourceSelectors = nil }, "spec.resourceSelectors: must have at least 1 entry"},
		"a name and labels": {func(s *api.PlacementSpec) {
			s.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{}
		}, "spec.resourceSelectors[0]: name and labelSelector are mutually exclusive in a resource selector; remove one of them"},
		"a namespaced kind": {func(s *api.PlacementSpec) {
			s.ResourceSelectors = []api.ResourceSelectorTerm{{Version: "v1", Kind: "ConfigMap"}}
		}, "spec.resourceSelectors[0].kind: ConfigMap is not a cluster scoped resource; select its Namespace by name"},
		"history": {func(s *api.PlacementSpec) { s.RevisionHistoryLimit = number(1001) }, "spec.revisionHistoryLimit: must be between 1 and 1000, not 1001"},
		"a number for PickAll": {func(s *api.PlacementSpec) { s.Policy.NumberOfClusters = number(2) },
			"spec.policy.numberOfClusters: clusterNames, numberOfClusters, and topologySpreadConstraints cannot be set when placementType is PickAll; remove it, or change placementType to PickN"},
		"no number for PickN": {func(s *api.PlacementSpec) { s.Policy.PlacementType = api.PickN },
			"spec.policy.numberOfClusters: clusterNames cannot be set and numberOfClusters must be set when placementType is PickN; write how many"},
		"a repeated name": {func(s *api.PlacementSpec) {
			s.Policy.PlacementType, s.Policy.ClusterNames = api.PickFixed, []string{"east", "east"}
		}, "spec.policy.clusterNames[1]: cluster names must be unique for policy type PickFixed; remove the second east"},
		"a toleration twice": {func(s *api.PlacementSpec) {
			a := api.Toleration{Key: "a", Operator: api.TolerationEqual}
			s.Policy.Tolerations = []api.Toleration{a, a}
		}, "spec.policy.tolerations[1]: this toleration already exists, tolerations must be unique; remove it"},
		"a toleration with a value that exists": {func(s *api.PlacementSpec) {
			s.Policy.Tolerations = []api.Toleration{{Key: "a", Operator: api.TolerationExists, Value: "b"}}
		}, "spec.policy.tolerations[0].value: value must be empty when operator is Exists"},
		"no progress": {func(s *api.PlacementSpec) {
			zero := intstr.FromInt32(0)
			s.Strategy.RollingUpdate.MaxUnavailable, s.Strategy.RollingUpdate.MaxSurge = &zero, &zero
		}, "spec.strategy.rollingUpdate: maxUnavailable and maxSurge are both 0, so nothing could ever be rolled out"},
		"no updates": {func(s *api.PlacementSpec) {
			zero := intstr.FromString("0%")
			s.Strategy.RollingUpdate.MaxUnavailable = &zero
		}, "spec.strategy.rollingUpdate.maxUnavailable: 0 lets no update reach a cluster that is available"},
		"more than all": {func(s *api.PlacementSpec) {
			much := intstr.FromString("101%")
			s.Strategy.RollingUpdate.MaxUnavailable = &much
		}, "spec.strategy.rollingUpdate.maxUnavailable: maxUnavailable `101%` is invalid"},
		"an external rollout with steps": {func(s *api.PlacementSpec) { s.Strategy.Type = api.External },
			"spec.strategy.rollingUpdate: rollingUpdateConifg is not valid for ExternalRollout strategy type; remove it"},
		"a report without a destination": {func(s *api.PlacementSpec) {
			s.Strategy.ReportBackStrategy = &api.ReportBackStrategy{Type: api.ReportBackMirror}
		}, "spec.strategy.reportBackStrategy.destination: when reportBackStrategy.type is 'Mirror', a destination must be specified"},
	} {
		spec := &api.PlacementSpec{ResourceSelectors: []api.ResourceSelectorTerm{namespaces[0]}}
		DefaultPlacement(spec)
		test.change(spec)
		same(t, name, first(func(r *document.Report) { CheckPlacement(r, api.ID{Name: "web"}, nil, spec) }), test.want)
	}
	long := strings.Repeat("a", 64)
	same(t, "a long name", first(func(r *document.Report) {
		spec := &api.PlacementSpec{ResourceSelectors: namespaces}
		DefaultPlacement(spec)
		CheckPlacement(r, api.ID{Name: long}, nil, spec)
	}), "metadata.name: the name field cannot have length exceeding 63; it has 64")
}

// Annotations of placements and of objects are validated by the rules of their kinds.
func TestAnnotations(t *testing.T) {
	for name, value := range map[string]string{
		api.OnFailureAnnotation: "maybe", api.AvailableTimeoutAnnotation: "-1s", api.DriftAnnotation: "perhaps",
	} {
		same(t, name, first(func(r *document.Report) {
			checkAnnotations(r, map[string]string{name: value}, placementAnnotations)
		}), "metadata.annotations["+name+"]: ")
	}
	valid := map[string]string{api.OnFailureAnnotation: api.OnFailureStop, api.AvailableTimeoutAnnotation: "10m"}
	same(t, "valid ones", first(func(r *document.Report) { checkAnnotations(r, valid, placementAnnotations) }), "")
	for name, test := range map[string]struct{ kind, annotation, value, want string }{
		"pruning":             {"ConfigMap", api.PruneAnnotation, "no", `metadata.annotations[` + api.PruneAnnotation + `]: "no" is unknown; write "disabled", or leave the annotation out`},
		"pruning disabled":    {"ConfigMap", api.PruneAnnotation, api.PruneDisabled, ""},
		"recreated":           {"ConfigMap", api.RecreateAnnotation, api.RecreateEnabled, ""},
		"a Namespace":         {"Namespace", api.RecreateAnnotation, api.RecreateEnabled, `metadata.annotations[` + api.RecreateAnnotation + `]: a Namespace is never deleted to be created anew`},
		"an expression":       {"ConfigMap", api.AvailableAnnotation, "object.", `metadata.annotations[` + api.AvailableAnnotation + `]: not a CEL expression over object`},
		"a true expression":   {"ConfigMap", api.AvailableAnnotation, "has(object.data)", ""},
		"another's":           {"ConfigMap", "example.com/prune", "no", ""},
		"a pointer to ignore": {"ConfigMap", api.IgnoreFieldsAnnotation, "data", `metadata.annotations[` + api.IgnoreFieldsAnnotation + `]: `},
	} {
		object := map[string]any{"apiVersion": "v1", "kind": test.kind, "metadata": map[string]any{"annotations": map[string]any{test.annotation: test.value}}}
		valid := false
		same(t, name, first(func(r *document.Report) { valid = CheckAnnotations(r, nil, object) }), test.want)
		if valid != (test.want == "") {
			t.Errorf("%s: valid is %t", name, valid)
		}
	}
}

// The requirements on one property must leave a value that meets all of them.
func TestContradictingRequirements(t *testing.T) {
	need := func(name string, operator api.PropertySelectorOperator, values ...string) api.PropertySelectorRequirement {
		return api.PropertySelectorRequirement{Name: name, Operator: operator, Values: values}
	}
	eq, ne, gt, ge, lt, le := api.PropertyEqualTo, api.PropertyNotEqualTo, api.PropertyGreaterThan, api.PropertyGreaterThanOrEqualTo, api.PropertyLessThan, api.PropertyLessThanOrEqualTo
	for name, test := range map[string]struct {
		all  []api.PropertySelectorRequirement
		want string
	}{
		"a range":            {[]api.PropertySelectorRequirement{need("p", ge, "1"), need("p", le, "1")}, ""},
		"an empty range":     {[]api.PropertySelectorRequirement{need("p", ge, "1"), need("p", lt, "1")}, "p: inconsistent requirements on property p: lower bound (1) and upper bound (1) exclude all values"},
		"the tightest ones":  {[]api.PropertySelectorRequirement{need("p", gt, "1"), need("p", gt, "5"), need("p", lt, "9"), need("p", lt, "4")}, "p: inconsistent requirements on property p: lower bound (5) and upper bound (4) exclude all values"},
		"two values":         {[]api.PropertySelectorRequirement{need("p", eq, "1"), need("p", eq, "2")}, "p: inconsistent requirements on property p: conflicting Eq values 1 and 2"},
		"equal quantities":   {[]api.PropertySelectorRequirement{need("p", eq, "1"), need("p", eq, "1000m")}, ""},
		"a value and not it": {[]api.PropertySelectorRequirement{need("p", eq, "1"), need("p", ne, "1")}, "p: inconsistent requirements on property p: conflicting Eq and Ne on same value 1"},
		"below the range":    {[]api.PropertySelectorRequirement{need("p", eq, "1"), need("p", gt, "1")}, "p: inconsistent requirements on property p: eq value 1 violates lower bound 1"},
		"above the range":    {[]api.PropertySelectorRequirement{need("p", eq, "3"), need("p", le, "2")}, "p: inconsistent requirements on property p: eq value 3 violates upper bound 2"},
		"two properties":     {[]api.PropertySelectorRequirement{need("p", eq, "1"), need("q", eq, "2")}, ""},
		"no value":           {[]api.PropertySelectorRequirement{need("p", eq)}, "p[0].values: invalid requirement on property p: operator Eq requires exactly one value, got 0"},
		"no quantity":        {[]api.PropertySelectorRequirement{need("p", eq, "much")}, `p[0].values[0]: invalid requirement on property p: value "much" is not a valid resource.Quantity`},
	} {
		same(t, name, first(func(r *document.Report) { checkProperties(r, r.Field("p"), test.all) }), test.want)
	}
}

func TestPropertyNames(t *testing.T) {
	for name, want := range map[string]string{
		"kubernetes-fleet.io/node-count": "",
		"region":                         "",
		"resources.kubernetes-fleet.io/total-cpu": "",
		"resources.kubernetes-fleet.io/cpu":       "invalid resource property name",
		"resources.kubernetes-fleet.io/used-cpu":  "invalid capacity type",
		"two words":                               "property name two words is not valid",
		"-/a":                                     "property name first segment - is not valid",
		"example.com/a/-":                         "property name segment - is not valid",
	} {
		same(t, name, propertyNameFault(name), want)
	}
}

// A cluster gets the label with its name, and its taints, labels and properties are validated.
func TestCheckCluster(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*api.MemberCluster)
		want   string
	}{
		"nothing":        {func(*api.MemberCluster) {}, ""},
		"its name":       {func(c *api.MemberCluster) { c.Labels = map[string]string{api.MemberNameLabel: "east"} }, ""},
		"another name":   {func(c *api.MemberCluster) { c.Labels = map[string]string{api.MemberNameLabel: "west"} }, "metadata.labels[" + api.MemberNameLabel + "]: is set by itself"},
		"a wrong label":  {func(c *api.MemberCluster) { c.Labels = map[string]string{"env": "?"} }, `metadata.labels.env: "?" is not a valid label value`},
		"a taint twice":  {func(c *api.MemberCluster) { c.Spec.Taints = []api.Taint{{Key: "a"}, {Key: "a"}} }, "spec.taints[1]: this taint already exists, taints must be unique; remove it"},
		"a wrong period": {func(c *api.MemberCluster) { *c.Spec.HeartbeatPeriodSeconds = 0 }, "spec.heartbeatPeriodSeconds: must be between 1 and 600, not 0"},
		"no quantity": {func(c *api.MemberCluster) {
			c.Annotations = map[string]string{api.PropertyAnnotationPrefix + "nodes": "many"}
		}, "metadata.annotations[" + api.PropertyAnnotationPrefix + `nodes]: "many" is not a quantity`},
	} {
		c := &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
		DefaultCluster(c)
		test.change(c)
		same(t, name, first(func(r *document.Report) { CheckCluster(r, c) }), test.want)
		if test.want == "" && c.Labels[api.MemberNameLabel] != "east" {
			t.Errorf("%s: labels %v", name, c.Labels)
		}
	}
}

// Each rule of an override is reported at its field.
func TestCheckClusterOverride(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*api.ClusterResourceOverrideSpec)
		want   string
	}{
		"nothing":      {func(*api.ClusterResourceOverrideSpec) {}, ""},
		"no selectors": {func(s *api.ClusterResourceOverrideSpec) { s.ClusterResourceSelectors = nil }, "spec.clusterResourceSelectors: must have at least 1 entry"},
		"no name":      {func(s *api.ClusterResourceOverrideSpec) { s.ClusterResourceSelectors[0].Name = "" }, "spec.clusterResourceSelectors[0].name: resource name is required for resource selection"},
		"labels": {func(s *api.ClusterResourceOverrideSpec) {
			s.ClusterResourceSelectors[0].LabelSelector = &metav1.LabelSelector{}
		}, "spec.clusterResourceSelectors[0].labelSelector: label selector is not supported"},
		"a selector twice": {func(s *api.ClusterResourceOverrideSpec) {
			s.ClusterResourceSelectors = append(s.ClusterResourceSelectors, s.ClusterResourceSelectors[0])
		}, "spec.clusterResourceSelectors[1]: resource selector v1 Namespace web already exists"},
		"no cluster": {func(s *api.ClusterResourceOverrideSpec) { s.Policy.OverrideRules[0].ClusterSelector = nil }, "spec.policy.overrideRules[0].clusterSelector: missing, so this rule applies to no cluster"},
		"no patch":   {func(s *api.ClusterResourceOverrideSpec) { s.Policy.OverrideRules[0].JSONPatchOverrides = nil }, "spec.policy.overrideRules[0].jsonPatchOverrides: invalid JSONPatchOverrides: JSONPatchOverrides cannot be empty"},
		"patches to delete": {func(s *api.ClusterResourceOverrideSpec) {
			s.Policy.OverrideRules[0].OverrideType = api.DeleteOverrideType
		}, "spec.policy.overrideRules[0].jsonPatchOverrides: invalid JSONPatchOverrides: JSONPatchOverrides cannot be set when the override type is Delete"},
		"a value to remove": {func(s *api.ClusterResourceOverrideSpec) {
			s.Policy.OverrideRules[0].JSONPatchOverrides[0].Value = []byte("1")
		}, "spec.policy.overrideRules[0].jsonPatchOverrides[0].value: invalid JSONPatchOverride /spec: remove operation cannot have value"},
		"another scope": {func(s *api.ClusterResourceOverrideSpec) {
			s.Placement = &api.PlacementRef{Name: "web", Scope: api.NamespaceScoped}
		}, "spec.placement.scope: clusterResourceOverride placement reference cannot be Namespaced scope"},
	} {
		o := &api.ClusterResourceOverride{Spec: api.ClusterResourceOverrideSpec{
			ClusterResourceSelectors: []api.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "web"}},
			Policy: &api.OverridePolicy{OverrideRules: []api.OverrideRule{{
				ClusterSelector: &api.ClusterSelector{}, JSONPatchOverrides: []api.JSONPatchOverride{{Operator: api.JSONPatchRemove, Path: "/spec"}},
			}}},
		}}
		test.change(&o.Spec)
		DefaultOverride(o.Spec.Placement, o.Spec.Policy)
		same(t, name, first(func(r *document.Report) { CheckClusterOverride(r, o) }), test.want)
	}
}
