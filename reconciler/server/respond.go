package server

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A RefusedError says why an action is refused.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }

func (e *RefusedError) Unwrap() error { return e.Err }

// respond responds with a value as JSON.
func respond(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(answer) // the client may be gone
}

// codeOf returns the status code for an error. An error that is not the client's
// fault may be temporary.
func codeOf(err error) int {
	var unknown *status.UnknownError
	var ambiguous *status.AmbiguousError
	var refused *RefusedError
	switch {
	case errors.As(err, &unknown):
		return http.StatusNotFound
	case errors.As(err, &ambiguous), errors.As(err, &refused):
		return http.StatusBadRequest
	}
	return http.StatusServiceUnavailable
}
