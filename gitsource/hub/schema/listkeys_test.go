package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/applyconfigurations"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	merge "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/gitfleet/gitfleet/test/golden"
)

// The keys of lists are those in the schema of server-side apply. -update takes them over from
// a newer version of the Kubernetes libraries.
func TestListKeysAreThoseOfServerSideApply(t *testing.T) {
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	value, err := applyconfigurations.NewTypeConverter(kubernetes.Scheme).ObjectToTyped(pod)
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]*merge.Map{}
	for _, def := range value.Schema().Types {
		types[def.Name] = def.Map
	}
	var lines []string
	for name, typ := range types {
		if typ == nil {
			continue
		}
		for _, f := range typ.Fields {
			list := f.Type.Inlined.List
			if list == nil || list.ElementRelationship != merge.Associative {
				continue
			}
			line := goTypeName(name) + " " + f.Name
			for _, key := range list.Keys {
				line += " " + key + defaultOf(types[*list.ElementType.NamedType], key)
			}
			lines = append(lines, line+"\n")
		}
	}
	slices.Sort(lines)
	golden.File(t, "listkeys.txt", strings.Join(lines, ""))
}

// goTypeName returns the Go type of io.k8s.api.core.v1.Pod: k8s.io/api/core/v1.Pod.
func goTypeName(name string) string {
	dot := strings.LastIndex(name, ".")
	return "k8s.io" + strings.ReplaceAll(strings.TrimPrefix(name[:dot], "io.k8s"), ".", "/") + name[dot:]
}

func defaultOf(item *merge.Map, key string) string {
	for _, f := range item.Fields {
		if f.Name == key && f.Default != nil && f.Default != "" && f.Default != 0 && f.Default != int64(0) && f.Default != float64(0) {
			return fmt.Sprint("=", f.Default)
		}
	}
	return ""
}
