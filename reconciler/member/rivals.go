package member

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// A rival is an autoscaler that owns a field which the manifest also sets. Applying that field
// again and again would scale the workload up and down.
type rival struct {
	diff.Rival
	name string // for messages
}

// scales reports whether an autoscaler may own fields of an object that is to be applied, as
// far as the metadata shows.
func scales(t task, entries []metav1.ManagedFieldsEntry) bool {
	_, sets, _ := unstructured.NestedFieldNoCopy(t.manifest.Object.Object.Object, "spec", "replicas")
	return sets && diff.Autoscaled(entries)
}

// scaled is scales for an object as its watch knows it; nil if it does not.
func scaled(m *work.Manifest, known *observed.Object) bool {
	if known == nil || !known.Scaled {
		return false
	}
	_, sets, _ := unstructured.NestedFieldNoCopy(m.Object.Object.Object, "spec", "replicas")
	return sets
}

// rivals returns the autoscalers that own fields of the manifest, except fields that the object
// leaves to others. An autoscaler that no longer exists is none.
func (x *executor) rivals(ctx context.Context, t task, live *unstructured.Unstructured) []rival {
	if live == nil {
		return nil
	}
	ignored, _ := diff.IgnoredFields(t.manifest.Object.Object) // an invalid pointer is reported elsewhere
	var list []rival
	for _, r := range diff.Rivals(t.manifest.Object.Object, live) {
		if !r.Autoscaler || slices.ContainsFunc(ignored, func(p string) bool { return r.Path == p || strings.HasPrefix(r.Path, p+"/") }) {
			continue
		}
		if name, there := x.autoscaler(ctx, t.manifest.ID, r.By); there {
			list = append(list, rival{r, name})
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

// autoscaler returns the name of what scales an object: the HorizontalPodAutoscaler that
// targets it, or the ScaledObject behind that, or else its field manager. there is false if the
// manager is no autoscaler, or one that no longer exists.
func (x *executor) autoscaler(ctx context.Context, id api.ID, by api.Actor) (name string, there bool) {
	unknown := true
	for opts := (metav1.ListOptions{Limit: 500}); unknown; {
		list, err := x.conn.WholePage(ctx, connection.Resource{GroupVersionResource: autoscalers, Namespaced: true}, id.Namespace, &opts)
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

// paths returns the fields that rivals own.
func paths(rivals []rival) []string {
	var out []string
	for _, r := range rivals {
		out = append(out, r.Path)
	}
	return out
}

// contested returns the fields in which rivals differ from the manifest.
func contested(rivals []rival) []api.Difference {
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

// contestMessage says what scales an object, and what to change so that gitfleet and the
// autoscaler do not overwrite each other.
func contestMessage(rivals []rival) string {
	var parts []string
	for _, r := range rivals {
		if r.Value != r.Wanted {
			parts = append(parts, fmt.Sprintf("%s sets %s to %s, the manifest to %s", r.name, r.Path, r.Value, r.Wanted))
		}
	}
	return strings.Join(parts, "; ") + ": the field is left to it; take it out of the manifest, or list it in the annotation " + api.IgnoreFieldsAnnotation
}
