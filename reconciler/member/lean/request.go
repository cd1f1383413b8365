package lean

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
)

// A request is what is sent: it can be sent again.
type request struct {
	fields   []hpack.HeaderField
	body     []byte
	bodiless bool // the answer has none
}

// hopByHop are headers that HTTP/2 has not.
var hopByHop = map[string]bool{
	"connection": true, "host": true, "keep-alive": true, "proxy-connection": true, "transfer-encoding": true, "upgrade": true, "content-length": true,
}

// Takes reports whether the size of a request's body is known, and not too large.
func Takes(r *http.Request) bool {
	if r.Body == nil || r.Body == http.NoBody {
		return true
	}
	return r.ContentLength > 0 && r.ContentLength <= MaxBody // zero is not known
}

// newRequest reads a request, and closes its body.
func newRequest(r *http.Request) (request, error) {
	method := cmp.Or(r.Method, http.MethodGet)
	q := request{bodiless: method == http.MethodHead}
	if r.Body != nil && r.Body != http.NoBody {
		defer r.Body.Close()
		if !Takes(r) {
			return q, errBody
		}
		q.body = make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, q.body); err != nil {
			return q, fmt.Errorf("read the body of the request: %w", err)
		}
	}
	authority := r.Host
	if authority == "" {
		authority = r.URL.Host
	}
	path := r.URL.RequestURI()
	if !httpguts.ValidHostHeader(authority) || !strings.HasPrefix(path, "/") {
		return q, fmt.Errorf("http2: %q or %q cannot be asked for", authority, path)
	}
	q.fields = append(q.fields,
		hpack.HeaderField{Name: ":authority", Value: authority}, hpack.HeaderField{Name: ":method", Value: method},
		hpack.HeaderField{Name: ":path", Value: path}, hpack.HeaderField{Name: ":scheme", Value: "https"})
	for name, values := range r.Header {
		name = strings.ToLower(name)
		if hopByHop[name] {
			continue
		}
		if !httpguts.ValidHeaderFieldName(name) {
			return q, fmt.Errorf("http2: %q is no name of a header", name)
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return q, fmt.Errorf("http2: the value of header %q is not valid", name) // it may be secret
			}
			q.fields = append(q.fields, hpack.HeaderField{Name: name, Value: v, Sensitive: name == "authorization"})
		}
	}
	if len(q.body) > 0 || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		q.fields = append(q.fields, hpack.HeaderField{Name: "content-length", Value: strconv.Itoa(len(q.body))})
	}
	return q, nil
}
