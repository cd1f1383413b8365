package overview

import (
	"time"

	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Serve serves the overview of the newest report. polled returns the times of the last poll of
// the repository and of the last successful one, since a poll without a new commit causes no
// report; if it is nil, the times in the report are used. forgeTroubles lists what cannot be
// done on the forge; it may be nil.
func Serve(srv *server.Server, polled func() (last, success time.Time), forgeTroubles func() []string) {
	srv.Tell("GET "+Path, func(r *status.Report) any {
		o := New(r)
		if polled != nil {
			o.Source.LastPoll, o.Source.LastSuccess = polled()
		}
		if forgeTroubles != nil {
			o.Forge = forgeTroubles()
		}
		return o
	})
}
