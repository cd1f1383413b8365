package validation

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// policyFields are the fields of a policy that are valid only for some placement types.
var policyFields = []struct {
	name  string
	isSet func(*api.PlacementPolicy) bool
	types []api.PlacementType
}{
	{"clusterNames", func(p *api.PlacementPolicy) bool { return len(p.ClusterNames) > 0 }, []api.PlacementType{api.PickFixed}},
	{"numberOfClusters", func(p *api.PlacementPolicy) bool { return p.NumberOfClusters != nil }, []api.PlacementType{api.PickN}},
	{"affinity", func(p *api.PlacementPolicy) bool { return p.Affinity != nil }, []api.PlacementType{api.PickAll, api.PickN}},
	{"topologySpreadConstraints", func(p *api.PlacementPolicy) bool { return len(p.TopologySpreadConstraints) > 0 }, []api.PlacementType{api.PickN}},
	{"tolerations", func(p *api.PlacementPolicy) bool { return len(p.Tolerations) > 0 }, []api.PlacementType{api.PickAll, api.PickN}},
}

// policyMessages are KubeFleet's messages, word for word, about fields that a placement type does
// not allow. Each placement type has one.
var policyMessages = map[api.PlacementType]string{
	api.PickFixed: "affinity, numberOfClusters, topologySpreadConstraints, and tolerations cannot be set when placementType is PickFixed",
	api.PickAll:   "clusterNames, numberOfClusters, and topologySpreadConstraints cannot be set when placementType is PickAll",
	api.PickN:     "clusterNames cannot be set and numberOfClusters must be set when placementType is PickN",
}

func checkPolicy(r *document.Report, p *document.FieldPath, policy *api.PlacementPolicy) {
	for _, f := range policyFields {
		if f.isSet(policy) && !slices.Contains(f.types, policy.PlacementType) {
			r.Rulef(p.Child(f.name), "%s; remove it, or change placementType to %s", policyMessages[policy.PlacementType], orList(f.types))
		}
	}
	if policy.PlacementType == api.PickN {
		checkNumber(r, p.Child("numberOfClusters"), policy.NumberOfClusters)
	}
	checkClusterNames(r, p.Child("clusterNames"), policy.ClusterNames)
	checkAffinity(r, p.Child("affinity"), policy)
	checkSpread(r, p.Child("topologySpreadConstraints"), policy.TopologySpreadConstraints)
	checkTolerations(r, p.Child("tolerations"), policy.Tolerations)
}

func orList(types []api.PlacementType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return strings.Join(names, " or ")
}

func checkNumber(r *document.Report, p *document.FieldPath, n *int32) {
	switch {
	case n == nil:
		r.Rulef(p, "%s; write how many", policyMessages[api.PickN])
	case *n < 0:
		r.Rulef(p, "number of clusters cannot be %d for policy type PickN", *n)
	}
}

func checkClusterNames(r *document.Report, p *document.FieldPath, names []string) {
	CheckLength(r, p, len(names), 0, 100)
	seen := map[string]bool{}
	for i, name := range names {
		for _, msg := range validation.IsDNS1123Subdomain(name) {
			r.Rulef(p.At(i), "PickFixed cluster name %s is not a valid member name: %s", name, msg)
		}
		if len(name) > 63 {
			r.Rulef(p.At(i), "PickFixed cluster name %s cannot have length exceeding 63", name)
		}
		if seen[name] {
			r.Rulef(p.At(i), "cluster names must be unique for policy type PickFixed; remove the second %s", name)
		}
		seen[name] = true
	}
}

