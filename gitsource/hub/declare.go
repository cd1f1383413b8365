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

// declare reads an object of one of our kinds into its Go type, fills in its
// defaults and applies its rules. It reports false if the object is of no use.
func declare(r *report, it *item, gvk schema.GroupVersionKind, object map[string]any) bool {
	before := len(r.problems)
	typed := decode(r, gvk, object)
	if typed == nil {
		return false
	}
	// The versions are the same JSON; from here on there is only the one that
	// has everything.
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

// decode answers nil if the object cannot be read at all; what is wrong with
// it is in the report.
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
		// The shaper is more exact, and the decoder has the last word.
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

// newHashes hashes what was decoded, which can be encoded again.
func newHashes(meta *metav1.ObjectMeta, spec any) Hashes {
	whole, _ := hashOf([]any{meta.Labels, meta.Annotations, spec})
	of, _ := hashOf(spec)
	return Hashes{whole, of}
}

func newPlacement(it *item, labels, annotations map[string]string, spec api.PlacementSpec) *Placement {
	// A decoded spec can be encoded again.
	hash, _ := hashOf(spec)
	return &Placement{
		Key:    api.PlacementKey{Namespace: it.id.Namespace, Name: it.id.Name},
		Labels: labels, Annotations: annotations, Spec: spec, Origin: it.origin, SpecHash: hash,
	}
}
