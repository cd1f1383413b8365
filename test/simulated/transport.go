package simulated

import (
	"context"
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// Config returns the configuration of a client in this process, without a network.
func (c *Cluster) Config() *rest.Config {
	return &rest.Config{Host: "http://" + c.name, Transport: c.RoundTripper(), QPS: -1}
}

// RoundTripper answers requests in this process.
func (c *Cluster) RoundTripper() http.RoundTripper { return RoundTripper(c) }

// RoundTripper serves requests with a handler in this process.
func RoundTripper(h http.Handler) http.RoundTripper { return roundTripper{h} }

type roundTripper struct{ handler http.Handler }

// RoundTrip returns when the response begins. The body may go on until the context of the
// request ends.
func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	inner := r.Clone(ctx)
	if inner.Body == nil {
		inner.Body = http.NoBody
	}
	reader, writer := io.Pipe()
	a := &answer{header: http.Header{}, body: writer, begun: make(chan struct{})}
	go func() {
		t.handler.ServeHTTP(a, inner)
		a.begin(http.StatusOK)
		writer.Close()
	}()
	select {
	case <-a.begun:
	case <-ctx.Done():
		cancel()
		reader.CloseWithError(ctx.Err())
		return nil, ctx.Err()
	}
	context.AfterFunc(ctx, func() { reader.CloseWithError(context.Canceled) })
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, ContentLength: -1, Request: r, Body: &closing{reader, cancel},
	}, nil
}

// closing ends the request when the body of the response is closed.
type closing struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c *closing) Close() error {
	c.cancel()
	return c.ReadCloser.Close()
}

// An answer is an http.ResponseWriter that writes into a pipe.
type answer struct {
	header http.Header
	status int
	body   *io.PipeWriter
	once   sync.Once
	begun  chan struct{}
}

func (a *answer) begin(status int) {
	a.once.Do(func() {
		a.status = status
		close(a.begun)
	})
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader begins the response.
func (a *answer) WriteHeader(status int) { a.begin(status) }

// Write blocks until the client reads.
func (a *answer) Write(p []byte) (int, error) {
	a.begin(http.StatusOK)
	return a.body.Write(p)
}

// Flush starts the response. Written bytes are delivered without a buffer.
func (a *answer) Flush() { a.begin(http.StatusOK) }
