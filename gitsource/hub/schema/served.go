package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	kubernetes "k8s.io/client-go/kubernetes/scheme"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// KubernetesVersion is the version of the Kubernetes libraries with whose types manifests are
// compared.
const KubernetesVersion = "1.37"

// builtin returns Kubernetes' own kinds. The scheme that all packages share may have others. They are collected when they are first
// needed, so that commands that load no manifests start quickly.
var builtin = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := kubernetes.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
})

// removed has the first version of Kubernetes that no longer serves a kind, for kinds whose Go types do not say it.
var removed = map[schema.GroupVersionKind]string{
	{Group: "apiextensions.k8s.io", Version: "v1beta1", Kind: "CustomResourceDefinition"}: "1.22",
	{Group: "apiregistration.k8s.io", Version: "v1beta1", Kind: "APIService"}:             "1.22",
	{Group: "extensions", Version: "v1beta1", Kind: "PodSecurityPolicy"}:                  "1.16",
	{Group: "policy", Version: "v1beta1", Kind: "PodSecurityPolicy"}:                      "1.25",
}

// served returns the versions in which Kubernetes serves a kind, by the name of the kind, sorted.
var served = sync.OnceValue(func() map[string][]schema.GroupVersion {
	all := map[string][]schema.GroupVersion{
		"APIService":               {{Group: "apiregistration.k8s.io", Version: "v1"}},
		"CustomResourceDefinition": {{Group: "apiextensions.k8s.io", Version: "v1"}},
	}
	for gvk := range builtin().AllKnownTypes() {
		if gvk.Version != runtime.APIVersionInternal && removedIn(gvk) == "" {
			all[gvk.Kind] = append(all[gvk.Kind], gvk.GroupVersion())
		}
	}
	for _, versions := range all {
		slices.SortFunc(versions, func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) })
	}
	return all
})

// removedIn returns the first version of Kubernetes that no longer serves a kind; empty if KubernetesVersion serves it or
// never knew it.
func removedIn(gvk schema.GroupVersionKind) string {
	t, known := builtin().AllKnownTypes()[gvk]
	if !known {
		return removed[gvk]
	}
	lifecycle, ends := reflect.Zero(reflect.PointerTo(t)).Interface().(interface{ APILifecycleRemoved() (major, minor int) })
	if !ends {
		return ""
	}
	major, minor := lifecycle.APILifecycleRemoved()
	first := fmt.Sprintf("%d.%d", major, minor)
	if version.MustParseGeneric(KubernetesVersion).LessThan(version.MustParseGeneric(first)) {
		return ""
	}
	return first
}

// checkServed warns of a kind that Kubernetes does not serve in the version of an object, or has in another group. A kind that is
// not like those of Kubernetes may be one of a newer version.
func checkServed(r *document.Report, p *document.FieldPath, gvk schema.GroupVersionKind) {
	in := served()[gvk.Kind]
	if slices.Contains(in, gvk.GroupVersion()) || !api.BuiltInGroup(gvk.Group) && !mistyped(gvk.Group, in) {
		return
	}
	in = preferred(preferred(in, func(v schema.GroupVersion) bool { return v.Group == gvk.Group }), stable)
	var names []string
	for _, v := range in {
		names = append(names, v.String())
	}
	since := "Kubernetes " + KubernetesVersion + " has"
	if first := removedIn(gvk); first != "" {
		since = "since version " + first + " Kubernetes has"
	}
	switch {
	case len(names) > 0:
		r.Warnf(p.Child("apiVersion"), "%s no %s in %s; it has it in %s", since, gvk.Kind, gvk.GroupVersion(), strings.Join(names, ", "))
	case removedIn(gvk) != "":
		r.Warnf(p.Child("apiVersion"), "%s no %s; remove it", since, gvk.Kind)
	default:
		if best := api.Closest(gvk.Kind, kindsIn(gvk.Group)); best != "" {
			r.Warnf(p.Child("kind"), "%s no such kind in %s; %s", since, gvk.GroupVersion(), api.DidYouMean(best))
		}
	}
}

// preferred returns the versions that match, or all if none does.
func preferred(versions []schema.GroupVersion, match func(schema.GroupVersion) bool) []schema.GroupVersion {
	var matching []schema.GroupVersion
	for _, v := range versions {
		if match(v) {
			matching = append(matching, v)
		}
	}
	if len(matching) == 0 {
		return versions
	}
	return matching
}

func stable(v schema.GroupVersion) bool {
	return !strings.Contains(v.Version, "alpha") && !strings.Contains(v.Version, "beta")
}

// mistyped reports whether a kind that Kubernetes has in some versions is in a group that no definition can have, since it has no
// dot, or that is almost one of those versions'. Groups in x-k8s.io are of projects beside Kubernetes, with kinds of the same names.
func mistyped(group string, in []schema.GroupVersion) bool {
	if strings.HasSuffix(group, ".x-k8s.io") {
		return false
	}
	var groups []string
	for _, v := range in {
		groups = append(groups, v.Group)
	}
	return len(in) > 0 && (!strings.Contains(group, ".") || api.Closest(group, groups) != "")
}

// kindsIn returns the kinds of a group of Kubernetes, sorted.
func kindsIn(group string) []string {
	var kinds []string
	for _, gk := range api.KnownKinds() {
		if gk.Group == group {
			kinds = append(kinds, gk.Kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}
