package watch

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// However a stream is split into reads, its lines are returned completely, in order and once.
// An incomplete last line is not returned.
func TestLinesAreReadWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(1, 20), rapid.SampledFrom([]int{511, 512, 513, 1024, 5000})), 0, 8).Draw(t, "lengths")
		var want []string
		for i, n := range lengths {
			want = append(want, strings.Repeat(string(rune('a'+i)), n))
		}
		text := ""
		for _, line := range want {
			text += line + rapid.SampledFrom([]string{"\n", "\r\n", "\n\n"}).Draw(t, "end")
		}
		text += rapid.SampledFrom([]string{"", "torn"}).Draw(t, "rest")
		readers := map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "by bytes": iotest.OneByteReader, "by halves": iotest.HalfReader, "with the end": iotest.DataErrReader,
		}
		var got []string
		how := rapid.SampledFrom([]string{"whole", "by bytes", "by halves", "with the end"}).Draw(t, "how")
		lines := newLineReader(readers[how](strings.NewReader(text)), noSlot{})
		line, err := lines.next()
		for ; err == nil; line, err = lines.next() {
			got = append(got, string(line))
		}
		if !errors.Is(err, io.EOF) || !slices.Equal(got, want) {
			t.Fatalf("%s: %q, %v; want %q", how, got, err, want)
		}
	})
}

const modified = `{"type":"MODIFIED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"settings","namespace":"app",` +
	`"uid":"0b5f9a3e-1c2d-4e5f-8a9b-0c1d2e3f4a5b","resourceVersion":"123456","generation":3,"creationTimestamp":"2026-11-02T10:11:12Z",` +
	`"labels":{"app.kubernetes.io/name":"settings","app.kubernetes.io/part-of":"shop","gitfleet.dev/managed-by":"prod"},` +
	`"annotations":{"gitfleet.dev/origin":"apps/settings/configmap.yaml","gitfleet.dev/prune":"disabled","gitfleet.dev/commit":"0123456789abcdef"},` +
	`"finalizers":["example.com/hold"],"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"1"}],` +
	`"managedFields":[{"manager":"gitfleet","operation":"Apply","apiVersion":"v1","time":"2026-11-02T10:11:12Z","fieldsType":"FieldsV1",` +
	`"fieldsV1":{"f:data":{"f:level":{},"f:region":{}},"f:metadata":{"f:annotations":{"f:gitfleet.dev/commit":{}},"f:labels":{"f:gitfleet.dev/managed-by":{}}}}}]}}}`

// What is kept of an object is the same whether a watch delivers it whole or its metadata.
func TestEventsOfMetadataHaveWhatIsKept(t *testing.T) {
	var states []*observed.Object
	for _, full := range []bool{false, true} {
		k := NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{})
		k.Full = full
		_, o, err := k.decodeEvent([]byte(modified))
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, observed.Watched(o, ""))
	}
	if *states[0] != *states[1] || !states[0].Kept || states[0].Fleet != "prod" || states[0].Managed == "" {
		t.Errorf("of metadata\n%+v\nand of the whole object\n%+v", *states[0], *states[1])
	}
}

// BenchmarkEvent is what an event of a watch of metadata costs.
func BenchmarkEvent(b *testing.B) {
	k := NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{})
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := k.decodeEvent([]byte(modified)); err != nil {
			b.Fatal(err)
		}
	}
}

// An endless event does not fill the memory.
func TestLinesAreBounded(t *testing.T) {
	lines := newLineReader(io.LimitReader(apiserver.Repeat('x'), 2*connection.LargestObject), noSlot{})
	if _, err := lines.next(); !errors.Is(err, errLongLine) {
		t.Errorf("it was read to its end: %v", err)
	}
}

// A small event that would decode to much is refused before it is decoded.
func TestDenseEventsAreRefused(t *testing.T) {
	line := `{"type":"ADDED","object":{"kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"7","ownerReferences":[{}` + strings.Repeat(",{}", 1<<20) + "]}}}"
	lines := newLineReader(strings.NewReader(line+"\n"), setOf(t, &rest.Config{Host: "https://server.example"}).conn.EventSlot(t.Context(), func() {}))
	if _, err := lines.next(); !connection.IsExceeded(err) {
		t.Error(err)
	}
}

type noSlot struct{}

func (noSlot) Grow(int) error     { return nil }
func (noSlot) Check([]byte) error { return nil }
func (noSlot) Release()           {}

// Events are decoded as metadata or whole objects like their watch, and errors have the
// server's message.
func TestEventsAreDecoded(t *testing.T) {
	tests := map[string]struct {
		full       bool
		line       string
		what, name string
		gone       bool
		err        string
	}{
		"metadata": {false, `{"type":"ADDED","object":{"kind":"PartialObjectMetadata","metadata":{"name":"a","resourceVersion":"7"}}}`, "ADDED", "a", false, ""},
		"whole":    {true, `{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"7"},"data":{"k":"v"}}}`, "MODIFIED", "a", false, ""},
		"expired":  {false, `{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}`, "", "", true, "too old"},
		"torn":     {false, `{"type":"ADDED","obj`, "", "", false, "decode event"},
		"nothing":  {false, `{"type":"ADDED","object":{"kind":"Unknown","hello":1}}`, "", "", false, "resourceVersion"},
		"no kind":  {true, `{"type":"ADDED","object":{"metadata":{}}}`, "", "", false, "kind"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			k := &Kind{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Full: test.full}
			what, o, err := k.decodeEvent([]byte(test.line))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || apierrors.IsResourceExpired(err) != test.gone {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			id, _ := k.stateOf(o)
			if string(what) != test.what || id.Name != test.name {
				t.Errorf("%s %s", what, id)
			}
		})
	}
}
