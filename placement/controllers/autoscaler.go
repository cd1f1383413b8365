package controllers

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An Autoscaler is a kind whose objects set the replicas of the object that they name.
type Autoscaler struct {
	api.GroupKind
	// Target is the field with the apiVersion, kind and name of the object. If it has no kind, a
	// Deployment is meant.
	Target []string
}

// The kinds of KEDA's autoscalers: its HTTP add-on makes a ScaledObject for an HTTPScaledObject.
var (
	scaledObject     = api.GroupKind{Group: "keda.sh", Kind: "ScaledObject"}
	httpScaledObject = api.GroupKind{Group: "http.keda.sh", Kind: "HTTPScaledObject"}
)

// Autoscalers are the kinds of autoscalers.
var Autoscalers = []Autoscaler{
	{api.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, []string{"spec", "scaleTargetRef"}},
	{scaledObject, []string{"spec", "scaleTargetRef"}},
	{httpScaledObject, []string{"spec", "scaleTargetRef"}},
	{api.GroupKind{Group: "autoscaling.gke.io", Kind: "MultidimPodAutoscaler"}, []string{"spec", "scaleTargetRef"}},
	{api.GroupKind{Group: "datadoghq.com", Kind: "WatermarkPodAutoscaler"}, []string{"spec", "scaleTargetRef"}},
	{api.GroupKind{Group: "datadoghq.com", Kind: "DatadogPodAutoscaler"}, []string{"spec", "targetRef"}},
}

// IsAutoscaler reports whether a kind is one of Autoscalers.
func IsAutoscaler(kind api.GroupKind) bool {
	return slices.ContainsFunc(Autoscalers, func(a Autoscaler) bool { return a.GroupKind == kind })
}

// ScalesToZero reports whether autoscalers of a kind scale to zero and up again.
func ScalesToZero(kind api.GroupKind) bool { return kind == scaledObject || kind == httpScaledObject }

// Scales returns the object whose replicas an autoscaler sets; ok is false if the object is not
// an autoscaler, or names none.
func Scales(o *unstructured.Unstructured) (target api.ID, ok bool) {
	kind := o.GroupVersionKind().GroupKind()
	for _, a := range Autoscalers {
		if a.GroupKind != kind {
			continue
		}
		ref, _, _ := unstructured.NestedMap(o.Object, a.Target...)
		text := func(key string) string { s, _ := ref[key].(string); return s }
		gv, err := schema.ParseGroupVersion(cmp.Or(text("apiVersion"), "apps/v1"))
		target = api.ID{Group: gv.Group, Kind: cmp.Or(text("kind"), "Deployment"), Namespace: o.GetNamespace(), Name: text("name")}
		return target, err == nil && target.Name != ""
	}
	return api.ID{}, false
}
