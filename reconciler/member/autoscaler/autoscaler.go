// Package autoscaler finds autoscalers that own fields which a manifest also sets, and hands
// replicas over to them that the manifest no longer sets.
package autoscaler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// A Rival is an autoscaler that owns a field which the manifest also sets. Applying that field
// again and again would scale the workload up and down.
type Rival struct {
	diff.Rival
	// Name is what messages call it.
	Name string
	// takesOver says that the autoscaler does not own the field: the manifest leaves it to the autoscaler, but we still own it, or
	// nobody does.
	takesOver bool
}

// Placed is what placements say about the autoscaler of an object.
type Placed struct {
	// Scaler is the autoscaler that is placed on the cluster, perhaps only later; zero if there is none.
	Scaler api.ID
	// Leaving are the autoscalers that are deleted from the cluster together with the change of the object, right after it.
	Leaving map[api.ID]bool
}

// name is what messages call the placed autoscaler.
func (p Placed) name() string { return "the " + p.Scaler.Kind + " " + p.Scaler.Name }

// MayScaleToZero reports whether the placed autoscaler may scale an object to zero whose manifest sets replicas. The metadata of the
// object does not show that.
func (p Placed) MayScaleToZero(manifest *unstructured.Unstructured) bool {
	return controllers.ScalesToZero(p.Scaler.GroupKind()) && SetsReplicas(manifest)
}

// SetsReplicas reports whether a manifest sets a field that autoscalers usually own.
func SetsReplicas(manifest *unstructured.Unstructured) bool {
	_, sets, _ := unstructured.NestedFieldNoCopy(manifest.Object, "spec", "replicas")
	return sets
}

// Rivals returns the autoscalers that own fields of the manifest of a live object, except fields
// that the manifest leaves to others. An autoscaler that no longer exists, or is leaving, is none. If the manifest
// no longer sets replicas, and we still own them, the autoscaler of the object is a rival, and the
// live value is wanted.
func Rivals(ctx context.Context, conn *connection.Conn, manifest, live *unstructured.Unstructured, placed Placed) []Rival {
	if live == nil {
		return nil
	}
	if r, left := leftReplicas(ctx, conn, manifest, live, placed); left {
		return []Rival{r}
	}
	fields, _ := diff.IgnoredFields(manifest) // an invalid pointer is reported elsewhere
	ignored := func(path string) bool {
		return slices.ContainsFunc(fields, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
	}
	var list []Rival
	if r, is := withoutOwner(manifest, live, placed); is && !ignored(r.Path) {
		list = append(list, r)
	}
	for _, r := range diff.Rivals(manifest, live) {
		if !r.Autoscaler || ignored(r.Path) {
			continue
		}
		if name, there := find(ctx, conn, api.IDOf(manifest), r.By, placed); there {
			list = append(list, Rival{Rival: r, Name: name})
		}
	}
	return list
}

// leftReplicas returns the autoscaler to which a manifest leaves replicas that would be reset, since we
// still own them. That others have applied them too, also for us in a handover whose apply failed, does
// not keep them.
func leftReplicas(ctx context.Context, conn *connection.Conn, manifest, live *unstructured.Unstructured, placed Placed) (r Rival, left bool) {
	value, found, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "replicas")
	if !found || SetsReplicas(manifest) || !diff.Releases(live, api.FieldManager, "spec", "replicas") {
		return r, false
	}
	text := diff.Text(value)
	r = Rival{diff.Rival{Path: "/spec/replicas", Value: text, Wanted: text}, placed.name(), true}
	if left = placed.Scaler.Name != ""; !left {
		r.Name, left = find(ctx, conn, api.IDOf(manifest), r.By, placed)
	}
	return r, left
}

// withoutOwner returns the autoscaler of KEDA that has set replicas which nobody owns. KEDA scales to zero, which an API server does not
// record, nor what it takes for written through scale after that, until somebody owns the field again.
func withoutOwner(manifest, live *unstructured.Unstructured, placed Placed) (r Rival, is bool) {
	wanted, _, _ := unstructured.NestedFieldNoCopy(manifest.Object, "spec", "replicas")
	value, found, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "replicas")
	text, liveText := diff.Text(wanted), diff.Text(value)
	if !placed.MayScaleToZero(manifest) || !found || text == liveText || diff.HasReplicasOwner(live.GetManagedFields()) {
		return r, false
	}
	return Rival{diff.Rival{Path: "/spec/replicas", Value: liveText, Wanted: text, By: api.Actor{Manager: diff.Handover, Operation: "Apply"}, Autoscaler: true}, placed.name(), true}, true
}

