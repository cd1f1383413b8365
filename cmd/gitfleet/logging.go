package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/gitfleet/gitfleet/reconciler/tracing"
)

func (c Config) level() (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return l, fmt.Errorf("%q is none of debug, info, warn, error", c.LogLevel)
	}
	return l, nil
}

// The formats of the log.
const (
	logText = "text"
	logJSON = "json"
)

// logger returns a logger with the configured level and format. If commits are traced, lines
// about a commit have the ID of its trace.
func (c Config) logger(w io.Writer) *slog.Logger {
	level, _ := c.level()
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if c.LogFormat == logJSON {
		handler = slog.NewJSONHandler(w, options)
	}
	if c.Tracing.Endpoint != "" {
		handler = tracing.LogHandler(handler)
	}
	return slog.New(handler)
}

// traces returns a tracer for the configured collector; nil if there is none.
func (c Config) traces(ctx context.Context, log *slog.Logger) (*tracing.Tracer, error) {
	if c.Tracing.Endpoint == "" {
		return nil, nil
	}
	return tracing.New(ctx, c.Tracing.Endpoint, c.FleetName, version(), log)
}
