package check

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelabels "k8s.io/apimachinery/pkg/labels"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// overrides warns of rules that match no cluster of the fleet. A warning about an override
// replaces those about its rules.
func (i *inspector) overrides() {
	for _, o := range i.ClusterOverrides {
		i.idle[o.Origin] = i.rules(o.Origin, o.Spec.Policy)
	}
	for _, o := range i.Overrides {
		i.idle[o.Origin] = i.rules(o.Origin, o.Spec.Policy)
	}
}

// rules warns of each rule that matches no cluster of the fleet, and reports whether none does.
func (i *inspector) rules(at api.Origin, policy *api.OverridePolicy) bool {
	if policy == nil || len(i.Clusters) == 0 {
		return false
	}
	all := true
	for n, rule := range policy.OverrideRules {
		if i.concerns(rule.ClusterSelector) {
			all = false
			continue
		}
		i.warn(at, fmt.Sprintf("spec.policy.overrideRules[%d].clusterSelector", n), "matches no cluster, so this rule changes nothing")
	}
	return all
}

// concerns reports whether a selector matches some cluster. The loader reports a missing one.
func (i *inspector) concerns(s *api.ClusterSelector) bool {
	if s == nil || len(s.ClusterSelectorTerms) == 0 {
		return true
	}
	for _, term := range s.ClusterSelectorTerms {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil || slices.ContainsFunc(i.plan.Clusters, func(c placement.Cluster) bool { return selector.Matches(kubelabels.Set(c.Labels)) }) {
			return true
		}
	}
	return false
}
