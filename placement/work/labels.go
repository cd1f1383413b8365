package work

import (
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement"
)

// Labels returns the labels of a cluster on which its content depends: those used by override
// selectors, variables or overlays, in the form of [placement.Revision].
func (r *Renderer) Labels(c placement.Cluster) string {
	var pairs []string
	for _, key := range r.labelKeys {
		if value, ok := c.Labels[key]; ok {
			pairs = append(pairs, key+"="+value)
		}
	}
	return strings.Join(pairs, ",")
}

// labelKeys lists the label keys that rules use, and others, sorted.
func labelKeys(candidates []candidate, others []string) []string {
	keys := others
	for i := range candidates {
		for j := range candidates[i].rules {
			rule := &candidates[i].rules[j]
			for _, term := range rule.terms {
				requirements, _ := term.Requirements()
				for _, q := range requirements {
					keys = append(keys, q.Key())
				}
			}
			for _, p := range rule.patches {
				keys = append(keys, variablesIn(string(p.Value))...)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// variablesIn lists the label keys that a value uses.
func variablesIn(value string) []string {
	var keys []string
	for _, after := range strings.Split(value, labelVariable)[1:] {
		if key, _, closed := strings.Cut(after, "}"); closed {
			keys = append(keys, key)
		}
	}
	return keys
}

// WithLabels returns a cluster with the labels recorded in a revision; its content depends on
// no others.
func WithLabels(c placement.Cluster, r placement.Revision) placement.Cluster {
	c.Labels = map[string]string{}
	for pair := range strings.SplitSeq(r.Labels, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			c.Labels[key] = value
		}
	}
	return c
}
