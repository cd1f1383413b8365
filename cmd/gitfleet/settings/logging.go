package settings

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/gitfleet/gitfleet/reconciler/tracing"
)

// level returns the minimum level that is logged.
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

// Logger returns a logger with the configured level and format. If commits are traced, lines
// about a commit have the ID of its trace.
func (c Config) Logger(w io.Writer) *slog.Logger {
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
