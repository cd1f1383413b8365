package daemon

import (
	"context"
	"log/slog"
)

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
