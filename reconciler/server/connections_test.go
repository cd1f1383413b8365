package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// askOn sends a request on a connection, and returns the status of the response, or zero if the connection is closed.
func askOn(conn net.Conn, path string) int {
	go fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// isOpen reports whether a connection is open on which nothing arrives.
func isOpen(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	defer conn.SetReadDeadline(time.Time{})
	_, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	return err != nil && errors.As(err, &timeout) && timeout.Timeout()
}

// A new connection replaces the one that has waited longest for a request, be it the first or another one.
func TestConnectionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 16
		s := New(nil)
		s.LimitConnections(most)
		open := serveOn(t, s)
		var all []net.Conn
		for range most {
			all = append(all, open())
			time.Sleep(time.Second / 10)
		}
		if got := askOn(all[0], "/healthz"); got != http.StatusOK { // so that the second has waited longest
			t.Fatalf("got %d", got)
		}
		all = append(all, open())
		synctest.Wait()
		for i, conn := range all {
			if got := isOpen(conn); got != (i != 1) {
				t.Errorf("connection %d is open: %t", i, got)
			}
		}
		if got := askOn(all[most], "/healthz"); got != http.StatusOK {
			t.Errorf("the new one got %d", got)
		}
		for _, conn := range all {
			conn.Close()
		}
		synctest.Wait()
	})
}

// While requests of as many connections as possible are being answered, others are refused, and checks of a kubelet, on new
// connections, are answered, also if further clients have connected and say nothing.
func TestAKubeletIsAnsweredAmongManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 64
		s := New(nil)
		s.LimitConnections(most)
		answer := make(chan struct{})
		s.Mount("GET /wait", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-answer }))
		open := serveOn(t, s)
		var served sync.WaitGroup
		for range most - most/8 {
			conn := open()
			served.Go(func() {
				defer conn.Close()
				if got := askOn(conn, "/wait"); got != http.StatusOK {
					t.Errorf("one of the first got %d", got)
				}
			})
		}
		synctest.Wait()
		for range 3 * most {
			conn := open()
			defer conn.Close()
			time.Sleep(time.Millisecond)
		}
		refused := open()
		if got := askOn(refused, "/wait"); got != http.StatusServiceUnavailable {
			t.Errorf("one more got %d", got)
		}
		refused.Close()
		for range 10 {
			conn := open()
			if got := askOn(conn, "/healthz"); got != http.StatusOK {
				t.Errorf("a kubelet got %d", got)
			}
			conn.Close()
		}
		close(answer)
		served.Wait()
		conn := open()
		defer conn.Close()
		if got := askOn(conn, "/wait"); got != http.StatusOK {
			t.Errorf("afterwards one got %d", got)
		}
	})
}
