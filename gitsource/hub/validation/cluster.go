package validation

import (
	"maps"
	"slices"
	"strings"

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
	for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
		p := r.Field("metadata", "labels", key)
		rules(r, p, validation.IsQualifiedName(key), "%q is not a valid label key", key)
		rules(r, p, validation.IsValidLabelValue(c.Labels[key]), "%q is not a valid label value", c.Labels[key])
	}
	checkAnnotations(r, c.Annotations, []annotationRule{driftRule})
	for _, key := range slices.Sorted(maps.Keys(c.Annotations)) {
		checkProperty(r, key, c.Annotations[key])
	}
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

func checkTaints(r *document.Report, p *document.FieldPath, taints []api.Taint) {
	CheckLength(r, p, len(taints), 0, 100)
	for i, t := range taints {
		rules(r, p.At(i).Child("key"), validation.IsQualifiedName(t.Key), "invalid taint key %q", t.Key)
		rules(r, p.At(i).Child("value"), validation.IsValidLabelValue(t.Value), "invalid taint value %q", t.Value)
	}
	eachRepeated(taints, func(i int, _ api.Taint) {
		r.Rulef(p.At(i), "this taint already exists, taints must be unique; remove it")
	})
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
	if name == api.KubeVersionProperty {
		checkKubeVersion(r, p, value)
		return
	}
	if _, err := api.ParseQuantity(value); err != nil {
		r.Warnf(p, "%q is not a quantity such as 4 or 0.25 or 16Gi, so placements cannot compare it", value)
	}
}
