package daemon

import (
	"context"
	"log/slog"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/version"
	"github.com/gitfleet/gitfleet/reconciler/tracing"
)

// newTracer returns a tracer for the configured collector; nil if there is none.
func newTracer(ctx context.Context, c settings.Config, log *slog.Logger) (*tracing.Tracer, error) {
	if c.Tracing.Endpoint == "" {
		return nil, nil
	}
	return tracing.New(ctx, c.Tracing.Endpoint, c.FleetName, version.String(), log)
}
