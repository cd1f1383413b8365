package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
)

// logLibraries makes libraries log to the log of the daemon, in its format.
func logLibraries(log *slog.Logger) {
	klog.SetLoggerWithOptions(logr.FromSlogHandler(klogHandler{log.Handler(), &repeated{seen: map[string]time.Time{}}}), klog.ContextualLogger(true))
	stdlog.SetFlags(0)
	stdlog.SetOutput(&rateLimitedWriter{next: output.LibraryLog(slog.NewLogLogger(log.Handler(), slog.LevelWarn).Writer()), now: time.Now})
}

// A rateLimitedWriter writes the first lines of package log of each minute, and how many it has dropped: whoever reaches the server
// can cause any number, by TLS handshakes that fail and by HTTP/2 frames that are not valid. Panics, and errors of a server that
// cannot accept connections, are always written.
type rateLimitedWriter struct {
	next io.Writer
	now  func() time.Time

	mu              sync.Mutex
	since           time.Time // the beginning of the minute
	logged, dropped int
}

const maxLinesPerMinute = 10

// neverDropped are how lines begin that are always written. Servers wait before they accept again, so that these are few.
var neverDropped = [][]byte{[]byte("http: panic "), []byte("http2: panic "), []byte("http: Accept error: ")}

// Write implements io.Writer for one line.
func (w *rateLimitedWriter) Write(line []byte) (int, error) {
	if slices.ContainsFunc(neverDropped, func(prefix []byte) bool { return bytes.HasPrefix(line, prefix) }) {
		return w.next.Write(line)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.now(); now.Sub(w.since) >= time.Minute {
		if w.dropped > 0 {
			fmt.Fprintf(w.next, "dropped %s of HTTP servers and clients since %s\n", output.Count(w.dropped, "more line"), w.since.UTC().Format(time.RFC3339))
		}
		w.since, w.logged, w.dropped = now, 0, 0
	}
	if w.logged >= maxLinesPerMinute {
		w.dropped++
		return len(line), nil
	}
	w.logged++
	return w.next.Write(line)
}

// A klogHandler handles the logs of the Kubernetes libraries, which are useful only for developers:
// it logs them at the level debug, except for errors. Of their verbosity, it drops what is less
// important than V(4).
//
// An error that is repeated, such as each failed attempt to renew a lease, is an error once per outage.
type klogHandler struct {
	slog.Handler
	repeated *repeated
}

// outageEnds is how long an error must not have occurred for the next one to be another outage, and maxErrors
// how many errors are told apart.
const (
	outageEnds = 5 * time.Minute
	maxErrors  = 1000
)

// repeated has the times at which errors last occurred.
type repeated struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

// variable is what differs between two errors of one outage: times, durations, the ports from which requests are sent, and
// numbers that stand alone. Digits in names and addresses tell members apart.
var variable = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+|:[0-9]+->|\b(?:[0-9.]+(?:h|m|s|ms|µs|ns))+\b|(?:^|[\s=("'])[0-9]+(?:[\s,;)"']|$)`)

// again records an error, and reports whether it belongs to an outage that was logged.
func (p *repeated) again(r slog.Record) bool {
	key := r.Message
	r.Attrs(func(a slog.Attr) bool {
		key += " " + a.String()
		return true
	})
	key = variable.ReplaceAllString(key, "0")
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) >= maxErrors {
		clear(p.seen)
	}
	last, known := p.seen[key]
	p.seen[key] = r.Time
	return known && r.Time.Sub(last) < outageEnds
}

func klogLevel(level slog.Level) slog.Level {
	if level < slog.LevelError {
		return min(level, slog.LevelDebug)
	}
	return level
}

// Enabled implements slog.Handler.
func (h klogHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, klogLevel(level))
}

// Handle implements slog.Handler.
func (h klogHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level = klogLevel(r.Level); r.Level >= slog.LevelError && h.repeated.again(r) {
		if r.Level = slog.LevelDebug; !h.Handler.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h klogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return klogHandler{h.Handler.WithAttrs(attrs), h.repeated}
}

// WithGroup implements slog.Handler.
func (h klogHandler) WithGroup(name string) slog.Handler {
	return klogHandler{h.Handler.WithGroup(name), h.repeated}
}
