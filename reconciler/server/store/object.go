package store

import (
	"encoding/json"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An Object is one version of an object. It is encoded when first needed, once for all clients
// that have it: each client has its own if its source is Transient. It is immutable once it is
// in a store.
type Object struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	// Value is what it was made from, for code that knows the kind.
	Value any
	// Field returns a selectable field besides the name and the namespace; nil if there is
	// none.
	Field func(name string) (value string, ok bool)
	// Content returns the value for encoding/json with the given metadata, or a Marshaler.
	Content func(metav1.ObjectMeta) (any, error)

	version uint64

	mu      sync.Mutex
	encoded []byte
	as      map[string]*Object
}

// GetObjectKind implements runtime.Object.
func (o *Object) GetObjectKind() schema.ObjectKind { return &o.TypeMeta }

// DeepCopyObject returns the object itself, which is immutable.
func (o *Object) DeepCopyObject() runtime.Object { return o }

// GetObject implements runtime.CacheableObject.
func (o *Object) GetObject() runtime.Object { return o }

// copy returns an equal object without a version.
func (o *Object) copy() *Object {
	return &Object{TypeMeta: o.TypeMeta, ObjectMeta: o.ObjectMeta, Value: o.Value, Field: o.Field, Content: o.Content}
}

func (o *Object) stamp(version uint64) {
	o.version = version
	o.ResourceVersion = strconv.FormatUint(version, 10)
}

// JSON returns the object without spaces and line feeds.
func (o *Object) JSON() ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.encoded != nil {
		return o.encoded, nil
	}
	content, err := o.Content(o.ObjectMeta)
	if err != nil {
		return nil, err
	}
	if m, ok := content.(Marshaler); ok {
		o.encoded, err = m.MarshalObject()
	} else {
		o.encoded, err = json.Marshal(content)
	}
	return o.encoded, err
}

// MarshalJSON implements json.Marshaler, since rows of a table may contain whole objects.
func (o *Object) MarshalJSON() ([]byte, error) { return o.JSON() }

// A Marshaler encodes itself as JSON without spaces and line feeds. Unlike with json.Marshaler,
// the result is not checked.
type Marshaler interface{ MarshalObject() ([]byte, error) }

// As returns the object in another version of its kind, converted once.
func (o *Object) As(version string, convert func(*Object) *Object) *Object {
	o.mu.Lock()
	defer o.mu.Unlock()
	as := o.as[version]
	if as == nil {
		if o.as == nil {
			o.as = map[string]*Object{}
		}
		as = convert(o)
		as.version = o.version
		o.as[version] = as
	}
	return as
}

// Selectable are the selectable fields of an object.
func (o *Object) Selectable() fields.Fields { return selectable{o} }

type selectable struct{ *Object }

func (s selectable) Has(field string) bool {
	if field == "metadata.name" || field == "metadata.namespace" {
		return true
	}
	_, ok := s.field(field)
	return ok
}

func (s selectable) Get(field string) string {
	switch field {
	case "metadata.name":
		return s.Name
	case "metadata.namespace":
		return s.Namespace
	}
	value, _ := s.field(field)
	return value
}

func (s selectable) field(name string) (string, bool) {
	if s.Field == nil {
		return "", false
	}
	return s.Field(name)
}
