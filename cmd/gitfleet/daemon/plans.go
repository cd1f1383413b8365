package daemon

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/plantext"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/review"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// serveProposals handles GET /proposals, which lists the held changes.
func serveProposals(srv *server.Server, held func() *proposal.HeldList) {
	srv.MountJSON("GET /proposals", func(*http.Request) (any, int, error) {
		list := held()
		if list == nil {
			return nil, http.StatusServiceUnavailable, errors.New("it is not known yet what is held: the daemon is starting")
		}
		return list, http.StatusOK, nil
	})
}

// servePlans handles GET /plan?pullRequest=NUMBER. preview is nil if pull requests are not planned.
func servePlans(srv *server.Server, preview func(ctx context.Context, number int64) (*review.Preview, error)) {
	srv.MountJSON("GET /plan", func(req *http.Request) (any, int, error) {
		number, err := strconv.ParseInt(req.URL.Query().Get("pullRequest"), 10, 64)
		switch {
		case err != nil || number <= 0:
			return nil, http.StatusBadRequest, errors.New("pullRequest: must be the number of a pull request")
		case preview == nil:
			return nil, http.StatusNotFound, errors.New("the daemon does not plan pull requests: set pullRequests.plans")
		}
		p, err := preview(req.Context(), number)
		if err != nil {
			return nil, http.StatusUnprocessableEntity, err
		}
		return plantext.Preview(p), http.StatusOK, nil
	})
}
