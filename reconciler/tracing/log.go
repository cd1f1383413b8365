package tracing

import (
	"context"
	"log/slog"
	"slices"
)

// LogHandler returns a handler that adds trace_id to each record with the attribute commit.
func LogHandler(h slog.Handler) slog.Handler { return logHandler{h} }

type logHandler struct{ slog.Handler }

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	id := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "commit" && a.Value.Kind() == slog.KindString {
			id = TraceID(a.Value.String())
		}
		return id == ""
	})
	if id != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", id))
	}
	return h.Handler.Handle(ctx, r)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if id := TraceID(a.Value.String()); a.Key == "commit" && id != "" {
			attrs = slices.Concat(attrs, []slog.Attr{slog.String("trace_id", id)})
			break
		}
	}
	return logHandler{h.Handler.WithAttrs(attrs)}
}

func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.Handler.WithGroup(name)}
}
