package kubeapi

import (
	"bytes"
	"encoding/json"
	"io"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/reconciler/server/store"
)

// A list is a page of objects.
type list struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*store.Object
}

// DeepCopyObject returns the list itself: its objects are immutable.
func (l *list) DeepCopyObject() apiruntime.Object { return l }

// codecs encode responses: objects have cached bytes, and the library encodes everything else.
type codecs struct{ serializer.CodecFactory }

func newCodecs() codecs {
	scheme := apiruntime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return codecs{serializer.NewCodecFactory(scheme)}
}

// whole returns the media types of complete objects. The library's others are for derived forms
// such as metadata.
func (c codecs) whole() []apiruntime.SerializerInfo {
	var infos []apiruntime.SerializerInfo
	for _, info := range c.SupportedMediaTypes() {
		if info.MediaType == apiruntime.ContentTypeJSON || info.MediaType == apiruntime.ContentTypeYAML {
			infos = append(infos, info)
		}
	}
	return infos
}

// EncoderForVersion returns an encoder for objects, which already have their version, and for
// the library's own types.
func (c codecs) EncoderForVersion(s apiruntime.Encoder, _ apiruntime.GroupVersioner) apiruntime.Encoder {
	e := encoder{Encoder: c.CodecFactory.EncoderForVersion(s, schema.GroupVersion{Version: "v1"}), id: s.Identifier()}
	var format struct{ Name, Pretty, YAML string }
	if json.Unmarshal([]byte(s.Identifier()), &format) == nil && format.Name == "json" {
		switch {
		case format.YAML == "true":
			e.shape = yaml.JSONToYAML
		case format.Pretty == "true":
			e.shape = indented
		default:
			e.id = store.JSON
		}
	}
	return e
}

type encoder struct {
	apiruntime.Encoder
	id apiruntime.Identifier
	// shape transforms the JSON of an object; nil if it does not change.
	shape func([]byte) ([]byte, error)
}

// Identifier implements runtime.Encoder.
func (e encoder) Identifier() apiruntime.Identifier { return e.id }

// Encode implements runtime.Encoder.
func (e encoder) Encode(object apiruntime.Object, w io.Writer) error {
	switch o := object.(type) {
	case *store.Object:
		raw, err := o.JSON()
		if err != nil {
			return err
		}
		return e.write(w, raw)
	case *list:
		return e.writeList(w, o)
	}
	return e.Encoder.Encode(object, w)
}

func (e encoder) write(w io.Writer, raw []byte) error {
	if e.shape != nil {
		shaped, err := e.shape(raw)
		if err != nil {
			return err
		}
		_, err = w.Write(shaped)
		return err
	}
	if _, err := w.Write(raw); err != nil {
		return err
	}
	_, err := w.Write([]byte{'\n'})
	return err
}

func (e encoder) writeList(w io.Writer, l *list) error {
	if err := encodeAll(l.Items); err != nil {
		return err
	}
	if e.shape == nil {
		return l.stream(w)
	}
	var b bytes.Buffer
	if err := l.stream(&b); err != nil {
		return err
	}
	return e.write(w, b.Bytes())
}

// encodeAll encodes objects without cached bytes, on all processors.
func encodeAll(objects []*store.Object) error {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	const at = 16
	for len(objects) > 0 {
		part := objects[:min(at, len(objects))]
		objects = objects[len(part):]
		group.Go(func() error {
			for _, o := range part {
				if _, err := o.JSON(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// stream writes the list as JSON, object by object.
func (l *list) stream(w io.Writer) error {
	head, err := json.Marshal(struct {
		metav1.TypeMeta
		metav1.ListMeta `json:"metadata"`
	}{l.TypeMeta, l.ListMeta})
	if err != nil {
		return err
	}
	between := strings.TrimSuffix(string(head), "}") + `,"items":[`
	for _, o := range l.Items {
		raw, err := o.JSON()
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, between); err != nil {
			return err
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
		between = ","
	}
	if len(l.Items) == 0 {
		if _, err := io.WriteString(w, between); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "]}\n")
	return err
}

func indented(raw []byte) ([]byte, error) {
	var b bytes.Buffer
	err := json.Indent(&b, raw, "", "  ")
	return b.Bytes(), err
}
