package connection

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Answer returns the body of a result. Its error is the decoded error of the server; Raw alone
// does not decode it.
func Answer(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, asRefusal(inOrder(err))
	}
	return r.Raw()
}

// noTypedPatch begins the message of an API server that cannot apply a manifest because of what is in it: a field that the
// schema does not have, a value of another type, or two items of a list with the same key.
const noTypedPatch = "failed to create typed patch object"

// asRefusal returns the error of a server that refuses a manifest by its schema as a bad request. API servers call that an
// internal error, as if it would pass by itself.
func asRefusal(err error) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if ok && status.ErrStatus.Code == http.StatusInternalServerError && strings.HasPrefix(status.ErrStatus.Message, noTypedPatch) {
		status.ErrStatus.Code, status.ErrStatus.Reason = http.StatusBadRequest, metav1.StatusReasonBadRequest
		status.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: schemaCause}}}
	}
	return err
}

// inOrder sorts what an API server lists in a message, one problem a line and in no order, so that the
// same problems give the same message. It leaves out long values that the message quotes.
func inOrder(err error) error {
	const listed = "errors:\n"
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return err
	}
	status.ErrStatus.Message = withoutLongValues(status.ErrStatus.Message)
	before, list, found := strings.Cut(status.ErrStatus.Message, listed)
	if !found {
		return err
	}
	lines := strings.Split(list, "\n")
	slices.Sort(lines)
	status.ErrStatus.Message = before + listed + strings.Join(lines, "\n")
	return err
}

// longestValue is the length in bytes of the longest object that a message quotes in full.
const longestValue = 200

// withoutLongValues shortens objects that the message of an API server quotes, such as the whole pod template of a
// Job, since what is wrong with them comes after that.
func withoutLongValues(message string) string {
	const quoted = "Invalid value: "
	var out strings.Builder
	for {
		before, value, found := strings.Cut(message, quoted)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		out.WriteString(quoted)
		if begin, end := objectAt(value); end-begin > longestValue {
			out.WriteString(value[:begin] + "{…}")
			value = value[end:]
		}
		message = value
	}
}

// objectAt returns where an object begins and ends with which a text begins, in JSON or after the name of its type as Go writes it; zero if it
// begins with anything else.
func objectAt(text string) (begin, end int) {
	begin = strings.IndexAny(text, `{":, `)
	if begin < 0 || text[begin] != '{' {
		return 0, 0
	}
	depth, inString := 0, false
	for i := begin; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return begin, i + 1
			}
		}
	}
	return 0, 0
}

// ErrNotObject is returned for a response that is not a Kubernetes object, such as a login page
// of a proxy. The response is not quoted, since it may contain the credentials of the request.
var ErrNotObject = errors.New("the answer is not a Kubernetes object; see whether a proxy answers in place of the API server")

// decodeObject decodes the response to a request for an object. It refuses a response with
// another object, since the requested object would seem to have lost its content.
func decodeObject(raw []byte, r Resource, id api.ID) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(raw); err != nil {
		return nil, ErrNotObject
	}
	if err := checkAnswer(o.GroupVersionKind().GroupKind(), o, r, id); err != nil {
		return nil, err
	}
	return o, nil
}

// An Applied is an object as an API server has stored it, with an empty list in place of metadata.managedFields: decoded as nested
// maps, that would be most of the object.
type Applied struct {
	*unstructured.Unstructured
	entries []metav1.ManagedFieldsEntry
}

// GetManagedFields returns the entries of metadata.managedFields.
func (a *Applied) GetManagedFields() []metav1.ManagedFieldsEntry { return a.entries }

// Whole adds metadata.managedFields to the object, and returns it.
func (a *Applied) Whole() *unstructured.Unstructured {
	a.SetManagedFields(a.entries)
	return a.Unstructured
}

// decodeApplied is decodeObject for the response to an apply, which it changes.
func decodeApplied(raw []byte, r Resource, id api.ID) (*Applied, error) {
	a := &Applied{}
	from, to := managedFieldsIn(raw)
	cut := json.Unmarshal(raw[from:to], &a.entries) == nil
	if cut {
		raw = append(raw[:from+1], raw[to-1:]...)
	}
	var err error
	if a.Unstructured, err = decodeObject(raw, r, id); err != nil {
		return nil, err
	}
	if !cut {
		a.entries = a.Unstructured.GetManagedFields()
	}
	return a, storedUID(a)
}

// managedFieldsIn returns where the list metadata.managedFields of an object in JSON begins and ends. Both are zero if it has none, or
// is not as API servers encode it.
func managedFieldsIn(raw []byte) (from, to int) {
	depth, inMetadata := 0, false
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; from > 0 && depth == 2 {
				return from, i + 1
			}
		case '"':
			begin := i + 1
			for i = begin; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			if i+2 >= len(raw) || raw[i+1] != ':' {
				continue // it is not the name of a field
			}
			switch name := raw[begin:i]; {
			case depth == 1:
				inMetadata = string(name) == "metadata"
			case depth == 2 && inMetadata && string(name) == "managedFields" && raw[i+2] == '[':
				from = i + 2
			}
		}
	}
	return 0, 0
}

// AcceptMetadata requests only the metadata of the result, which is cheaper for both sides.
const AcceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// decodeMetadata is decodeObject for a response of which only the metadata is used.
func decodeMetadata(raw []byte, r Resource, id api.ID) (*metav1.PartialObjectMetadata, error) {
	o := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(raw, o); err != nil {
		return nil, ErrNotObject
	}
	kind := o.GroupVersionKind().GroupKind()
	if kind == partialObjectMetadata {
		kind = id.GroupKind()
	}
	if err := checkAnswer(kind, o, r, id); err != nil {
		return nil, err
	}
	return o, nil
}

// decodeStored is decodeMetadata for the response to a write of an object.
func decodeStored(raw []byte, r Resource, id api.ID) (*metav1.PartialObjectMetadata, error) {
	o, err := decodeMetadata(raw, r, id)
	if err != nil {
		return nil, err
	}
	return o, storedUID(o)
}

var partialObjectMetadata = schema.GroupKind{Group: metav1.GroupName, Kind: "PartialObjectMetadata"}

// checkAnswer returns an error if a response is not about the requested object.
func checkAnswer(kind schema.GroupKind, o metav1.Object, r Resource, id api.ID) error {
	is := api.ID{Group: kind.Group, Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
	want := id
	if !r.Namespaced {
		want.Namespace = ""
	}
	switch {
	case is.Kind == "":
		return ErrNotObject
	case is != want:
		return fmt.Errorf("the API server answered with %q instead of %q", Cut(is.String()), want.String())
	}
	return nil
}

// storedUID returns an error if the response to a write shows that the server has not stored
// the object.
func storedUID(o metav1.Object) error {
	if o.GetUID() == "" {
		return errors.New("the API server answered with an object that has no UID, so it cannot have stored it")
	}
	return nil
}
