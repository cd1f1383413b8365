package observed

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// EntriesOf returns what GetManagedFields does, also for what no API server sends.
func TestEntriesOf(t *testing.T) {
	for name, text := range map[string]string{
		"none":     `{}`,
		"null":     `{"managedFields":null}`,
		"empty":    `{"managedFields":[]}`,
		"several":  `{"managedFields":[{"manager":"gitfleet","operation":"Apply","apiVersion":"v1","time":"2026-11-29T10:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a<b":{},".":{}}}},{"manager":"kubectl","operation":"Update","subresource":"status","time":"2026-11-29T11:00:00+02:00","fieldsV1":{}}]}`,
		"items":    `{"managedFields":[{"manager":"gitfleet","fieldsV1":{"f:spec":{"k:{\"name\":\"web\"}":{".":{}},"v:\"é\"":{}}}},{"manager":"x","fieldsV1":{"f:b":{},"f:a":{"f:c":{},"f:B":{}}}},{"manager":"y","fieldsV1":{"f:é":{}}},{"manager":"z","fieldsV1":{"f:a":"no set"}}]}`,
		"strange":  `{"managedFields":[{"manager":"x","unknown":"y"},{"manager":"y","unknown":{"a":1}}]}`,
		"no time":  `{"managedFields":[{"manager":"x","time":"yesterday"}]}`,
		"null in":  `{"managedFields":[{"manager":"x","time":null,"fieldsV1":null}]}`,
		"no owner": `{"managedFields":[{"manager":"x","fieldsV1":null}]}`,
		"no item":  `{"managedFields":["x"]}`,
		"no list":  `{"managedFields":{"manager":"x"}}`,
	} {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":` + text + `}`)); err != nil {
			t.Fatal(err)
		}
		if got, want := EntriesOf(o), o.GetManagedFields(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// BenchmarkEntriesOf is what the managedFields of an object cost after each apply.
func BenchmarkEntriesOf(b *testing.B) {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"managedFields":[{"manager":"gitfleet","operation":"Apply","apiVersion":"v1",` +
		`"time":"2026-11-02T10:11:12Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:level":{},"f:region":{},"f:replicas":{}},"f:metadata":{"f:annotations":` +
		`{"f:gitfleet.io/commit":{},"f:gitfleet.io/origin":{},"f:gitfleet.io/placement":{}},"f:labels":{"f:app.kubernetes.io/name":{},"f:gitfleet.io/managed-by":{}}}}}]}}`)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if entries := EntriesOf(o); len(entries) != 1 {
			b.Fatal("no entries")
		}
	}
}
