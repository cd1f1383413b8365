package server

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"os"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/gitfleet/gitfleet/reconciler/server/access"
)

// An Action handles a POST request of a user. by is the authenticated user; empty for a local
// request without authentication. body is the JSON in the request. The result is sent as JSON;
// a *status.UnknownError or *RefusedError is reported as a client error.
type Action func(ctx context.Context, by string, body []byte) (any, error)

// An ActionResult is the response to an action that was executed.
type ActionResult struct {
	// Message says what was done. Its name in JSON, and that of PollError, are older than those in
	// Go; older commands read them.
	Message string `json:"said"`
	// Commit is the newest commit of the repository after a poll. PollError is the error if the
	// poll failed.
	Commit    string `json:"commit,omitempty"`
	PollError string `json:"trouble,omitempty"`
}

// maxActionBody is the largest accepted request body in bytes.
const maxActionBody = 64 << 10

// MountAction handles POST /actions/NAME. The guard has put the user into the request's context;
// requests without a user are accepted from this machine only. It must not be called after the
// server has started.
func (s *Server) MountAction(name string, do Action) {
	s.Mount("POST /actions/"+name, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		by := ""
		if who, known := request.UserFrom(req.Context()); known {
			by = who.GetName()
		}
		if code, why := objection(req, by); why != "" {
			http.Error(w, why, code)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxActionBody))
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
		respond(w, answer)
	}))
}

// objection returns why a request is refused; empty if it is accepted. It requires JSON, which
// web pages cannot send without a preflight request.
func objection(req *http.Request, by string) (code int, why string) {
	if kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType, "Content-Type: must be application/json"
	}
	return LocalOnly(req, by)
}

// LocalOnly returns why a request that changes something is refused: because it has no authenticated user and does not
// certainly come from the daemon's own machine; empty if it is accepted. by is the user.
func LocalOnly(req *http.Request, by string) (code int, why string) {
	switch {
	case by != "":
		return 0, ""
	case !loopback(req.RemoteAddr):
		return http.StatusForbidden, "not authenticated: actions without authentication are accepted from the daemon's own machine only"
	case !access.IsLocalHost(req.Host):
		// A web page whose host name resolves to a loopback address is a local client as well.
		return http.StatusForbidden, "actions without authentication are accepted only if the Host header is localhost or a loopback address"
	case req.Header.Get("X-Forwarded-For") != "" || req.Header.Get("Forwarded") != "":
		return http.StatusForbidden, "forwarded by a proxy without authentication"
	}
	return 0, ""
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}
