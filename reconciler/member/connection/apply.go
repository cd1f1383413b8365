package connection

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/faults"
)

// Server-side applies are most of the requests to a cluster. They are sent without client-go's request
// builder, which takes less than half of the time besides net/http (BenchmarkApplyWhole). A request that
// fails is passed to client-go, which retries it or decodes its Status.

// An applyHeader has the request headers of server-side applies, for responses with the whole object and with metadata only. All
// requests share them, so that they must not be changed.
type applyHeader struct {
	whole, metadata http.Header
	// plugin says that a credential plugin adds its token to the headers of each request, which is then a copy.
	plugin bool
}

func newApplyHeader(cfg *rest.Config) applyHeader {
	with := func(accept string) http.Header {
		h := http.Header{"Content-Type": {string(types.ApplyPatchType)}, "Accept": {accept}, "User-Agent": {cfg.UserAgent}}
		if cfg.BearerToken != "" && cfg.BearerTokenFile == "" {
			h.Set("Authorization", "Bearer "+cfg.BearerToken) // so that no transport copies the headers to add it
		}
		return h
	}
	return applyHeader{with("application/json"), with(AcceptMetadata), cfg.ExecProvider != nil}
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
