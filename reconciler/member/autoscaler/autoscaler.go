// Package autoscaler finds autoscalers that own fields which a manifest also sets.
package autoscaler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// A Rival is an autoscaler that owns a field which the manifest also sets. Applying that field
// again and again would scale the workload up and down.
type Rival struct {
	diff.Rival
	// Name is what messages call it.
	Name string
}

// SetsReplicas reports whether a manifest sets a field that autoscalers usually own.
func SetsReplicas(manifest *unstructured.Unstructured) bool {
	_, sets, _ := unstructured.NestedFieldNoCopy(manifest.Object, "spec", "replicas")
	return sets
}

// Rivals returns the autoscalers that own fields of the manifest of a live object, except fields
// that the manifest leaves to others. An autoscaler that no longer exists is none.
func Rivals(ctx context.Context, conn *connection.Conn, manifest, live *unstructured.Unstructured) []Rival {
	if live == nil {
		return nil
	}
	ignored, _ := diff.IgnoredFields(manifest) // an invalid pointer is reported elsewhere
	var list []Rival
	for _, r := range diff.Rivals(manifest, live) {
		if !r.Autoscaler || slices.ContainsFunc(ignored, func(p string) bool { return r.Path == p || strings.HasPrefix(r.Path, p+"/") }) {
			continue
		}
		if name, there := find(ctx, conn, api.IDOf(manifest), r.By); there {
			list = append(list, Rival{r, name})
		}
	}
	return list
}

var autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

// scalers are substrings of the field managers of autoscalers, and throughOthers those of
// autoscalers that scale through a HorizontalPodAutoscaler. Any other manager is a user with
// some tool.
var (
	scalers       = []string{"autoscal", "scaler", "knative"}
	throughOthers = []string{"kube-controller-manager", "keda"}
)

func among(manager string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(strings.ToLower(manager), part) })
}

// find returns the name of what scales an object: the HorizontalPodAutoscaler that
// targets it, or the ScaledObject behind that, or else its field manager. there is false if the
// manager is no autoscaler, or one that no longer exists.
func find(ctx context.Context, conn *connection.Conn, id api.ID, by api.Actor) (name string, there bool) {
	unknown := true
	for opts := (metav1.ListOptions{Limit: 500}); unknown; {
		list, err := conn.WholePage(ctx, connection.Resource{GroupVersionResource: autoscalers, Namespaced: true}, id.Namespace, &opts)
		if err != nil {
			break
		}
		for i := range list.Items {
			if hpa := &list.Items[i]; aimsAt(hpa, id) {
				return described(hpa), true
			}
		}
		opts.Continue = list.GetContinue()
		unknown = opts.Continue != ""
	}
	return "the field manager " + by.Manager, among(by.Manager, scalers) || unknown && among(by.Manager, throughOthers)
}

// aimsAt reports whether a HorizontalPodAutoscaler targets an object of its namespace.
func aimsAt(hpa *unstructured.Unstructured, id api.ID) bool {
	target, _, _ := unstructured.NestedStringMap(hpa.Object, "spec", "scaleTargetRef")
	gv, err := schema.ParseGroupVersion(target["apiVersion"])
	return err == nil && gv.Group == id.Group && target["kind"] == id.Kind && target["name"] == id.Name
}

func described(hpa *unstructured.Unstructured) string {
	text := "the HorizontalPodAutoscaler " + hpa.GetName()
	for _, owner := range hpa.GetOwnerReferences() {
		if owner.Kind == "ScaledObject" {
			return "the ScaledObject " + owner.Name + ", through " + text
		}
	}
	return text
}

// Paths returns the fields that rivals own.
func Paths(rivals []Rival) []string {
	var out []string
	for _, r := range rivals {
		out = append(out, r.Path)
	}
	return out
}

// Contested returns the fields in which rivals differ from the manifest.
func Contested(rivals []Rival) []api.Difference {
	var out []api.Difference
	for _, r := range rivals {
		if r.Value != r.Wanted {
			out = append(out, api.Difference{
				PatchDetail: api.PatchDetail{Path: r.Path, ValueInHub: r.Wanted, ValueInMember: r.Value}, By: []api.Actor{r.By},
			})
		}
	}
	return out
}

// Message says what scales an object, and what to change so that gitfleet and the
// autoscaler do not overwrite each other.
func Message(rivals []Rival) string {
	var parts []string
	for _, r := range rivals {
		if r.Value != r.Wanted {
			parts = append(parts, fmt.Sprintf("%s sets %s to %s, the manifest to %s", r.Name, r.Path, r.Value, r.Wanted))
		}
	}
	return strings.Join(parts, "; ") + ": the field is left to it; take it out of the manifest, or list it in the annotation " + api.IgnoreFieldsAnnotation
}
