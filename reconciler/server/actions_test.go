package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Actions are accepted from clients that send JSON and are authenticated or on this machine,
// and from no others. A page in a browser cannot pass for such a client.
func TestActionsNeedAuthenticationOrALocalClient(t *testing.T) {
	tests := map[string]struct {
		change func(*http.Request)
		code   int
		by     string
	}{
		"on this machine":       {func(*http.Request) {}, 200, ""},
		"by IPv6":               {func(r *http.Request) { r.RemoteAddr, r.Host = "[::1]:4000", "[::1]:8085" }, 200, ""},
		"by the name localhost": {func(r *http.Request) { r.Host = "localhost:8085" }, 200, ""},
		"by another spelling":   {func(r *http.Request) { r.Host = "LocalHost:8085" }, 200, ""},
		"with a charset":        {func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") }, 200, ""},
		"known, from elsewhere": {func(r *http.Request) {
			r.RemoteAddr, r.Host = "10.0.0.7:4000", "fleet.example"
			r.Header.Set("Name", "alice")
		}, 200, "alice"},
		"from elsewhere":            {func(r *http.Request) { r.RemoteAddr = "10.0.0.7:4000" }, 403, ""},
		"a name made to point here": {func(r *http.Request) { r.Host = "evil.example:8085" }, 403, ""},
		"through a proxy":           {func(r *http.Request) { r.Header.Set("X-Forwarded-For", "10.0.0.7") }, 403, ""},
		"a form":                    {func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, 415, ""},
		"a form that claims text":   {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415, ""},
		"known, but no JSON":        {func(r *http.Request) { r.Header.Set("Name", "alice"); r.Header.Del("Content-Type") }, 415, ""},
		"a GET":                     {func(r *http.Request) { r.Method = http.MethodGet }, 405, ""},
		"too large":                 {func(r *http.Request) { r.Body = http.NoBody; r.Body = bodyOf(strings.Repeat("x", maxActionBody+1)) }, 413, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := New(nil)
			called, by := false, ""
			s.MountAction("wave", func(_ context.Context, b string, body []byte) (any, error) {
				called, by = true, b
				return map[string]string{"said": string(body)}, nil
			})
			req := httptest.NewRequest(http.MethodPost, "/actions/wave", strings.NewReader(`"hello"`))
			req.RemoteAddr, req.Host = "127.0.0.1:4000", "127.0.0.1:8085"
			req.Header.Set("Content-Type", "application/json")
			test.change(req)
			if name := req.Header.Get("Name"); name != "" { // as a guard does
				req = req.WithContext(request.WithUser(req.Context(), &user.DefaultInfo{Name: name}))
			}
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, req)
			if w.Code != test.code || called != (test.code == 200) || by != test.by {
				t.Errorf("got %d %s, called %t by %q", w.Code, w.Body, called, by)
			}
			if called && w.Body.String() != `{"said":"\"hello\""}`+"\n" {
				t.Errorf("answer %s", w.Body)
			}
		})
	}
}

type body struct{ *strings.Reader }

func (body) Close() error { return nil }

func bodyOf(text string) body { return body{strings.NewReader(text)} }

// The response distinguishes mistakes of the user from errors of the daemon.
func TestActionErrorsHaveAStatusCode(t *testing.T) {
	tests := map[string]struct {
		err  error
		code int
	}{
		"unknown": {&status.UnknownError{What: "placement", Name: "crp/a"}, 404},
		"refused": {&RefusedError{errors.New("say why")}, 400},
		"trouble": {errors.New("the ledger could not be saved"), 503},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := New(nil)
			s.MountAction("wave", func(context.Context, string, []byte) (any, error) { return nil, test.err })
			req := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/actions/wave", strings.NewReader("{}"))
			req.RemoteAddr = "127.0.0.1:4000"
			req.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, req)
			if w.Code != test.code || !strings.Contains(w.Body.String(), test.err.Error()) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
}

// A deadlineWriter records the read deadline that the handler sets.
type deadlineWriter struct {
	*httptest.ResponseRecorder
	until time.Time
}

func (w *deadlineWriter) SetReadDeadline(t time.Time) error {
	w.until = t
	return nil
}

// Read never ends unless it has a deadline.
func (w *deadlineWriter) Read([]byte) (int, error) {
	if w.until.IsZero() {
		return 0, io.ErrNoProgress
	}
	return 0, os.ErrDeadlineExceeded
}

// A client that sends the body slowly does not keep a connection open forever.
func TestSlowActionBodiesTimeOut(t *testing.T) {
	s := New(nil)
	s.MountAction("wave", func(context.Context, string, []byte) (any, error) { return nil, nil })
	w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder()}
	req := httptest.NewRequest(http.MethodPost, "/actions/wave", w)
	req.RemoteAddr, req.Host = "127.0.0.1:4000", "127.0.0.1:8085"
	req.Header.Set("Content-Type", "application/json")
	s.Guarded().ServeHTTP(w, req)
	if w.Code != http.StatusRequestTimeout || w.Header().Get("Connection") != "close" || w.until.IsZero() {
		t.Errorf("got %d %s, with a deadline at %s", w.Code, w.Body, w.until)
	}
}
