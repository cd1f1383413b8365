package simulated

import (
	"encoding/json"
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// Reviewing serves SelfSubjectAccessReviews, and passes other requests to next.
func Reviewing(next http.Handler, allowed func(verb, resource string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
			next.ServeHTTP(w, r)
			return
		}
		var review authorizationv1.SelfSubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Status.Allowed = allowed(review.Spec.ResourceAttributes.Verb, review.Spec.ResourceAttributes.Resource)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(review) // the client notices
	})
}
