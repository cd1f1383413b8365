package hub

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/placement/api"
)

func checkCluster(r *report, c *api.MemberCluster) {
	checkName(r, c.Name, "metadata.name max length is 63")
	between(r, r.field("spec", "heartbeatPeriodSeconds"), *c.Spec.HeartbeatPeriodSeconds, 1, 600)
	checkTaints(r, r.field("spec", "taints"), c.Spec.Taints)
	checkLabels(r, c)
	checkDriftRule(r, c.Annotations)
	for _, key := range sortedKeys(c.Annotations) {
		checkProperty(r, key, c.Annotations[key])
	}
	nameCluster(r, c)
}

// nameCluster sets the label with the cluster's name.
func nameCluster(r *report, c *api.MemberCluster) {
	if value, set := c.Labels[api.MemberNameLabel]; set && value != c.Name {
		r.rulef(r.field("metadata", "labels", api.MemberNameLabel), "is set by itself, to the name of the cluster, and must not say something else; remove it")
		return
	}
	labels := maps.Clone(c.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[api.MemberNameLabel] = c.Name
	c.Labels = labels
}

// checkLabels validates the labels of a cluster, by which placements select it.
func checkLabels(r *report, c *api.MemberCluster) {
	for _, key := range sortedKeys(c.Labels) {
		p := r.field("metadata", "labels", key)
		for _, msg := range validation.IsQualifiedName(key) {
			r.rulef(p, "%q is no label key: %s", key, msg)
		}
		for _, msg := range validation.IsValidLabelValue(c.Labels[key]) {
			r.rulef(p, "%q is no label value: %s", c.Labels[key], msg)
		}
	}
}

func checkTaints(r *report, p *fieldPath, taints []api.Taint) {
	count(r, p, len(taints), 0, 100)
	seen := map[api.Taint]bool{}
	for i, t := range taints {
		for _, msg := range validation.IsQualifiedName(t.Key) {
			r.rulef(p.at(i).child("key"), "invalid taint key %q: %s", t.Key, msg)
		}
		for _, msg := range validation.IsValidLabelValue(t.Value) {
			r.rulef(p.at(i).child("value"), "invalid taint value %q: %s", t.Value, msg)
		}
		if seen[t] {
			r.rulef(p.at(i), "this taint already exists, taints must be unique; remove it")
		}
		seen[t] = true
	}
}

// checkProperty validates a property declared by an annotation.
func checkProperty(r *report, key, value string) {
	name, ok := strings.CutPrefix(key, api.PropertyAnnotationPrefix)
	if !ok {
		return
	}
	p := r.field("metadata", "annotations", key)
	if msg := propertyNameFault(name); msg != "" {
		r.rulef(p, "%s", msg)
	}
	if _, err := resource.ParseQuantity(value); err != nil {
		r.warnf(p, "%q is no quantity such as 4 or 0.25 or 16Gi, so placements cannot compare it", value)
	}
}
