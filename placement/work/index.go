package work

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A ref identifies an object as an override names it, including the version.
type ref struct {
	group, version, kind, namespace, name string
}

func refOf(o *api.Object) ref {
	return ref{o.ID.Group, o.Content.GroupVersionKind().Version, o.ID.Kind, o.ID.Namespace, o.ID.Name}
}

// An index finds the manifests that an override selects.
type index struct {
	// selected are the manifests that each reference selects: one object, or a namespace with
	// everything in it.
	selected map[ref][]int
	// versions are the versions of the objects in the content.
	versions  map[api.ID]string
	envelopes map[api.ID]bool
	// namespaces are the namespaces that have objects.
	namespaces map[string]bool
}

func newIndex(c content) *index {
	x := &index{selected: map[ref][]int{}, versions: map[api.ID]string{}, envelopes: c.envelopes, namespaces: map[string]bool{}}
	for id := range c.envelopes {
		x.namespaces[id.Namespace] = true
	}
	for i, m := range c.manifests {
		r := refOf(m.Object)
		x.versions[m.ID] = r.version
		if r.namespace != "" {
			x.selected[r] = append(x.selected[r], i)
			x.namespaces[r.namespace] = true
			r = ref{version: "v1", kind: "Namespace", name: r.namespace}
		}
		x.selected[r] = append(x.selected[r], i)
	}
	return x
}

// find returns the manifests that an override selects, ascending, and the selectors that match
// nothing. misses complete the sentence "override O selects …"; they are reported only for an
// override that is bound to this placement, since others may be intended for other placements.
func (x *index) find(s source) (selects []int, misses []string) {
	for _, sel := range s.selectors {
		r := ref{sel.Group, sel.Version, sel.Kind, s.namespace, sel.Name}
		selects = append(selects, x.selected[r]...)
		if len(x.selected[r]) == 0 && (s.ref != nil || x.envelopes[r.id()]) {
			misses = append(misses, x.missReason(r))
		}
	}
	slices.Sort(selects)
	return slices.Compact(selects), misses
}

// missReason says why a selector of an override matches nothing.
func (x *index) missReason(r ref) string {
	id := r.id()
	version, present := x.versions[id]
	switch {
	case x.envelopes[id]:
		return fmt.Sprintf("the envelope %s itself, which changes nothing; select the objects in it", r)
	case present:
		return fmt.Sprintf("%s, which is placed in version %s; write that version", r, apiVersion(r.group, version))
	default:
		return fmt.Sprintf("%s, which the placement does not hold", r)
	}
}

func (r ref) id() api.ID {
	return api.ID{Group: r.group, Kind: r.kind, Namespace: r.namespace, Name: r.name}
}

// String returns apiVersion Kind namespace/name.
func (r ref) String() string {
	return fmt.Sprintf("%s %s %q", apiVersion(r.group, r.version), r.kind, objectName(r.namespace, r.name))
}

func apiVersion(group, version string) string {
	return strings.TrimPrefix(group+"/"+version, "/")
}

// objectName returns namespace/name, or the name alone.
func objectName(namespace, name string) string {
	return strings.TrimPrefix(namespace+"/"+name, "/")
}

// A content is a selection with its envelopes opened.
type content struct {
	// manifests and refused are in canonical order.
	manifests []*Manifest
	refused   []Refused
	envelopes map[api.ID]bool
	warnings  []string
	problems  []error
}

// A source has the common fields of ClusterResourceOverride and ResourceOverride.
type source struct {
	kind            string
	namespace, name string
	ref             *api.PlacementRef
	selectors       []api.ResourceSelector
	policy          *api.OverridePolicy
}