func checkAffinity(r *document.Report, p *document.FieldPath, policy *api.PlacementPolicy) {
	if policy.Affinity == nil {
		return
	}
	checkReferences(r, p.Child("placementAffinity"), policy.Affinity.PlacementAffinity)
	checkReferences(r, p.Child("placementAntiAffinity"), policy.Affinity.PlacementAntiAffinity)
	a := policy.Affinity.ClusterAffinity
	if a == nil {
		return
	}
	p = p.Child("clusterAffinity")
	if a.Required != nil {
		at := p.Child("requiredDuringSchedulingIgnoredDuringExecution", "clusterSelectorTerms")
		CheckLength(r, at, len(a.Required.ClusterSelectorTerms), 0, 10)
		for i := range a.Required.ClusterSelectorTerms {
			checkRequired(r, at.At(i), &a.Required.ClusterSelectorTerms[i])
		}
	}
	at := p.Child("preferredDuringSchedulingIgnoredDuringExecution")
	if len(a.Preferred) > 0 && policy.PlacementType == api.PickAll {
		r.Rulef(at, "PreferredDuringSchedulingIgnoredDuringExecution will be ignored for placement policy type PickAll, which takes every cluster; remove it")
	}
	for i := range a.Preferred {
		checkPreferred(r, at.At(i), &a.Preferred[i])
	}
}

func checkReferences(r *document.Report, p *document.FieldPath, references []api.PlacementReference) {
	for i, ref := range references {
		notEmpty(r, p.At(i).Child("name"), ref.Name)
	}
}

func checkRequired(r *document.Report, p *document.FieldPath, term *api.ClusterSelectorTerm) {
	checkLabelSelector(r, p.Child("labelSelector"), term.LabelSelector, "the labelSelector in cluster selector is invalid")
	if term.PropertySorter != nil {
		r.Rulef(p.Child("propertySorter"), "PropertySorter is not allowed for RequiredDuringSchedulingIgnoredDuringExecution affinity; write a propertySelector")
	}
	if term.PropertySelector != nil {
		checkProperties(r, p.Child("propertySelector", "matchExpressions"), term.PropertySelector.MatchExpressions)
	}
}

func checkPreferred(r *document.Report, p *document.FieldPath, preferred *api.PreferredClusterSelector) {
	between(r, p.Child("weight"), preferred.Weight, -100, 100)
	p = p.Child("preference")
	checkLabelSelector(r, p.Child("labelSelector"), preferred.Preference.LabelSelector, "the labelSelector in preferred cluster selector is invalid")
	if preferred.Preference.PropertySelector != nil {
		r.Rulef(p.Child("propertySelector"), "PropertySelector is not allowed for PreferredDuringSchedulingIgnoredDuringExecution affinity; write a propertySorter")
	}
	if sorter := preferred.Preference.PropertySorter; sorter != nil {
		if msg := propertyNameFault(sorter.Name); msg != "" {
			r.Rulef(p.Child("propertySorter", "name"), "%s", msg)
		}
	}
}

func checkSpread(r *document.Report, p *document.FieldPath, constraints []api.TopologySpreadConstraint) {
	for i, c := range constraints {
		notEmpty(r, p.At(i).Child("topologyKey"), c.TopologyKey)
		if *c.MaxSkew < 1 {
			r.Rulef(p.At(i).Child("maxSkew"), "must be at least 1, not %d", *c.MaxSkew)
		}
	}
}

func checkTolerations(r *document.Report, p *document.FieldPath, tolerations []api.Toleration) {
	CheckLength(r, p, len(tolerations), 0, 100)
	seen := map[api.Toleration]bool{}
	for i, t := range tolerations {
		checkToleration(r, p.At(i), t)
		if seen[t] {
			r.Rulef(p.At(i), "this toleration already exists, tolerations must be unique; remove it")
		}
		seen[t] = true
	}
}

func checkToleration(r *document.Report, p *document.FieldPath, t api.Toleration) {
	exists := t.Operator == api.TolerationExists
	switch {
	case exists && t.Value != "":
		r.Rulef(p.Child("value"), "value must be empty when operator is Exists")
	case !exists && t.Key == "":
		r.Rulef(p.Child("key"), "operator must be Exists when key is empty")
	case !exists:
		for _, msg := range validation.IsValidLabelValue(t.Value) {
			r.Rulef(p.Child("value"), "invalid toleration value %q: %s", t.Value, msg)
		}
	}
	if t.Key != "" {
		for _, msg := range validation.IsQualifiedName(t.Key) {
			r.Rulef(p.Child("key"), "invalid toleration key %q: %s", t.Key, msg)
		}
	}
}
