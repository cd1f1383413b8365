package variable

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Values are those of some ClusterVars, for many clusters.
type Values struct {
	vars []*api.ClusterVars
	// selectors are the parsed selectors of the rules.
	selectors map[*metav1.LabelSelector]labels.Selector
}

// NewValues returns the values of ClusterVars, of which later ones take precedence.
func NewValues(vars []*api.ClusterVars) *Values {
	v := &Values{vars: vars, selectors: map[*metav1.LabelSelector]labels.Selector{}}
	for _, set := range vars {
		for _, rule := range set.Spec.Clusters {
			if rule.LabelSelector == nil {
				continue
			}
			selector, err := metav1.LabelSelectorAsSelector(rule.LabelSelector)
			if err != nil { // which validation has refused
				selector = labels.Nothing()
			}
			v.selectors[rule.LabelSelector] = selector
		}
	}
	return v
}

// For returns the values for a cluster, by the names of the variables.
func (v *Values) For(name string, of map[string]string) map[string]string {
	out := map[string]string{}
	for _, set := range v.vars {
		maps.Copy(out, set.Spec.Vars)
		for _, rule := range set.Spec.Clusters {
			if slices.Contains(rule.Names, name) || rule.LabelSelector != nil && v.selectors[rule.LabelSelector].Matches(labels.Set(of)) {
				maps.Copy(out, rule.Vars)
			}
		}
	}
	return out
}

// LabelKeys lists the keys of the labels that decide which cluster has which values.
func (v *Values) LabelKeys() (keys []string) {
	for _, selector := range v.selectors {
		requirements, _ := selector.Requirements()
		for _, q := range requirements {
			keys = append(keys, q.Key())
		}
	}
	return keys
}

// Replace returns a text with the values of its variables for a cluster.
func Replace(text string, c Cluster) (string, error) {
	texts, variables, err := Split(text)
	if err != nil {
		return "", err
	}
	out := texts[0]
	for i, v := range variables {
		value, err := v.Value(c)
		if err != nil {
			return "", err
		}
		out += value + texts[i+1]
	}
	return out, nil
}
