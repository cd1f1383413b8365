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
