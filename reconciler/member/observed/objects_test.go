package observed

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/health"
)

// Every field of an object is kept; a new field that is not packed would be lost.
func TestObjectsAreKeptWhole(t *testing.T) {
	for _, uid := range []types.UID{"", "0b5f9a3e-1c2d-4e5f-8a9b-0c1d2e3f4a5b", "of another form"} {
		var l Object
		fill(t, reflect.ValueOf(&l).Elem(), "live")
		l.UID = uid
		known := Objects{}
		known.Put(object("x"), &l)
		if got := known.Of(object("x")); got == nil || *got != l {
			t.Errorf("kept %+v, want %+v", got, l)
		}
		if got := known.OwnershipState(object("x")); got != (OwnershipState{uid: uid, managed: l.Managed, others: l.Others, owned: true}) {
			t.Errorf("its ownership state is %+v", got)
		}
		if got := known.Of(object("y")); got != nil {
			t.Errorf("knows of what was never put: %+v", got)
		}
		known.Drop(object("x"))
		if known.Len() > 0 {
			t.Errorf("left: %v", known)
		}
	}
}

// The size of all texts follows what is put and dropped, so that it can be bounded.
func TestTextOfObjects(t *testing.T) {
	known := Objects{}
	put := func(name, message string) {
		known.Put(object(name), &Object{Fleet: "prod", Health: health.Health{Message: message}})
	}
	put("x", "long")
	put("y", "longer")
	put("x", "")
	if got, least := known.Bytes(), known.Len()*objectBytes; got < least || got > 4*least {
		t.Errorf("%d objects take %d bytes", known.Len(), got)
	}
	if got := known.Text(); got != len("prod")*2+len("longer") {
		t.Errorf("the texts of two objects have %d bytes", got)
	}
	known.Drop(object("z"))
	known.Drop(object("x"))
	known.DropMissing(object("y").GroupKind(), List{})
	if got := known.Text(); got != 0 || known.Len() != 0 || known.Bytes() != 0 {
		t.Errorf("%d bytes of %d objects are left", got, known.Len())
	}
}

// Texts that no API server stores are shortened.
func TestLongTextsAreShortened(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		UID: types.UID(long), Labels: map[string]string{api.ManagedByLabel: long}, Finalizers: []string{long}, DeletionTimestamp: &metav1.Time{},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: long, Time: &metav1.Time{}}},
	}}
	if o := Of(m); o.Text() > 8<<10 || o.Writer == "" || o.Finalizers == "" || o.Fleet == "" {
		t.Errorf("%d bytes are kept", o.Text())
	}
}

// fill sets every field of a struct to a value that is not zero.
func fill(t *testing.T, v reflect.Value, name string) {
	t.Helper()
	v = reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), name+"."+v.Type().Field(i).Name)
		}
	case reflect.String:
		v.SetString("some " + name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64, reflect.Int:
		v.SetInt(42)
	case reflect.Uint64:
		v.SetUint(43)
	default:
		t.Fatalf("%s is a %s: keep it whole, and fill it here", name, v.Kind())
	}
}

// DropMissing drops the objects of the kind that the list does not have, unless they are newer
// than the list.
func TestMissingAreOfTheKindAndNotNewer(t *testing.T) {
	var l Objects
	other := api.ID{Kind: "Secret", Namespace: "default", Name: "gone"}
	for id, version := range map[api.ID]uint64{object("there"): 1, object("gone"): 2, object("newer"): 4, other: 1} {
		l.Put(id, &Object{Version: version})
	}
	gone := l.DropMissing(object("").GroupKind(), List{Found: map[api.ID]bool{object("there"): true}, Version: 3})
	if !slices.Equal(gone, []api.ID{object("gone")}) {
		t.Errorf("gone are %v", gone)
	}
	if got := slices.Collect(l.IDs()); len(got) != 3 || slices.Contains(got, object("gone")) {
		t.Errorf("left are %v", got)
	}
}

func object(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "app", Name: name} }
