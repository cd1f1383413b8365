package remote

import (
	"fmt"
	"net/http"
	"time"
)

// A FieldError names the invalid field of the configuration and the reason.
type FieldError struct {
	Field string
	Err   error
	// Permit is the field that allows the value if it is set to true; empty if there is none.
	Permit string
}

// Error returns field: reason.
func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *FieldError) Unwrap() error { return e.Err }

// FieldErrorf returns a FieldError with a reason.
func FieldErrorf(field, format string, args ...any) error {
	return &FieldError{Field: field, Err: fmt.Errorf(format, args...)}
}

// An HTTPError is an error response of an HTTP server.
type HTTPError struct {
	Status int
	// RetryAfter is the delay that the server requested; zero if none.
	RetryAfter time.Duration
	// Detail is the beginning of the response, on one line.
	Detail string
	// Push says that the request was one to write.
	Push bool
}

// Error returns the status and the usual fix.
func (e *HTTPError) Error() string {
	s := fmt.Sprintf("server answered %d %s", e.Status, http.StatusText(e.Status))
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	switch {
	case e.RetryAfter > 0:
		s += fmt.Sprintf(" (asks to wait %s)", e.RetryAfter)
	case e.Push && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden):
		s += " (the token must be allowed to write to the repository)"
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden, e.Status == http.StatusNotFound:
		s += " (check the URL, and that the credentials may read it)"
	}
	return s
}
