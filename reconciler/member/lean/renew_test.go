package lean_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/member/lean"
)

// A connection on which much came at once is replaced when all is quiet: who
// follows is told that the answer is complete, and asks again; once, and not
// because of what is little.
func TestConnectionsThatHaveGrownAreRenewed(t *testing.T) {
	large := strings.Repeat("x", 64<<10)
	more := make(chan bool)
	s := serve(t, lean.Config{Renew: 20 * time.Millisecond}, http.HTTP2Config{}, func(w http.ResponseWriter, r *http.Request) {
		text := "little"
		if r.URL.Path == "/large" {
			text = large
		}
		io.WriteString(w, text)
		w.(http.Flusher).Flush()
		if r.URL.Path == "/asked" {
			<-more
			return
		}
		<-r.Context().Done()
	})
	type told struct {
		n   int
		err error
	}
	follow := func(path string) chan told {
		answer, err := s.Get(s.server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		all := make(chan told, 1)
		n := 0
		answer.Body.(*lean.Body).Follow(func(piece []byte, err error) {
			if n += len(piece); err != nil {
				all <- told{n, err}
			}
		})
		return all
	}
	little := follow("/little")
	time.Sleep(100 * time.Millisecond)
	if len(little) > 0 || s.dials() != 1 {
		t.Errorf("renewed after little: %d connections", s.dials())
	}
	asked, err := s.Get(s.server.URL + "/asked")
	if err != nil {
		t.Fatal(err)
	}
	first := follow("/large")
	time.Sleep(100 * time.Millisecond)
	if len(first) > 0 || s.dials() != 1 {
		t.Errorf("renewed while something was under way: %d connections", s.dials())
	}
	close(more)
	if got, err := io.ReadAll(asked.Body); err != nil || string(got) != "little" {
		t.Errorf("answered %q, %v", got, err)
	}
	for what, all := range map[string]chan told{"little": little, "large": first} {
		if end := <-all; end.err != lean.ErrRenewed || what == "large" && end.n != len(large) {
			t.Errorf("%s: told %d bytes, %v", what, end.n, end.err)
		}
	}
	<-s.closed
	again := follow("/large")
	time.Sleep(200 * time.Millisecond)
	if len(again) > 0 || s.dials() != 2 {
		t.Errorf("renewed again: %d connections", s.dials())
	}
}
