package schema

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubernetes "k8s.io/client-go/kubernetes/scheme"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// KubernetesVersion is the version of the Kubernetes libraries with whose types manifests are
// compared.
const KubernetesVersion = "1.37"

// builtin has Kubernetes' own kinds. The scheme that all packages share may have others.
var builtin = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := kubernetes.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}()

// CheckBuiltin compares the object at p with the Go type of its kind, if the kind is built into
// Kubernetes, and warns of unknown fields, invalid values and whatever else every API server
// refuses. It refuses nothing, since a
// member may have a newer version, and it quotes no value.
func CheckBuiltin(r *document.Report, p *document.FieldPath, object map[string]any) {
	(&comparison{r: r}).builtin(object, p)
}

// TextFields returns the paths of the texts in an object that can be nothing else, as far as its kind is built in. That goes for the
// metadata of every kind.
func TextFields(object map[string]any) [][]string {
	c := &comparison{r: &document.Report{}, texts: &[][]string{}}
	c.builtin(object, nil)
	return *c.texts
}

// builtin compares the object at p with the Go type of its kind.
func (c *comparison) builtin(object map[string]any, p *document.FieldPath) {
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	gv, err := schema.ParseGroupVersion(version)
	if err != nil || kind == "" {
		return
	}
	c.by, c.secret = "Kubernetes "+KubernetesVersion, gv.Group == "" && kind == "Secret"
	t, known := builtin.AllKnownTypes()[gv.WithKind(kind)]
	switch {
	case known:
		c.value(object, schemaOf(t), p, nil)
		c.checkNames(gv.WithKind(kind).GroupKind(), object, p)
	case builtin.IsGroupRegistered(gv.Group):
		checkUnknownKind(c.r, p, gv.WithKind(kind))
	default: // every kind has the same metadata
		c.value(object["metadata"], schemaOf(reflect.TypeFor[metav1.ObjectMeta]()), p.Child("metadata"), nil)
		c.checkNames(gv.WithKind(kind).GroupKind(), object, p)
	}
}

// checkUnknownKind warns of a kind or version that does not exist in its API group of
// Kubernetes.
func checkUnknownKind(r *document.Report, p *document.FieldPath, gvk schema.GroupVersionKind) {
	var kinds, versions []string
	for k := range builtin.AllKnownTypes() {
		if k.Group != gvk.Group {
			continue
		}
		if k.Kind == gvk.Kind {
			versions = append(versions, k.GroupVersion().String())
		}
		if _, isKind := api.Namespaced(k.GroupKind()); isKind {
			kinds = append(kinds, k.Kind)
		}
	}
	if len(versions) > 0 {
		slices.Sort(versions)
		r.Warnf(p.Child("apiVersion"), "Kubernetes %s has no %s in %s; it has it in %s",
			KubernetesVersion, gvk.Kind, gvk.GroupVersion(), strings.Join(versions, ", "))
		return
	}
	slices.Sort(kinds)
	if best := api.Closest(gvk.Kind, slices.Compact(kinds)); best != "" {
		r.Warnf(p.Child("kind"), "Kubernetes %s has no such kind in %s; did you mean %s?", KubernetesVersion, gvk.GroupVersion(), best)
	}
}
