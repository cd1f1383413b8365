package lean_test

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/member/lean"
)

// While nothing comes, nobody is deep in TLS: whoever waits is at the line.
func TestNobodyWaitsInTLS(t *testing.T) {
	more := make(chan bool)
	s := serve(t, lean.Config{}, http.HTTP2Config{}, func(w http.ResponseWriter, r *http.Request) {
		for range more {
			io.WriteString(w, "more")
			w.(http.Flusher).Flush()
		}
	})
	told := make(chan bool, 10)
	go func() { more <- true }()
	answer, err := s.Get(s.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.(*lean.Body).Follow(func([]byte, error) { told <- true })
	<-told
	for range 3 {
		for range 1000 {
			if waiting("lean.(*line).await") > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if line, deep := waiting("lean.(*line).await"), waiting("lean.(*conn).readNext"); line != 1 || deep != 0 {
			t.Errorf("%d wait at the line, %d in TLS", line, deep)
		}
		more <- true
		<-told
	}
	close(more)
	<-told
}

// waiting counts the goroutines that are in a function.
func waiting(in string) int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), in+"(")
}

// A trickle is a connection on which each byte comes by itself, with a pause after
// it now and then.
type trickle struct {
	net.Conn
	single io.Reader
	n      int
}

func (c *trickle) Read(p []byte) (int, error) {
	if c.n++; c.n%97 == 0 {
		time.Sleep(time.Microsecond)
	}
	return c.single.Read(p)
}

// However the bytes of a record come, what is in it is whole, and is there as soon
// as the record is.
func TestRecordsComeInPieces(t *testing.T) {
	s := serve(t, lean.Config{}, http.HTTP2Config{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for range 20 {
			w.Write(body)
			w.(http.Flusher).Flush()
		}
	})
	s.below = func(c net.Conn) net.Conn { return &trickle{Conn: c, single: iotest.OneByteReader(c)} }
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			body := strings.Repeat("body", 1+i*100)
			answer, err := s.Post(s.server.URL, "text/plain", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			got, err := io.ReadAll(answer.Body)
			if err != nil || string(got) != strings.Repeat(body, 20) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	all.Wait()
	if s.dials() != 1 {
		t.Errorf("%d connections", s.dials())
	}
}
