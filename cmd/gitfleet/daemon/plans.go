package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/plantext"
	"github.com/gitfleet/gitfleet/reconciler/review"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// servePlans handles GET /plan?pullRequest=NUMBER. preview is nil if pull requests are not
// planned. objection returns the reason why this replica does not plan them, since only the
// leader does; nil if it does.
func servePlans(srv *server.Server, objection func() error, preview func(ctx context.Context, number int64) (*review.Preview, error)) {
	srv.Mount("GET /plan", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		number, err := strconv.ParseInt(req.URL.Query().Get("pullRequest"), 10, 64)
		switch {
		case err != nil || number <= 0:
			http.Error(w, "pullRequest: must be the number of a pull request", http.StatusBadRequest)
			return
		case preview == nil:
			http.Error(w, "the daemon does not plan pull requests: set pullRequests.plans", http.StatusNotFound)
			return
		}
		if err := objection(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		p, err := preview(req.Context(), number)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		var text bytes.Buffer
		plantext.Preview(&text, p)
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(plantext.PullRequest{Text: text.String(), Changes: !p.None(), Failed: p.Failed()}) // the client may be gone
	}))
}
