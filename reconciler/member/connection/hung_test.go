package connection

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/test/apiserver"
)

// pipes is a listener that accepts the connections sent to it.
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

// A connection on which the server does not respond any more is replaced, so that requests soon
// succeed over another one.
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
		go server.ServeTLS(listener, "", "") // nolint:errcheck // ends with the listener
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
		c, err := newClients(cfg, nil)
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
		c.Close()
		close(listener)
		server.Close()
		synctest.Wait()
	})
}
