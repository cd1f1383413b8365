package fleet

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// lines forwards and keeps the output of a process, and detects the line that says that all
// clusters are ready.
type lines struct {
	out   io.Writer
	ready chan struct{} // closed when ready

	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
}

func newLines(out io.Writer) *lines { return &lines{out: out, ready: make(chan struct{})} }

// Write always accepts everything, since an error of out must not stop the clusters.
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

// String returns all output.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
