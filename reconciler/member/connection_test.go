package member

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/test/apiserver"
)

// pipes is a listener whose connections are handed to it.
type pipes chan net.Conn

// Accept implements net.Listener.
func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, errors.New("closed")
}

// Close implements net.Listener.
func (p pipes) Close() error { return nil }

// Addr implements net.Listener.
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A connection over which a server has stopped to answer is replaced: requests succeed
// again soon, over another.
func TestHungConnectionIsReplaced(t *testing.T) {
	certified, _ := listening(t, true)
	cfg := apiserver.Config(certified)
	certificates := certified.TLS.Certificates
	synctest.Test(t, func(t *testing.T) {
		listener := make(pipes, 1)
		server := &http.Server{
			TLSConfig: &tls.Config{Certificates: certificates},
			Handler:   http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("{}")) }),
		}
		go server.ServeTLS(listener, "", "") //nolint:errcheck // it ends with the listener
		dials := 0
		cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			if dials++; dials > 1 {
				listener <- there
				return here, nil
			}
			go func() {
				hung := tls.Server(there, &tls.Config{Certificates: certificates, NextProtos: []string{"h2"}})
				io.Copy(io.Discard, hung) //nolint:errcheck // until the connection is closed
				hung.Close()
			}()
			return here, nil
		}
		c, err := newConn(cfg)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for err = c.ready(t.Context()); err != nil && time.Since(start) < 5*time.Minute; err = c.ready(t.Context()) {
			time.Sleep(5 * time.Second)
		}
		if lost := time.Since(start); err != nil || lost > pingAfter+pingTimeout+readyWithin+5*time.Second {
			t.Errorf("after %s over %d connections: %v", lost, dials, err)
		}
		c.close()
		close(listener)
		server.Close()
		synctest.Wait()
	})
}

// A watch whose server goes away resumes over another connection where it was: nothing
// is listed again.
func TestWatchResumesAfterGoAway(t *testing.T) {
	asked := make(chan string, 10)
	from := make(chan string, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		version := r.URL.Query().Get("resourceVersion")
		switch {
		case r.URL.Query().Get("watch") == "":
			asked <- "list"
			io.WriteString(w, emptyList) //nolint:errcheck // the test would see it
		case version == "5":
			asked <- "watch 5"
			from <- r.RemoteAddr
			w.Header().Set("Connection", "close") // the server says GOAWAY
			io.WriteString(w, `{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x","namespace":"app","resourceVersion":"7"}}}`+"\n")
		default:
			asked <- "watch " + version
			from <- r.RemoteAddr
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	s := sessionOf(t, apiserver.Config(server))
	s.changes, s.firsts = newChanges(), make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer s.running.Wait()
	defer cancel()
	s.startWatch(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, configMaps, false)
	s.watch.begin()
	if got := []string{<-asked, <-asked, <-asked}; !slices.Equal(got, []string{"list", "watch 5", "watch 7"}) {
		t.Errorf("asked %q", got)
	}
	if before, after := <-from, <-from; before == after {
		t.Error("it resumed over the connection that the server has ended")
	}
}

const emptyList = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[]}`

// A kind is listed at once, and watched only once changes may be reported. A watch that
// is stopped before then ends.
func TestWatchWaitsUntilChangesMayBeReported(t *testing.T) {
	for name, begins := range map[string]bool{"begun": true, "stopped": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var asked []string
				s := sessionOf(t, &rest.Config{Host: "https://server.example", Transport: apiserver.RoundTrip(func(r *http.Request) (*http.Response, error) {
					body, end := io.Pipe()
					context.AfterFunc(r.Context(), func() { end.CloseWithError(r.Context().Err()) })
					if r.URL.Query().Get("watch") != "" {
						asked = append(asked, "watch")
					} else {
						asked = append(asked, "list")
						go func() {
							io.WriteString(end, emptyList) //nolint:errcheck // the test would see it
							end.Close()
						}()
					}
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r}, nil
				})})
				s.changes, s.firsts = newChanges(), make(chan struct{}, 1)
				k := s.startWatch(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, configMaps, false)
				synctest.Wait()
				if !slices.Equal(asked, []string{"list"}) || !k.sees() {
					t.Errorf("asked %q before changes may be reported", asked)
				}
				want := []string{"list"}
				if begins {
					want = append(want, "watch")
					k.begin()
				} else {
					k.stop()
				}
				synctest.Wait()
				if !slices.Equal(asked, want) {
					t.Errorf("asked %q, want %q", asked, want)
				}
				k.stop()
				s.running.Wait()
			})
		})
	}
}
