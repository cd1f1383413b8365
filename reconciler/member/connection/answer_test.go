package connection

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A response that is not the requested object is an error, whatever its status code, and its
// text is not quoted.
func TestAnswerThatIsNotTheObject(t *testing.T) {
	id := api.ID{Kind: "ConfigMap", Namespace: "app", Name: "a"}
	object := func(kind, namespace, name, uid string) string {
		return `{"apiVersion":"v1","kind":"` + kind + `","metadata":{"namespace":"` + namespace + `","name":"` + name + `","uid":"` + uid + `"}}`
	}
	answers := map[string]struct {
		body string
		// ok are the requests for which this response is valid.
		ok string
	}{
		"the object":             {object("ConfigMap", "app", "a", "1"), "apply patch dryRun read send delete"},
		"without a UID":          {object("ConfigMap", "app", "a", ""), "dryRun read send delete"},
		"another kind":           {object("Secret", "app", "a", "1"), ""},
		"another name":           {object("ConfigMap", "app", "b", "1"), ""},
		"another namespace":      {object("ConfigMap", "other", "a", "1"), ""},
		"a Status":               {`{"apiVersion":"v1","kind":"Status","status":"Success","message":"canary"}`, "delete"},
		"a failed Status":        {`{"apiVersion":"v1","kind":"Status","status":"Failure","message":"canary"}`, ""},
		"HTML":                   {`<html><body>canary</body></html>`, ""},
		"nothing":                {``, ""},
		"no object":              {`["canary"]`, ""},
		"an object without kind": {`{"canary":true}`, ""},
	}
	for name, test := range answers {
		t.Run(name, func(t *testing.T) {
			c := connAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Write([]byte(test.body))
			}))
			requests := map[string]func() error{
				"apply": func() error {
					_, _, err := c.ApplyWhole(t.Context(), configMapKind, id, []byte("{}"), true)
					return err
				},
				"patch": func() error {
					_, err := c.Patch(t.Context(), configMapKind, id, []byte("{}"), true)
					return err
				},
				"dryRun": func() error {
					_, err := c.DryRun(t.Context(), configMapKind, id, []byte("{}"))
					return err
				},
				"read": func() error {
					_, err := c.Read(t.Context(), configMapKind, id)
					return err
				},
				"send": func() error {
					return c.Send(t.Context(), configMapKind, id, types.JSONPatchType, []byte("[]"))
				},
				"delete": func() error {
					_, err := c.Delete(t.Context(), configMapKind, id, "", metav1.DeletePropagationBackground)
					return err
				},
			}
			for request, do := range requests {
				err := do()
				if ok := strings.Contains(test.ok, request); ok != (err == nil) {
					t.Errorf("%s: %v", request, err)
				}
				if err != nil && strings.Contains(err.Error(), "canary") {
					t.Errorf("%s quotes the answer: %v", request, err)
				}
			}
		})
	}
}

// The answer to an apply has everything of the object, although the owners of its fields are decoded apart from it.
func TestAppliedObjectsAreWhole(t *testing.T) {
	const entry = `{"manager":"gitfleet","operation":"Apply","apiVersion":"v1","time":"2026-11-29T10:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{},"k:{\"n\":\"]\"}":{".":{}}}}}`
	for name, text := range map[string]string{
		"none":      `"metadata":{"name":"a","uid":"1"}`,
		"null":      `"metadata":{"name":"a","uid":"1","managedFields":null}`,
		"empty":     `"metadata":{"name":"a","managedFields":[],"uid":"1"}`,
		"one":       `"metadata":{"name":"a","uid":"1","managedFields":[` + entry + `]},"data":{"a":"b"}`,
		"several":   `"metadata":{"managedFields":[` + entry + `,{"manager":"kubectl","operation":"Update","subresource":"status","time":"2026-11-29T11:00:00Z","fieldsV1":{}}],"name":"a","uid":"1"}`,
		"spaces":    `"metadata" : {"name":"a","uid":"1","managedFields" : [` + entry + `]}`,
		"escaped":   `"data":{"\"metadata":"\\","b":"{[\"managedFields\":["},"metadata":{"name":"a","uid":"1","managedFields":[` + entry + `]}`,
		"elsewhere": `"spec":{"managedFields":[1],"metadata":{"managedFields":[2]}},"list":[{"metadata":{"managedFields":[3]}}],"metadata":{"name":"a","uid":"1","labels":{"managedFields":"x"}}`,
		"no time":   `"metadata":{"name":"a","uid":"1","managedFields":[{"manager":"x","time":"yesterday"}]}`,
		"no item":   `"metadata":{"name":"a","uid":"1","managedFields":["x"]}`,
		"no list":   `"metadata":{"name":"a","uid":"1","managedFields":{"manager":"x"}}`,
	} {
		text = `{"apiVersion":"v1","kind":"ConfigMap",` + text + "}"
		id := api.ID{Kind: "ConfigMap", Name: "a"}
		want, err := decodeObject([]byte(text), Resource{}, id)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeApplied([]byte(text), Resource{}, id)
		if err != nil || !reflect.DeepEqual(got.GetManagedFields(), want.GetManagedFields()) {
			t.Fatalf("%s: %v, %+v, want %+v", name, err, got.GetManagedFields(), want.GetManagedFields())
		}
		if whole := got.Whole(); len(want.GetManagedFields()) > 0 && !reflect.DeepEqual(whole.Object, want.Object) {
			t.Errorf("%s: %v, want %v", name, whole.Object, want.Object)
		}
	}
}

