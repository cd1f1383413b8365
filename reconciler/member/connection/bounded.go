package connection

import (
	"fmt"
	"io"
	"net/http"
)

const (
	// LargestObject is the maximum size of an object in a response or watch event. API servers
	// store at most a few MiB.
	LargestObject = 16 << 20
	// largestPage is the maximum size of one page of a list.
	largestPage = 64 << 20
)

// A tooLargeError is the error of a response that exceeds the limit. The rest of it is not
// read.
type tooLargeError struct{ limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the API server answered with more than %d MiB", e.limit>>20)
}

// bounded is a transport that limits the size of responses: a response that never ends must not
// fill the memory that all clusters share. Watches are not limited, but each of their events
// is.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(req)
	query := req.URL.Query()
	if err != nil || query.Get("watch") == "true" {
		return res, err
	}
	limit := int64(LargestObject)
	if query.Has("limit") {
		limit = largestPage
	}
	res.Body = &boundedBody{res.Body, limit, limit}
	return res, nil
}

// A boundedBody fails once more than limit bytes are read.
type boundedBody struct {
	io.ReadCloser
	limit, left int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, &tooLargeError{b.limit}
	}
	return n, err
}
