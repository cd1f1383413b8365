package validation

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// CheckCluster validates a member cluster whose defaults are set, and sets the label with its
// name.
func CheckCluster(r *document.Report, c *api.MemberCluster) {
	checkName(r, c.Name, "metadata.name max length is 63")
	between(r, r.Field("spec", "heartbeatPeriodSeconds"), *c.Spec.HeartbeatPeriodSeconds, 1, 600)
	checkTaints(r, r.Field("spec", "taints"), c.Spec.Taints)
	checkLabels(r, c)
	checkAnnotations(r, c.Annotations, clusterAnnotations)
	for _, key := range slices.Sorted(maps.Keys(c.Annotations)) {
		checkProperty(r, key, c.Annotations[key])
	}
	nameCluster(r, c)
}

// nameCluster sets the label with the cluster's name.
func nameCluster(r *document.Report, c *api.MemberCluster) {
	if value, set := c.Labels[api.MemberNameLabel]; set && value != c.Name {
		r.Rulef(r.Field("metadata", "labels", api.MemberNameLabel), "is set to the name of the cluster automatically, and cannot have another value; remove it")
		return
	}
	labels := maps.Clone(c.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[api.MemberNameLabel] = c.Name
	c.Labels = labels
}

// checkLabels validates the labels of a cluster, by which placements select clusters.
func checkLabels(r *document.Report, c *api.MemberCluster) {
	for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
		p := r.Field("metadata", "labels", key)
		for _, msg := range validation.IsQualifiedName(key) {
			r.Rulef(p, "%q is not a valid label key: %s", key, msg)
		}
		for _, msg := range validation.IsValidLabelValue(c.Labels[key]) {
			r.Rulef(p, "%q is not a valid label value: %s", c.Labels[key], msg)
		}
	}
}

func checkTaints(r *document.Report, p *document.FieldPath, taints []api.Taint) {
	CheckLength(r, p, len(taints), 0, 100)
	seen := map[api.Taint]bool{}
	for i, t := range taints {
		for _, msg := range validation.IsQualifiedName(t.Key) {
			r.Rulef(p.At(i).Child("key"), "invalid taint key %q: %s", t.Key, msg)
		}
		for _, msg := range validation.IsValidLabelValue(t.Value) {
			r.Rulef(p.At(i).Child("value"), "invalid taint value %q: %s", t.Value, msg)
		}
		if seen[t] {
			r.Rulef(p.At(i), "this taint already exists, taints must be unique; remove it")
		}
		seen[t] = true
	}
}

// checkProperty validates a cluster property that an annotation declares.
func checkProperty(r *document.Report, key, value string) {
	name, ok := strings.CutPrefix(key, api.PropertyAnnotationPrefix)
	if !ok {
		return
	}
	p := r.Field("metadata", "annotations", key)
	if msg := propertyNameFault(name); msg != "" {
		r.Rulef(p, "%s", msg)
	}
	if _, err := resource.ParseQuantity(value); err != nil {
		r.Warnf(p, "%q is not a quantity such as 4 or 0.25 or 16Gi, so placements cannot compare it", value)
	}
}
