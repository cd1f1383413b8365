package connection

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/faults"
)

// Server-side applies are most of the requests to a cluster. They are sent without client-go's request
// builder, which takes less than half of the time besides net/http (BenchmarkApplyWhole). A request that
// fails is passed to client-go, which retries it or decodes its Status.

// Patch applies one object and returns the metadata of the result.
func (c *Conn) Patch(ctx context.Context, r Resource, id api.ID, body []byte, force bool) (o *metav1.PartialObjectMetadata, err error) {
	_, err = c.apply(ctx, r, id, body, force, false, func(raw []byte) error {
		o, err = decodeStored(raw, r, id)
		return err
	})
	return o, err
}

// ApplyWhole applies one object and returns the result, and whether the object was created.
func (c *Conn) ApplyWhole(ctx context.Context, r Resource, id api.ID, body []byte, force bool) (o *Applied, created bool, err error) {
	created, err = c.apply(ctx, r, id, body, force, true, func(raw []byte) error {
		o, err = decodeApplied(raw, r, id)
		return err
	})
	return o, created, err
}

// ApplyAs applies an object, or a part of it, under another field manager than ours, and returns
// the result. It overrides no other manager: if one has another value, the error is Conflict.
func (c *Conn) ApplyAs(ctx context.Context, r Resource, id api.ID, body []byte, manager string) (*unstructured.Unstructured, error) {
	raw, _, err := c.write(ctx, c.REST().Patch(types.ApplyPatchType).AbsPath(r.Path(id)...).Param("fieldManager", manager).Body(escaped(body)))
	if err != nil {
		return nil, err
	}
	return decodeObject(raw, r, id)
}

// applyQuery has the encoded query parameters of a server-side apply, by the value of force.
var applyQuery = map[bool]string{true: queryOf(true), false: queryOf(false)}

func queryOf(force bool) string {
	return url.Values{
		"fieldManager": {api.FieldManager}, "force": {strconv.FormatBool(force)}, "fieldValidation": {readOnce},
	}.Encode()
}

// apply applies one object, has decode read the server's response, and reports whether the object was created. The
// response is valid until decode returns.
func (c *Conn) apply(ctx context.Context, r Resource, id api.ID, body []byte, force, whole bool, decode func([]byte) error) (created bool, err error) {
	all := c.clients()
	client, header := all.rest, all.applyHeader.metadata
	if len(body) > largeBody {
		client = all.bulk
	}
	if whole {
		header = all.applyHeader.whole
	}
	if all.applyHeader.plugin {
		header = header.Clone()
	}
	body = escaped(body)
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, "", bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	at := *all.base
	at.Path, at.RawQuery = path.Join(append([]string{at.Path}, r.Path(id)...)...), applyQuery[force]
	req.URL, req.Host, req.Header = &at, at.Host, header
	res, err := client.Client.Do(req)
	if err != nil || res.StatusCode >= http.StatusMultipleChoices {
		again := all.patch(answered(client.Client, res, err))
		raw, code, err := c.write(ctx, applyRequest(again, r, id, body, force).SetHeader("Accept", header.Get("Accept")))
		if err != nil {
			return false, err
		}
		return code == http.StatusCreated, decode(raw)
	}
	buffer := buffers.Get().(*bytes.Buffer)
	defer keepBuffer(buffer)
	_, err = buffer.ReadFrom(res.Body)
	res.Body.Close()
	faults.At("written")
	if err = c.RecordResult(err); err != nil {
		return false, err
	}
	return res.StatusCode == http.StatusCreated, decode(buffer.Bytes())
}

// escaped returns JSON with escapes in place of the characters that YAML does not have, or reads as line breaks: an API server reads
// what is applied as YAML. It refuses the others ("control characters are not allowed"), and a line break in a text becomes a space.
func escaped(body []byte) []byte {
	forbidden := func(r rune) bool {
		return r >= 0x7F && r <= 0x9F || r == 0x2028 || r == 0x2029 || r == 0xFEFF || r == 0xFFFE || r == 0xFFFF
	}
	if !slices.ContainsFunc(body, func(b byte) bool { return b >= 0x7F }) {
		return body // as most are
	}
	out := make([]byte, 0, len(body)+64)
	for rest := body; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if forbidden(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, rest[:size]...)
		}
		rest = rest[size:]
	}
	return out
}

func applyRequest(patch *rest.Request, r Resource, id api.ID, body []byte, force bool) *rest.Request {
	return patch.AbsPath(r.Path(id)...).Param("fieldManager", api.FieldManager).
		Param("force", strconv.FormatBool(force)).Param("fieldValidation", readOnce).Body(escaped(body))
}

// answered returns a client for a request that another one has sent already, with a response or an error.
func answered(by *http.Client, res *http.Response, err error) *http.Client {
	first := &firstAnswer{res: res, err: err, next: by.Transport}
	if sent, ok := errors.AsType[*url.Error](err); ok {
		first.err = sent.Err
	}
	return &http.Client{Transport: first, CheckRedirect: by.CheckRedirect}
}

// A firstAnswer is a transport for one request, whose first response is known.
type firstAnswer struct {
	res  *http.Response
	err  error
	used bool
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (f *firstAnswer) RoundTrip(req *http.Request) (*http.Response, error) {
	if f.used {
		return f.next.RoundTrip(req)
	}
	f.used = true
	if req.Body != nil {
		req.Body.Close()
	}
	return f.res, f.err
}

// buffers are for the responses to applies. Those for large objects are not kept.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const keptBuffer = 32 << 10

func keepBuffer(b *bytes.Buffer) {
	if b.Cap() <= keptBuffer {
		b.Reset()
		buffers.Put(b)
	}
}
