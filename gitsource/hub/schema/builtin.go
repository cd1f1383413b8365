package schema

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

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
	checkServed(c.r, p, gv.WithKind(kind))
	t, known := builtin().AllKnownTypes()[gv.WithKind(kind)]
	switch {
	case known:
		c.value(object, schemaOf(t), p, nil)
		c.checkNames(gv.WithKind(kind).GroupKind(), object, p)
	case builtin().IsGroupRegistered(gv.Group):
	default: // every kind has the same metadata
		c.value(object["metadata"], schemaOf(reflect.TypeFor[metav1.ObjectMeta]()), p.Child("metadata"), nil)
		c.checkNames(gv.WithKind(kind).GroupKind(), object, p)
	}
}
