package diagnostics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// What is wrong with the forge or the token has a line of its own with a fix, and shows no token.
func TestDoctorChecksTheForge(t *testing.T) {
	const token = "0123456789abcdef-secret"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	user := answer(200, `{"id": 1, "login": "fleet", "username": "fleet"}`)
	repository := func(push, archived, pulls, issues bool) http.HandlerFunc {
		return answer(200, fmt.Sprintf(`{"id": 2, "permissions": {"push": %t, "pull": true}, "archived": %t, "has_pull_requests": %t, "has_issues": %t}`, push, archived, pulls, issues))
	}
	tests := map[string]struct {
		user, repository http.HandlerFunc
		want, answer     string
		fix              string
	}{
		"well":             {user, repository(true, false, true, true), "ok: the token of fleet is accepted", "commands in comments are not executed", ""},
		"a wrong token":    {answer(401, `{"message": "invalid token"}`), nil, "fail: ask whose the token is: ", "the forge answered 401", "make another token"},
		"no repository":    {user, answer(404, `{"message": "not found"}`), "fail: read repository fleet/hub: ", "the forge answered 404", "check forge.repository"},
		"a missing scope":  {answer(403, `{"message": "token does not have at least one of required scope(s)"}`), nil, "fail: ask whose the token is: ", "the forge answered 403", "give the token the missing permission"},
		"a rate limit":     {answer(429, `{}`), nil, "fail: ask whose the token is: ", "the forge answered 429", "try again later"},
		"a reader":         {user, repository(false, false, true, true), "fail: the user fleet may only read", "", "let the user write"},
		"archived":         {user, repository(true, true, true, true), "fail: the repository is archived", "", "unarchive it"},
		"no pull requests": {user, repository(true, false, false, true), "fail: the repository has no pull requests", "", "switch them on"},
		"no issues":        {user, repository(true, false, true, false), "warn: the repository has no issues", "", "switch them on"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.Handle("/api/v1/user", test.user)
			if test.repository != nil {
				mux.Handle("/api/v1/repos/fleet/hub", test.repository)
			}
			server := httptest.NewServer(mux)
			defer server.Close()
			var c settings.Config
			c.Forge = settings.ForgeConfig{Type: string(forge.Gitea), URL: server.URL, Repository: "fleet/hub", TokenFile: file}
			got := checkForge(t.Context(), c)
			if len(got) != 1 || !strings.HasPrefix(got[0].State+": "+got[0].Message, test.want) || !strings.Contains(got[0].Message, test.answer) || !strings.HasPrefix(got[0].Fix, test.fix) || (test.fix == "") != (got[0].Fix == "") {
				t.Fatalf("got %+v, want %q, %q and the fix %q", got, test.want, test.answer, test.fix)
			}
			if strings.Contains(got[0].Message, token) {
				t.Errorf("the token is in %q", got[0].Message)
			}
		})
	}
	var c settings.Config
	c.Forge = settings.ForgeConfig{Type: string(forge.Gitea), URL: "http://127.0.0.1:1", Repository: "fleet/hub", TokenFile: file}
	if got := checkForge(t.Context(), c); len(got) != 1 || got[0].State != checkFail || !strings.HasPrefix(got[0].Fix, "check forge.url") {
		t.Errorf("a forge that is down: %+v", got)
	}
	if got := checkForge(t.Context(), settings.Config{}); len(got) > 0 {
		t.Errorf("without a forge: %+v", got)
	}
}
