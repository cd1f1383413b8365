package daemon

import (
	"bytes"
	"net/http"
	"slices"
	"sync"
)

// longestTail is how much of the log is kept in memory, in bytes.
const longestTail = 256 << 10

// A logTail keeps the newest lines of the log, for bug reports. Each Write is one line or several.
type logTail struct {
	mu    sync.Mutex
	lines []byte
}

// Write implements io.Writer. It never fails.
func (t *logTail) Write(lines []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, lines...)
	if len(t.lines) > 2*longestTail { // not after each line
		t.lines = slices.Clone(newestLines(t.lines))
	}
	return len(lines), nil
}

// newestLines returns the whole lines at the end that fit into longestTail.
func newestLines(lines []byte) []byte {
	if len(lines) <= longestTail {
		return lines
	}
	end := lines[len(lines)-longestTail-1:]
	return end[bytes.IndexByte(end, '\n')+1:]
}

// ServeHTTP responds with the lines.
func (t *logTail) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	t.mu.Lock()
	lines := slices.Clone(newestLines(t.lines))
	t.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write(lines) // the client may be gone
}
