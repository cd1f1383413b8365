package fleet

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// lines passes on what a process prints, remembers it, and notices the line that
// says that all clusters are ready.
type lines struct {
	out   io.Writer
	ready chan struct{} // closed when ready

	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
}

func newLines(out io.Writer) *lines { return &lines{out: out, ready: make(chan struct{})} }

// Write always takes all; that out cannot be written to must not stop clusters.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	_, _ = l.out.Write(p)
	if strings.Contains("\n"+l.text.String(), "\nready: ") {
		l.once.Do(func() { close(l.ready) })
	}
	return len(p), nil
}

// String is all that was printed.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
