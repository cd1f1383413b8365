package hub

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
)

// warnOfControllers warns of values in fields that belong to controllers of the clusters. Empty
// values and placeholders are usual there, and do no harm.
func warnOfControllers(r *document.Report, object map[string]any) {
	controllers.Each(&unstructured.Unstructured{Object: object}, func(f *controllers.Field, path []string, value any) {
		if value == nil || f.IsPlaceholder(value) {
			return
		}
		r.Warnf(fieldAt(r.Object, object, path), "belongs to %s, so the value in Git is not applied; %s", f.Owner, f.Fix)
	})
}

// fieldAt returns the path of a field below p, whose keys may be indexes of lists.
func fieldAt(p *document.FieldPath, v any, path []string) *document.FieldPath {
	for _, key := range path {
		switch in := v.(type) {
		case map[string]any:
			p, v = p.Child(key), in[key]
		case []any:
			i, _ := strconv.Atoi(key)
			p, v = p.At(i), in[i]
		}
	}
	return p
}

// replicasField is where an object sets its replicas.
const replicasField = "spec.replicas"

// recordReplicas records the line on which an object sets replicas, for scaledObjects.
func recordReplicas(r *document.Report, it *item, object map[string]any) {
	if _, sets, _ := unstructured.NestedFieldNoCopy(object, "spec", "replicas"); sets {
		p := r.Field("spec", "replicas")
		it.lines = map[string]int{replicasField: r.LineOf(p)}
	}
}

// scaledObjects warns of objects that set replicas although an autoscaler of the commit does.
func (a *assembly) scaledObjects() {
	scalers := map[api.ID]*item{}
	for _, it := range a.items {
		if it.object == nil || !controllers.IsAutoscaler(it.id.GroupKind()) {
			continue
		}
		if target, ok := controllers.Scales(it.object.Content); ok {
			scalers[target] = it
		}
	}
	if len(scalers) == 0 {
		return
	}
	for _, it := range a.items {
		if by, scaled := scalers[it.id]; scaled && it.object != nil && setsReplicas(it.object.Content) {
			a.problem(problem.Warning, it.at(replicasField), replicasField,
				"the %s %s (%s) sets the replicas, so the value in Git is only used to create the object; remove it", by.id.Kind, by.id.Name, positionText(by.origin))
		}
	}
}

// setsReplicas reports whether an object sets its replicas and does not leave them to others.
func setsReplicas(o *unstructured.Unstructured) bool {
	_, sets, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas")
	ignored, _ := api.Pointers(o.GetAnnotations()[api.IgnoreFieldsAnnotation])
	for _, p := range ignored {
		sets = sets && p != "/spec" && p != "/spec/replicas"
	}
	return sets
}
