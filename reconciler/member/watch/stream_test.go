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
