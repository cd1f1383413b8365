package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/gitfleet/gitfleet/reconciler/status"
)

// An Action does what a person asks for with a POST. by is the name under which
// the person is known to be who they are; empty for somebody on the daemon's own
// machine, of whom nothing is known. body is the JSON that was sent. What it
// returns is answered as JSON; of the errors a *status.UnknownError and a
// *RefusedError are the person's own.
type Action func(ctx context.Context, by string, body []byte) (any, error)

// A RefusedError says that what was asked for cannot be done, and why.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// largestOrder bounds what is read of a request.
const largestOrder = 64 << 10

// orderTime bounds how long the body of a request may take to arrive.
const orderTime = 10 * time.Second

// Act answers POST /actions/NAME. Whoever guards the server has put the user
// into a request's context, if it knows who that is; those of whom nothing is
// known are obeyed on the daemon's own machine only. It must not be called once
// the server answers.
func (s *Server) Act(name string, do Action) {
	s.Mount("POST /actions/"+name, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		by := ""
		if who, known := request.UserFrom(req.Context()); known {
			by = who.GetName()
		}
		if code, why := objection(req, by); why != "" {
			http.Error(w, why, code)
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(orderTime)) // not every writer can
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, largestOrder))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			w.Header().Set("Connection", "close")
			http.Error(w, "the body took too long to arrive", http.StatusRequestTimeout)
			return
		}
		if err != nil {
			http.Error(w, "the body cannot be read, or is too large", http.StatusRequestEntityTooLarge)
			return
		}
		answer, err := do(req.Context(), by, body)
		if err != nil {
			http.Error(w, err.Error(), codeOf(err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer) // a reader that went away is not our concern
	}))
}

func codeOf(err error) int {
	var unknown *status.UnknownError
	var refused *RefusedError
	switch {
	case errors.As(err, &unknown):
		return http.StatusNotFound
	case errors.As(err, &refused):
		return http.StatusBadRequest
	}
	return http.StatusServiceUnavailable
}

// objection says why a request is not obeyed; empty if it is. That it has to be
// JSON keeps out the forms of any page in a browser: they cannot send it without
// asking first.
func objection(req *http.Request, by string) (code int, why string) {
	kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	switch {
	case err != nil || kind != "application/json":
		return http.StatusUnsupportedMediaType, "Content-Type: must be application/json"
	case by != "":
		return 0, ""
	case !loopback(req.RemoteAddr):
		return http.StatusForbidden, "nothing is known of you: actions without a name are answered on the daemon's own machine only"
	case !ownName(req.Host):
		// A page whose name was made to point here comes from this machine too.
		return http.StatusForbidden, "actions without a name are answered under the name localhost, or a loopback address, only"
	case req.Header.Get("X-Forwarded-For") != "" || req.Header.Get("Forwarded") != "":
		return http.StatusForbidden, "a proxy has forwarded this for somebody of whom nothing is known"
	}
	return 0, ""
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

// ownName reports whether a request was sent to this machine by its own name.
func ownName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
