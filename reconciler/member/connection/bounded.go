package connection

import (
	"fmt"
	"io"
	"net/http"
)

const (
	// LargestObject bounds an object, be it an answer or an event of a watch: API servers
	// store at most a few MiB.
	LargestObject = 16 << 20
	// largestPage bounds one page of a list.
	largestPage = 64 << 20
)

// A tooLargeError is the error of an answer that is larger than any an API server should
// give. The rest of it is not read.
type tooLargeError struct{ limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the API server answered with more than %d MiB", e.limit>>20)
}

// bounded is a transport that bounds what is read of an answer: one that does not end must
// not fill the memory that all clusters share. Watches end only with time; their events are
// bounded one by one.
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

// A boundedBody fails once more than limit bytes were read.
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
