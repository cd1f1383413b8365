package daemon

import (
	"context"
	stdlog "log"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
)

// logLibraries makes libraries log to the log of the daemon, in its format.
func logLibraries(log *slog.Logger) {
	klog.SetLoggerWithOptions(logr.FromSlogHandler(klogHandler{log.Handler()}), klog.ContextualLogger(true))
	stdlog.SetFlags(0)
	stdlog.SetOutput(output.LibraryLog(slog.NewLogLogger(log.Handler(), slog.LevelWarn).Writer()))
}

// A klogHandler handles the logs of the Kubernetes libraries, which are useful only for developers:
// it logs them at the level debug, except for errors. Of their verbosity, it drops what is less
// important than V(4).
type klogHandler struct{ slog.Handler }

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
	r.Level = klogLevel(r.Level)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h klogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return klogHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h klogHandler) WithGroup(name string) slog.Handler {
	return klogHandler{h.Handler.WithGroup(name)}
}
