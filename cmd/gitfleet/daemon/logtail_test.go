package daemon

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

// The tail of the log has its newest lines, each whole, and does not grow.
func TestLogTail(t *testing.T) {
	tail := &logTail{}
	said := func() string {
		w := httptest.NewRecorder()
		tail.ServeHTTP(w, nil)
		return w.Body.String()
	}
	fmt.Fprintln(tail, "the first line")
	if got := said(); got != "the first line\n" {
		t.Errorf("%q", got)
	}
	const lines = 100_000
	for n := range lines {
		fmt.Fprintf(tail, "line %d\n", n)
	}
	got := said()
	first, _, _ := strings.Cut(got, "\n")
	if !strings.HasSuffix(got, fmt.Sprintf("\nline %d\n", lines-1)) || !strings.HasPrefix(first, "line ") || len(got) > longestTail || len(got) < longestTail-20 || len(tail.lines) > 2*longestTail {
		t.Errorf("%d bytes that begin with %q", len(got), first)
	}
	fmt.Fprintln(tail, strings.Repeat("x", longestTail))
	if got := said(); len(got) > longestTail {
		t.Errorf("%d bytes after a long line", len(got))
	}
}
