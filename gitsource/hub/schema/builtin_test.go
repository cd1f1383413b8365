package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	kubernetes "k8s.io/client-go/kubernetes/scheme"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// Every field that the libraries can encode is known, and has a value of the right type. The rules
// are about values, which this test makes up.
func TestCheckBuiltinAcceptsEveryField(t *testing.T) {
	for gvk, typ := range kubernetes.Scheme.AllKnownTypes() {
		if _, isKind := api.Namespaced(gvk.GroupKind()); !isKind {
			continue
		}
		whole := reflect.New(typ)
		fillIn(whole.Elem(), 12)
		data, err := json.Marshal(whole.Interface())
		if err != nil {
			t.Fatalf("%s: %v", gvk, err)
		}
		var object map[string]any
		if err := utiljson.Unmarshal(data, &object); err != nil {
			t.Fatalf("%s: %v", gvk, err)
		}
		object["apiVersion"], object["kind"] = gvk.GroupVersion().String(), gvk.Kind
		r := &document.Report{}
		CheckBuiltin(r, nil, object)
		for _, p := range r.Problems {
			if strings.HasPrefix(p.Message, "unknown field") || strings.HasPrefix(p.Message, "must be a") {
				t.Errorf("%s: %v", gvk, p)
			}
		}
	}
}

// fillIn sets every field that can be set without knowing its meaning.
func fillIn(v reflect.Value, depth int) {
	if depth == 0 || reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return // the JSON of this type does not follow from its Go fields
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillIn(v.Elem(), depth-1)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fillIn(f, depth-1)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillIn(v.Index(0), depth-1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fillIn(value, depth-1)
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), value)
	case reflect.String:
		v.SetString("word")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(3)
	}
}

// Every type that decodes itself has a rule of its own or is not compared: its Go fields say
// nothing about its JSON.
func TestTypesThatDecodeThemselvesHaveRules(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		if _, special := specialTypes[typ]; special {
			return
		}
		of := reflect.PointerTo(typ)
		decodes := of.Implements(reflect.TypeFor[json.Unmarshaler]()) || of.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
		switch typ.Kind() {
		case reflect.Struct:
			fields := fieldsOf(typ)
			if decodes && len(fields) > 0 {
				t.Errorf("%s decodes itself, and has fields", typ)
			}
			for _, f := range fields {
				walk(f.schema.(goType).Type)
			}
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(typ.Elem())
		default:
			if decodes {
				t.Errorf("%s decodes itself, and has no rule", typ)
			}
		}
	}
	for _, typ := range kubernetes.Scheme.AllKnownTypes() {
		walk(typ)
	}
}

// The version in messages is that of the libraries.
func TestKubernetesVersion(t *testing.T) {
	text, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("k8s.io/api v0%s.", strings.TrimPrefix(KubernetesVersion, "1"))
	if !strings.Contains(string(text), want) {
		t.Errorf("KubernetesVersion is %s, and go.mod requires another: no line with %q", KubernetesVersion, want)
	}
}
