package daemon

import (
	"context"
	"log/slog"

	"k8s.io/klog/v2"
)

// routeKlog sends the logs of the Kubernetes libraries to gitfleet's log at the level debug,
// since they are useful only for developers.
func routeKlog(log *slog.Logger) { klog.SetSlogLogger(slog.New(quieter{log.Handler()})) }

type quieter struct{ slog.Handler }

func quietly(level slog.Level) slog.Level {
	if level == slog.LevelInfo {
		return slog.LevelDebug
	}
	return level
}

// Enabled implements slog.Handler.
func (q quieter) Enabled(ctx context.Context, level slog.Level) bool {
	return q.Handler.Enabled(ctx, quietly(level))
}

// Handle implements slog.Handler.
func (q quieter) Handle(ctx context.Context, r slog.Record) error {
	r.Level = quietly(r.Level)
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q quieter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quieter{q.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (q quieter) WithGroup(name string) slog.Handler { return quieter{q.Handler.WithGroup(name)} }
