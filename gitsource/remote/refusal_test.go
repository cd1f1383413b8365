package remote

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/mask"
)

// An error response of a Git server or of a proxy is quoted without the credentials of the
// request. Of a web page, only the title is quoted.
func TestRefusalsDoNotTellCredentials(t *testing.T) {
	const token = "canary-token-0123456789"
	req, err := http.NewRequest(http.MethodGet, "https://git.example/repo.git/info/refs", nil)
	if err != nil {
		t.Fatal(err)
	}
	headerAuth{basic("git", Secret{token})}.SetAuth(req)
	for name, test := range map[string]struct{ kind, body, want string }{
		"text":       {"text/plain", "no: " + req.Header.Get("Authorization"), "no: ***"},
		"user":       {"text/plain; charset=utf-8", "no: git:" + token, "no: ***"},
		"JSON":       {"application/json", `{"message":"no ` + token + `"}`, `{"message":"no ***"}`},
		"a page":     {"text/html", "<html><title>Sign in</title><body>" + token, "a web page: Sign in"},
		"undeclared": {"", "<!doctype html><title>" + token + "</title>", "a web page: ***"},
	} {
		res := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {test.kind}}, Body: io.NopCloser(strings.NewReader(test.body)), Request: req}
		var refused *HTTPError
		if err := refusal(res, time.Now()); !errors.As(err, &refused) || refused.Detail != test.want {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
	m := newMeter(Limits{})
	m.credentials = mask.New(mask.OfHeader(req.Header.Get("Authorization"))...)
	if err := m.explain(errors.New("unexpected pkt-line: ERR token " + token)); strings.Contains(err.Error(), token) {
		t.Errorf("an error of the protocol tells the credential: %v", err)
	}
}

// The delay that a server can ask for is limited.
func TestRetryAfterIsBounded(t *testing.T) {
	r := httptest.NewRecorder()
	r.Header().Set("Retry-After", "99999999")
	r.WriteHeader(http.StatusTooManyRequests)
	res := r.Result()
	res.Request = httptest.NewRequest(http.MethodGet, "/", nil)
	refused, ok := errors.AsType[*HTTPError](refusal(res, time.Now()))
	if !ok || refused.RetryAfter != time.Hour {
		t.Errorf("left alone for %v", refused)
	}
}

// A server can neither fill an error with text nor redirect without end.
func TestServersAreNotQuotedAtLength(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/turning") {
			http.Redirect(w, r, "/turning"+r.URL.Path+"?service=git-upload-pack", http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		io.WriteString(w, "fff0ERR "+strings.Repeat("no!\r\n", 1<<14)[:65512]) //nolint:errcheck // the test would see it
	}))
	defer server.Close()
	for path, want := range map[string]string{"/repo.git": "no! no!", "/turning/repo.git": "too many redirects"} {
		where, err := ParseLocation(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := New(Config{Limits: Limits{ListBytes: 1 << 20, FetchBytes: 1 << 20}}, where)
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.List(t.Context()); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 2*maxText {
			t.Errorf("%s: %d bytes, want %q: %.300v", path, len(err.Error()), want, err)
		}
	}
}