// HandOver keeps the replicas of a live object that are left to an autoscaler which does not own them: the field
// manager diff.Handover applies the live value, so that the server does not reset it when ours no
// longer applies it, and that it is known to be an autoscaler's. It returns the object as it is then; live itself if there is nothing to hand
// over.
func HandOver(ctx context.Context, conn *connection.Conn, res connection.Resource, live *unstructured.Unstructured, rivals []Rival) (*unstructured.Unstructured, error) {
	if !slices.ContainsFunc(rivals, func(r Rival) bool { return r.takesOver }) {
		return live, nil
	}
	replicas, _, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "replicas")
	body, err := json.Marshal(map[string]any{
		"apiVersion": live.GetAPIVersion(), "kind": live.GetKind(), "metadata": map[string]any{"name": live.GetName(), "namespace": live.GetNamespace(), "uid": live.GetUID()},
		"spec": map[string]any{"replicas": replicas},
	})
	if err != nil {
		return nil, err
	}
	id := api.IDOf(live)
	now, err := conn.ApplyAs(ctx, res, id, body, diff.Handover)
	if apierrors.IsConflict(err) { // the autoscaler has just set them
		now, err = conn.Read(ctx, res, id)
	}
	if err != nil || now == nil {
		return live, err
	}
	return now, nil
}

var autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

// scalers are substrings of the field managers of autoscalers and controllers of progressive delivery, and throughOthers those of
// autoscalers that scale through a HorizontalPodAutoscaler. Any other manager is a user with
// some tool.
var (
	scalers       = []string{"autoscal", "scaler", "knative", "flagger", "rollouts-controller"}
	throughOthers = []string{"kube-controller-manager", "keda", diff.Handover}
)

func among(manager string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(strings.ToLower(manager), part) })
}

// find returns the name of what scales an object: the HorizontalPodAutoscaler that
// targets it, or the ScaledObject behind that, or else what placements name, or its field manager. there is false if the
// manager is no autoscaler, or one that no longer exists or is leaving. KEDA deletes the HorizontalPodAutoscaler of a
// ScaledObject that is paused, and scales the object itself.
func find(ctx context.Context, conn *connection.Conn, id api.ID, by api.Actor, placed Placed) (name string, there bool) {
	unknown := true
	for at := (connection.Listing{ListOptions: metav1.ListOptions{Limit: 500}}); unknown; {
		list, err := conn.WholePage(ctx, connection.Resource{GroupVersionResource: autoscalers, Namespaced: true}, id.Namespace, &at.ListOptions)
		if err != nil {
			break
		}
		for i := range list.Items {
			if hpa := &list.Items[i]; aimsAt(hpa, id) && !leaves(hpa, placed.Leaving) {
				return described(hpa), true
			}
		}
		more, err := at.Next(list, len(list.Items))
		if err != nil {
			break
		}
		unknown = more
	}
	if placed.Scaler.Name != "" && among(by.Manager, throughOthers) {
		return placed.name(), true
	}
	return "the field manager " + by.Manager, among(by.Manager, scalers) || unknown && among(by.Manager, throughOthers)
}

// aimsAt reports whether a HorizontalPodAutoscaler targets an object of its namespace.
func aimsAt(hpa *unstructured.Unstructured, id api.ID) bool {
	target, ok := controllers.Scales(hpa)
	target.Namespace = id.Namespace
	return ok && target == id
}

// leaves reports whether a HorizontalPodAutoscaler, or what has created it, is leaving.
func leaves(hpa *unstructured.Unstructured, leaving map[api.ID]bool) bool {
	if leaving[api.IDOf(hpa)] {
		return true
	}
	for _, owner := range hpa.GetOwnerReferences() {
		gv, _ := schema.ParseGroupVersion(owner.APIVersion) // the server has checked it
		if leaving[api.ID{Group: gv.Group, Kind: owner.Kind, Namespace: hpa.GetNamespace(), Name: owner.Name}] {
			return true
		}
	}
	return false
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
