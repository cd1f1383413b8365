package main

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// HistoryConfig bounds the record of what happened.
type HistoryConfig struct {
	MaxSize size `json:"maxSize,omitempty"`
}

func (h *HistoryConfig) settings() []setting {
	return []setting{
		{"history.maxSize", &h.MaxSize, "what the record of what happened may take in the state directory; the oldest goes first"},
	}
}

// leastHistory keeps a record from being cut after every few lines.
const leastHistory = 64 << 10

// record opens the record of what happened, and has the server answer from it.
func (c Config) record(srv *server.Server, metrics *history.Metrics, log *slog.Logger) *history.Record {
	r := history.Open(history.Config{
		Dir: filepath.Join(c.StateDir, "history"), MaxSize: int64(c.History.MaxSize), Log: log, Metrics: metrics,
	})
	srv.Mount("GET /history", server.History(r))
	return r
}

// recording runs a record. What is returned ends it, after everybody who has
// something to tell, and waits until all is written.
func recording(r *history.Record) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}
