package server

import (
	"context"
	"encoding/json"
	"net/http"
)

// Containment says whether the history of one commit has another.
type Containment struct {
	Contains bool `json:"contains"`
}

// Contains handles GET /contains?head=HASH&commit=HASH. It responds with JSON that says whether
// the history of head has the commit, whose hash may be abbreviated. It must not be called
// after the server has started.
func (s *Server) Contains(contains func(ctx context.Context, head, commit string) (bool, error)) {
	s.Mount("GET /contains", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		q := req.URL.Query()
		for _, name := range []string{"head", "commit"} {
			if q.Get(name) == "" {
				http.Error(w, name+": missing", http.StatusBadRequest)
				return
			}
		}
		if len(q.Get("commit")) < 7 {
			http.Error(w, "commit: 7 digits are needed at least", http.StatusBadRequest)
			return
		}
		yes, err := contains(req.Context(), q.Get("head"), q.Get("commit"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(Containment{yes}) // the client may be gone
	}))
}