// Problems that an API server lists in no order always give the same message.
func TestListedProblemsAreSorted(t *testing.T) {
	var messages []string
	for _, list := range []string{"  .spec.a: duplicate entries\n  .spec.b: duplicate entries", "  .spec.b: duplicate entries\n  .spec.a: duplicate entries"} {
		c := connAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			apiserver.Refuse(w, http.StatusInternalServerError, "failed to create typed patch object: errors:\n"+list)
		}))
		_, _, err := c.ApplyWhole(t.Context(), configMapKind, api.ID{Kind: "ConfigMap", Namespace: "app", Name: "a"}, []byte("{}"), true)
		messages = append(messages, err.Error())
	}
	if messages[0] != messages[1] || strings.Index(messages[0], ".spec.a") > strings.Index(messages[0], ".spec.b") {
		t.Errorf("the messages are %q", messages)
	}
}

// A manifest that the schema of its kind does not allow is refused, which does not pass by itself, although API servers call it an
// internal error.
func TestRefusalBySchema(t *testing.T) {
	tests := map[string]struct {
		message string
		want    bool
	}{
		"a field that the schema does not have": {"failed to create typed patch object (app/a; /v1, Kind=ConfigMap): .spec.size: field not declared in schema", true},
		"a server in trouble":                   {"etcd: failed to create typed patch object", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := connAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				apiserver.Refuse(w, http.StatusInternalServerError, test.message)
			}))
			id := api.ID{Kind: "ConfigMap", Namespace: "app", Name: "a"}
			_, _, err := c.ApplyWhole(t.Context(), configMapKind, id, []byte("{}"), true)
			if RefusedBySchema(err) != test.want || apierrors.IsInternalError(err) == test.want || err.Error() != test.message {
				t.Errorf("%v: refused %t, an internal error %t", err, RefusedBySchema(err), apierrors.IsInternalError(err))
			}
			if _, err := c.DryRun(t.Context(), configMapKind, id, []byte("{}")); RefusedBySchema(err) != test.want {
				t.Errorf("in a dry run: %v", err)
			}
		})
	}
}

// A message ends with what is wrong, however long the value is that it quotes.
func TestLongValuesAreLeftOut(t *testing.T) {
	long := strings.Repeat("x", 5000)
	tests := map[string]struct{ message, want string }{
		"a short value":     {`spec: Invalid value: {"a":"b"}: field is immutable`, `spec: Invalid value: {"a":"b"}: field is immutable`},
		"JSON":              {`spec.template: Invalid value: {"a":{"b":"}\"` + long + `"}}: field is immutable`, `spec.template: Invalid value: {…}: field is immutable`},
		"a type of Go":      {`spec.template: Invalid value: core.PodTemplateSpec{Name:"` + long + `"}: field is immutable`, `spec.template: Invalid value: core.PodTemplateSpec{…}: field is immutable`},
		"two":               {`[a: Invalid value: {"a":"` + long + `"}: no, b: Invalid value: {"a":"` + long + `"}: never]`, `[a: Invalid value: {…}: no, b: Invalid value: {…}: never]`},
		"a text":            {`a: Invalid value: "` + long + `": no`, `a: Invalid value: "` + long + `": no`},
		"it ends too early": {`a: Invalid value: {"a":"` + long, `a: Invalid value: {"a":"` + long},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := inOrder(&apierrors.StatusError{ErrStatus: metav1.Status{Message: test.message}})
			if got := err.Error(); got != test.want {
				t.Errorf("got %q", CutTo(got, 300))
			}
		})
	}
}
