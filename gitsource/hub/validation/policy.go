package validation

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// policyMessages are KubeFleet's messages, word for word, about fields that a placement type does
// not allow. Each placement type has one.
var policyMessages = map[api.PlacementType]string{
	api.PickFixed: "affinity, numberOfClusters, topologySpreadConstraints, and tolerations cannot be set when placementType is PickFixed",
	api.PickAll:   "clusterNames, numberOfClusters, and topologySpreadConstraints cannot be set when placementType is PickAll",
	api.PickN:     "clusterNames cannot be set and numberOfClusters must be set when placementType is PickN",
}

func checkPolicy(r *document.Report, p *document.FieldPath, policy *api.PlacementPolicy) {
	for _, f := range []struct {
		name  string
		isSet bool
		types []string // the placement types that the field is valid for
	}{
		{"clusterNames", len(policy.ClusterNames) > 0, []string{string(api.PickFixed)}},
		{"numberOfClusters", policy.NumberOfClusters != nil, []string{string(api.PickN)}},
		{"affinity", policy.Affinity != nil, []string{string(api.PickAll), string(api.PickN)}},
		{"topologySpreadConstraints", len(policy.TopologySpreadConstraints) > 0, []string{string(api.PickN)}},
		{"tolerations", len(policy.Tolerations) > 0, []string{string(api.PickAll), string(api.PickN)}},
	} {
		if f.isSet && !slices.Contains(f.types, string(policy.PlacementType)) {
			r.Rulef(p.Child(f.name), "%s; remove it, or change placementType to %s", policyMessages[policy.PlacementType], strings.Join(f.types, " or "))
		}
	}
	switch n := policy.NumberOfClusters; {
	case policy.PlacementType != api.PickN:
	case n == nil:
		r.Rulef(p.Child("numberOfClusters"), "%s; write how many", policyMessages[api.PickN])
	case *n < 0:
		r.Rulef(p.Child("numberOfClusters"), "number of clusters cannot be %d for policy type PickN", *n)
	}
	checkClusterNames(r, p.Child("clusterNames"), policy.ClusterNames)
	checkAffinity(r, p.Child("affinity"), policy)
	checkSpread(r, p.Child("topologySpreadConstraints"), policy.TopologySpreadConstraints)
	checkTolerations(r, p.Child("tolerations"), policy.Tolerations)
}

func checkClusterNames(r *document.Report, p *document.FieldPath, names []string) {
	CheckLength(r, p, len(names), 0, 100)
	for i, name := range names {
		rules(r, p.At(i), validation.IsDNS1123Subdomain(name), "PickFixed cluster name %s is not a valid member name", name)
		if len(name) > 63 {
			r.Rulef(p.At(i), "PickFixed cluster name %s cannot have length exceeding 63", name)
		}
	}
	eachRepeated(names, func(i int, name string) {
		r.Rulef(p.At(i), "cluster names must be unique for policy type PickFixed; remove the second %s", name)
	})
}

func checkAffinity(r *document.Report, p *document.FieldPath, policy *api.PlacementPolicy) {
	if policy.Affinity == nil {
		return
	}
	for i, ref := range policy.Affinity.PlacementAffinity {
		notEmpty(r, p.Child("placementAffinity").At(i).Child("name"), ref.Name)
	}
	for i, ref := range policy.Affinity.PlacementAntiAffinity {
		notEmpty(r, p.Child("placementAntiAffinity").At(i).Child("name"), ref.Name)
	}
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
	for i, t := range tolerations {
		checkToleration(r, p.At(i), t)
	}
	eachRepeated(tolerations, func(i int, _ api.Toleration) {
		r.Rulef(p.At(i), "this toleration already exists, tolerations must be unique; remove it")
	})
}

func checkToleration(r *document.Report, p *document.FieldPath, t api.Toleration) {
	exists := t.Operator == api.TolerationExists
	switch {
	case exists && t.Value != "":
		r.Rulef(p.Child("value"), "value must be empty when operator is Exists")
	case !exists && t.Key == "":
		r.Rulef(p.Child("key"), "operator must be Exists when key is empty")
	case !exists:
		rules(r, p.Child("value"), validation.IsValidLabelValue(t.Value), "invalid toleration value %q", t.Value)
	}
	if t.Key != "" {
		rules(r, p.Child("key"), validation.IsQualifiedName(t.Key), "invalid toleration key %q", t.Key)
	}
}
