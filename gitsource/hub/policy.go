package hub

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/placement/api"
)

// policyFields are the fields of a policy that only some placement types have.
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

var policyMessages = map[api.PlacementType]string{
	api.PickFixed: "affinity, numberOfClusters, topologySpreadConstraints, and tolerations cannot be set when placementType is PickFixed",
	api.PickAll:   "clusterNames, numberOfClusters, and topologySpreadConstraints cannot be set when placementType is PickAll",
	api.PickN:     "clusterNames cannot be set and numberOfClusters must be set when placementType is PickN",
}

func checkPolicy(r *report, p *fieldPath, policy *api.PlacementPolicy) {
	for _, f := range policyFields {
		if f.isSet(policy) && !contains(f.types, policy.PlacementType) {
			r.rulef(p.child(f.name), "%s; remove it, or change placementType to %s", policyMessages[policy.PlacementType], orList(f.types))
		}
	}
	if policy.PlacementType == api.PickN {
		checkNumber(r, p.child("numberOfClusters"), policy.NumberOfClusters)
	}
	checkClusterNames(r, p.child("clusterNames"), policy.ClusterNames)
	checkAffinity(r, p.child("affinity"), policy)
	checkSpread(r, p.child("topologySpreadConstraints"), policy.TopologySpreadConstraints)
	checkTolerations(r, p.child("tolerations"), policy.Tolerations)
}

func contains(types []api.PlacementType, t api.PlacementType) bool {
	for _, one := range types {
		if one == t {
			return true
		}
	}
	return false
}

func orList(types []api.PlacementType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return strings.Join(names, " or ")
}

func checkNumber(r *report, p *fieldPath, n *int32) {
	switch {
	case n == nil:
		r.rulef(p, "%s; write how many", policyMessages[api.PickN])
	case *n < 0:
		r.rulef(p, "number of clusters cannot be %d for policy type PickN", *n)
	}
}

func checkClusterNames(r *report, p *fieldPath, names []string) {
	count(r, p, len(names), 0, 100)
	seen := map[string]bool{}
	for i, name := range names {
		for _, msg := range validation.IsDNS1123Subdomain(name) {
			r.rulef(p.at(i), "PickFixed cluster name %s is not a valid member name: %s", name, msg)
		}
		if len(name) > 63 {
			r.rulef(p.at(i), "PickFixed cluster name %s cannot have length exceeding 63", name)
		}
		if seen[name] {
			r.rulef(p.at(i), "cluster names must be unique for policy type PickFixed; remove the second %s", name)
		}
		seen[name] = true
	}
}

func checkAffinity(r *report, p *fieldPath, policy *api.PlacementPolicy) {
	if policy.Affinity == nil {
		return
	}
	checkReferences(r, p.child("placementAffinity"), policy.Affinity.PlacementAffinity)
	checkReferences(r, p.child("placementAntiAffinity"), policy.Affinity.PlacementAntiAffinity)
	a := policy.Affinity.ClusterAffinity
	if a == nil {
		return
	}
	p = p.child("clusterAffinity")
	if a.Required != nil {
		at := p.child("requiredDuringSchedulingIgnoredDuringExecution", "clusterSelectorTerms")
		count(r, at, len(a.Required.ClusterSelectorTerms), 0, 10)
		for i := range a.Required.ClusterSelectorTerms {
			checkRequired(r, at.at(i), &a.Required.ClusterSelectorTerms[i])
		}
	}
	at := p.child("preferredDuringSchedulingIgnoredDuringExecution")
	if len(a.Preferred) > 0 && policy.PlacementType == api.PickAll {
		r.rulef(at, "PreferredDuringSchedulingIgnoredDuringExecution will be ignored for placement policy type PickAll, which takes every cluster; remove it")
	}
	for i := range a.Preferred {
		checkPreferred(r, at.at(i), &a.Preferred[i])
	}
}

func checkReferences(r *report, p *fieldPath, references []api.PlacementReference) {
	for i, ref := range references {
		notEmpty(r, p.at(i).child("name"), ref.Name)
	}
}

func checkRequired(r *report, p *fieldPath, term *api.ClusterSelectorTerm) {
	checkLabelSelector(r, p.child("labelSelector"), term.LabelSelector, "the labelSelector in cluster selector is invalid")
	if term.PropertySorter != nil {
		r.rulef(p.child("propertySorter"), "PropertySorter is not allowed for RequiredDuringSchedulingIgnoredDuringExecution affinity; write a propertySelector")
	}
	if term.PropertySelector != nil {
		checkProperties(r, p.child("propertySelector", "matchExpressions"), term.PropertySelector.MatchExpressions)
	}
}

func checkPreferred(r *report, p *fieldPath, preferred *api.PreferredClusterSelector) {
	between(r, p.child("weight"), preferred.Weight, -100, 100)
	p = p.child("preference")
	checkLabelSelector(r, p.child("labelSelector"), preferred.Preference.LabelSelector, "the labelSelector in preferred cluster selector is invalid")
	if preferred.Preference.PropertySelector != nil {
		r.rulef(p.child("propertySelector"), "PropertySelector is not allowed for PreferredDuringSchedulingIgnoredDuringExecution affinity; write a propertySorter")
	}
	if sorter := preferred.Preference.PropertySorter; sorter != nil {
		if msg := propertyNameFault(sorter.Name); msg != "" {
			r.rulef(p.child("propertySorter", "name"), "%s", msg)
		}
	}
}

func checkSpread(r *report, p *fieldPath, constraints []api.TopologySpreadConstraint) {
	for i, c := range constraints {
		notEmpty(r, p.at(i).child("topologyKey"), c.TopologyKey)
		if *c.MaxSkew < 1 {
			r.rulef(p.at(i).child("maxSkew"), "must be at least 1, not %d", *c.MaxSkew)
		}
	}
}

func checkTolerations(r *report, p *fieldPath, tolerations []api.Toleration) {
	count(r, p, len(tolerations), 0, 100)
	seen := map[api.Toleration]bool{}
	for i, t := range tolerations {
		checkToleration(r, p.at(i), t)
		if seen[t] {
			r.rulef(p.at(i), "this toleration already exists, tolerations must be unique; remove it")
		}
		seen[t] = true
	}
}

func checkToleration(r *report, p *fieldPath, t api.Toleration) {
	exists := t.Operator == api.TolerationExists
	switch {
	case exists && t.Value != "":
		r.rulef(p.child("value"), "value must be empty when operator is Exists")
	case !exists && t.Key == "":
		r.rulef(p.child("key"), "operator must be Exists when key is empty")
	case !exists:
		for _, msg := range validation.IsValidLabelValue(t.Value) {
			r.rulef(p.child("value"), "invalid toleration value %q: %s", t.Value, msg)
		}
	}
	if t.Key != "" {
		for _, msg := range validation.IsQualifiedName(t.Key) {
			r.rulef(p.child("key"), "invalid toleration key %q: %s", t.Key, msg)
		}
	}
}
