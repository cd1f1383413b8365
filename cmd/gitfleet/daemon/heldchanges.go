package daemon

import (
	"encoding/json"
	"net/http"

	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// serveProposals answers GET /proposals with what is held. objection is why this replica does
// not know, as only the leader does; nil if it does.
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
		json.NewEncoder(w).Encode(list) // a reader that went away is not our concern
	}))
}
