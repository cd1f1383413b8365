package daemon

import (
	"encoding/json"
	"net/http"

	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// serveProposals handles GET /proposals with the held changes. objection returns the reason why
// this replica does not know them, since only the leader does; nil if it does.
func serveProposals(srv *server.Server, objection func() error, held func() *proposal.HeldList) {
	srv.Mount("GET /proposals", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := objection(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		list := held()
		if list == nil {
			http.Error(w, "it is not known yet what is held: the daemon is starting", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(list) // the client may be gone
	}))
}
