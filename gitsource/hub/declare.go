package hub

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// declare decodes an object of one of gitfleet's kinds, sets defaults and validates it. It
// returns false if the object cannot be used.
func declare(r *report, it *item, gvk schema.GroupVersionKind, object map[string]any) bool {
	before := len(r.problems)
	typed := decode(r, gvk, object)
	if typed == nil {
		return false
	}
	// All versions have the same JSON; the one with all fields is used from here on.
	version := schema.GroupVersion{Group: gvk.Group, Version: "v1beta1"}.String()
	switch o := typed.(type) {
	case *api.ClusterResourcePlacement:
		defaultPlacement(&o.Spec)
		checkPlacement(r, it, o.Annotations, &o.Spec)
		it.placement = newPlacement(it, o.Labels, o.Annotations, o.Spec)
	case *api.ResourcePlacement:
		defaultPlacement(&o.Spec)
		checkPlacement(r, it, o.Annotations, &o.Spec)
		it.placement = newPlacement(it, o.Labels, o.Annotations, o.Spec)
	case *api.MemberCluster:
		o.APIVersion = version
		defaultCluster(o)
		checkCluster(r, o)
		it.cluster = &Cluster{o, it.origin, newHashes(&o.ObjectMeta, o.Spec)}
	case *api.ClusterResourceOverride:
		o.APIVersion = version
		defaultOverride(o.Spec.Placement, o.Spec.Policy)
		checkClusterOverride(r, it, o)
		it.clusterOverride = &ClusterOverride{o, it.origin, newHashes(&o.ObjectMeta, o.Spec)}
	case *api.ResourceOverride:
		o.APIVersion = version
		defaultOverride(o.Spec.Placement, o.Spec.Policy)
		checkOverride(r, it, o)
		it.override = &Override{o, it.origin, newHashes(&o.ObjectMeta, o.Spec)}
	case *api.ClusterResourceEnvelope:
		checkEnvelope(r, it, object)
	case *api.ResourceEnvelope:
		checkEnvelope(r, it, object)
	}
	return !hasErrors(r.problems[before:])
}

func hasErrors(problems Problems) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity == Error })
}

// decode returns nil if the object cannot be decoded at all; the problems are in the report.
func decode(r *report, gvk schema.GroupVersionKind, object map[string]any) any {
	gk := gvk.GroupKind()
	before := len(r.problems)
	empty, _, _ := api.Decode(gk, []byte("{}"))
	newShaper(r, gvk).value(object, reflect.TypeOf(empty), r.top)
	data, err := json.Marshal(object)
	if err != nil {
		r.errorf(r.top, "cannot be written as JSON: %v", err)
		return nil
	}
	typed, strict, err := api.Decode(gk, data)
	if !hasErrors(r.problems[before:]) {
		// The shaper is more precise, and the strict decoder has the last word.
		for _, e := range strict {
			r.errorf(r.top, "%v", e)
		}
		if err != nil {
			r.errorf(r.top, "cannot be read: %v", err)
		}
	}
	if err != nil {
		return nil
	}
	return typed
}

func newShaper(r *report, gvk schema.GroupVersionKind) *shaper {
	s := &shaper{r: r}
	if gvk.Version != "v1" {
		return s
	}
	for _, f := range api.Kinds[gvk.GroupKind()].OnlyV1beta1 {
		s.absent = append(s.absent, r.field(strings.Split(f, ".")...).String())
	}
	s.newest = schema.GroupVersion{Group: gvk.Group, Version: "v1beta1"}.String()
	return s
}

// newHashes hashes a decoded object.
func newHashes(meta *metav1.ObjectMeta, spec any) Hashes {
	whole, _ := hashOf([]any{meta.Labels, meta.Annotations, spec})
	of, _ := hashOf(spec)
	return Hashes{whole, of}
}

func newPlacement(it *item, labels, annotations map[string]string, spec api.PlacementSpec) *Placement {
	// a decoded spec can always be encoded
	hash, _ := hashOf(spec)
	return &Placement{
		Key:    api.PlacementKey{Namespace: it.id.Namespace, Name: it.id.Name},
		Labels: labels, Annotations: annotations, Spec: spec, Origin: it.origin, SpecHash: hash,
	}
}
