package forge_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

func newClient(t *testing.T, kind forge.Type, url, repository, token string) forge.Client {
	t.Helper()
	c, err := forge.New(forge.Config{Type: kind, URL: url, Repository: repository, Token: func() (string, error) { return token, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Invalid responses of a forge are errors that contain no credentials.
func TestBadAnswers(t *testing.T) {
	const token = "0123456789abcdef-secret"
	tests := map[string]struct {
		answer http.HandlerFunc
		want   string
		wait   time.Duration
	}{
		"a web page": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Write([]byte("<html><title>Sign in</title>" + r.Header.Get("Authorization")))
		}, "a web page: Sign in", 0},
		"an echo": {func(w http.ResponseWriter, r *http.Request) { http.Error(w, r.Header.Get("Authorization"), 500) }, "500", 0},
		"a rate limit": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "90")
			w.WriteHeader(429)
		}, "429 (the rate limit is exceeded; the next attempt is in 1m30s)", 90 * time.Second},
		"out of order": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "90")
			w.WriteHeader(503)
		}, "503 (the next attempt is in 1m30s)", 90 * time.Second},
		"the limit of GitHub": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.Header().Set("X-RateLimit-Reset", fmt.Sprint(time.Now().Add(10*24*time.Hour).Unix()))
			w.WriteHeader(403)
		}, "403 (the rate limit is exceeded; the next attempt is in 24h0m0s)", 24 * time.Hour},
		"a limit that is not used up": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-RateLimit-Remaining", "7")
			w.Header().Set("X-RateLimit-Reset", fmt.Sprint(time.Now().Add(time.Hour).Unix()))
			w.WriteHeader(403)
		}, "403 (the token may not do this", 0},
		"the secondary limit of GitHub": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-RateLimit-Remaining", "7")
			w.WriteHeader(403)
			w.Write([]byte(`{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`))
		}, "a secondary rate limit", time.Minute},
		"the limit of GitLab": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("RateLimit-Remaining", "0")
			w.Header().Set("RateLimit-Reset", fmt.Sprint(time.Now().Add(10*24*time.Hour).Unix()))
			w.WriteHeader(429)
		}, "429", 24 * time.Hour},
		"moved": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example.com", http.StatusMovedPermanently)
		}, "has moved", 0},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte(strings.Repeat(" ", 1<<16))); err != nil {
					return
				}
			}
		}, "larger than", 0},
		"dense": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"number":1,"iid":1,"labels":[{}`+strings.Repeat(",{}", 200_000)+"]}") //nolint:errcheck // the test would see it
		}, "JSON values", 0},
	}
	for name, test := range tests {
		for _, kind := range forge.Types {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				requests := 0
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					requests++
					test.answer(w, r)
				}))
				defer server.Close()
				_, err := newClient(t, kind, server.URL, "a/b", token).PullRequest(t.Context(), 1)
				if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), token) {
					t.Errorf("error %v, want one with %q", err, test.want)
				}
				if answer, ok := errors.AsType[*forge.StatusError](err); ok && answer.RetryAfter != test.wait || !ok && test.wait > 0 {
					t.Errorf("%+v, want to wait %s", answer, test.wait)
				}
				if requests != 1 {
					t.Errorf("%d requests", requests)
				}
			})
		}
	}
}

// Of the JSON of an answer people read the reason, without credentials and the address.
func TestTheReasonOfAnAnswer(t *testing.T) {
	const token = "0123456789abcdef-secret"
	for body, want := range map[string]string{
		`{"message":"token does not have the scope [read:issue]","url":"https://git.example.com/api/swagger"}`:                                            "token does not have the scope [read:issue]",
		`{"message":"Validation Failed","errors":[{"code":"custom","message":"the branch is protected"}],"documentation_url":"https://docs.example.com"}`: "Validation Failed; the branch is protected",
		`{"message":{"base":["is protected"],"title":["is too long","is empty"]}}`:                                                                        "base is protected; title is too long, is empty",
		`{"error":"insufficient_scope","error_description":"The request requires higher privileges"}`:                                                     "insufficient_scope; The request requires higher privileges",
		`{"message":"no such token: ` + token + `"}`:                                                                                                      "no such token: ***",
		`{"status":"no"}`: `{"status":"no"}`,
		`not JSON`:        "not JSON",
	} {
		for _, kind := range forge.Types {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusUnprocessableEntity)
				fmt.Fprint(w, body)
			}))
			defer server.Close()
			_, err := newClient(t, kind, server.URL, "a/b", token).ListOpen(t.Context(), "main")
			if err == nil {
				t.Fatalf("%s: no error", kind)
			}
			if got := forge.Reason(err); got != "list pull requests: the forge answered 422: "+want {
				t.Errorf("%s says %q, want %q", kind, got, want)
			}
		}
	}
}

// A token that cannot be read has an error of its own.
func TestATokenThatCannotBeRead(t *testing.T) {
	for _, kind := range forge.Types {
		c, err := forge.New(forge.Config{Type: kind, URL: "http://127.0.0.1:1", Repository: "a/b", Token: func() (string, error) { return "", errors.New("no file") }})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Edit(t.Context(), forge.Thread{Number: 1}, forge.Edit{Body: "body"}); err == nil || !strings.Contains(err.Error(), "read the token of the forge: no file") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestTypeAt(t *testing.T) {
	for address, want := range map[string]forge.Type{
		"https://github.com": forge.GitHub, "https://acme.ghe.com": forge.GitHub, "https://gitlab.com": forge.GitLab,
		"https://git.example.com": "", "https://github.com.example.com": "", "": "",
	} {
		if got := forge.TypeAt(address); got != want {
			t.Errorf("at %s is a %q, want %q", address, got, want)
		}
	}
}

// Only GitLab has nested groups.
func TestRepositoriesAreValidated(t *testing.T) {
	for repository, valid := range map[string][]forge.Type{
		"a/b": forge.Types, "a/b/c": {forge.GitLab}, "a": nil, "a/": nil, "/b": nil, "a//b": nil, "a/b?c": nil, "a/b%2Fc": nil,
	} {
		for _, kind := range forge.Types {
			err := forge.Config{Type: kind, URL: "https://git.example.com", Repository: repository, Token: func() (string, error) { return "", nil }}.Validate()
			if (err == nil) != slices.Contains(valid, kind) {
				t.Errorf("%s on %s: %v", repository, kind, err)
			}
		}
	}
}

// What differs between forges outside their clients is known of each type.
func TestTypes(t *testing.T) {
	for _, kind := range forge.Types {
		if err := kind.Validate(); err != nil {
			t.Error(err)
		}
		if got, want := kind.PushUser() == "oauth2", kind == forge.GitLab; got != want || !want && kind.PushUser() != "" {
			t.Errorf("%s: the user %q pushes", kind, kind.PushUser())
		}
		if got, want := kind.AuthorSetsLabels(), kind == forge.Gitea; got != want {
			t.Errorf("%s: authors set labels: %v", kind, got)
		}
	}
	if err := forge.Type("svn").Validate(); err == nil || err.Error() != `"svn" is none of gitea, github, gitlab` {
		t.Error(err)
	}
}

// Of an error response only the beginning is looked at, and headers, which are cached with a response, are
// small.
func TestRefusalsOfAForgeAreBounded(t *testing.T) {
	for _, kind := range forge.Types {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			io.WriteString(w, `{"message":[{}`+strings.Repeat(",{}", 1<<20)+`,"the end"]}`) //nolint:errcheck // the test would see it
		}))
		defer server.Close()
		_, err := newClient(t, kind, server.URL, "a/b", "token").PullRequest(t.Context(), 1)
		if err == nil || !strings.Contains(err.Error(), "422") || strings.Contains(err.Error(), "the end") || len(err.Error()) > 1000 {
			t.Errorf("%s: %v", kind, err)
		}
		verbose := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("ETag", strings.Repeat("x", 1<<20))
			io.WriteString(w, "{}") //nolint:errcheck // the test would see it
		}))
		defer verbose.Close()
		if _, err := newClient(t, kind, verbose.URL, "a/b", "token").PullRequest(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "header") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
