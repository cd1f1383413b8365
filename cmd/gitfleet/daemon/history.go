package daemon

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// openHistory opens the history, and makes the server serve it.
func openHistory(c settings.Config, srv *server.Server, metrics *history.Metrics, log *slog.Logger) *history.Record {
	r := history.Open(history.Config{
		Dir: filepath.Join(c.StateDir, "history"), MaxSize: int64(c.History.MaxSize), Log: log, Metrics: metrics,
	})
	srv.Mount("GET /history", server.History(r))
	return r
}

// runHistory runs a history. The returned function ends it and waits until all entries are
// written; it must be called after everything that adds entries has ended.
func runHistory(r *history.Record) (end func()) {
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
