package forge_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// requests are methods of a client that read what the forge answers.
var requests = map[string]func(ctx context.Context, c forge.Client) error{
	"ListOpen": func(ctx context.Context, c forge.Client) error { _, err := c.ListOpen(ctx, "main"); return err },
	"FindPullRequest": func(ctx context.Context, c forge.Client) error {
		_, err := c.FindPullRequest(ctx, "main", "x")
		return err
	},
	"PullRequest": func(ctx context.Context, c forge.Client) error { _, err := c.PullRequest(ctx, 1); return err },
	"OpenPullRequest": func(ctx context.Context, c forge.Client) error {
		_, err := c.OpenPullRequest(ctx, forge.NewPullRequest{Title: "x", Base: "main", Branch: "x", Labels: []string{"l"}})
		return err
	},
	"Edit": func(ctx context.Context, c forge.Client) error {
		return c.Edit(ctx, forge.Thread{Number: 1}, forge.Edit{RemoveLabels: []string{"l"}})
	},
	"EnsureLabels": func(ctx context.Context, c forge.Client) error {
		return c.EnsureLabels(ctx, []forge.Label{{Name: "l"}})
	},
	"FindComment": func(ctx context.Context, c forge.Client) error { _, err := c.FindComment(ctx, 1, "m"); return err },
	"AddComment":  func(ctx context.Context, c forge.Client) error { _, err := c.AddComment(ctx, 1, "m"); return err },
	"ListRemarks": func(ctx context.Context, c forge.Client) error {
		_, err := c.ListRemarks(ctx, time.Unix(0, 0))
		return err
	},
	"MergedPullRequest": func(ctx context.Context, c forge.Client) error {
		_, err := c.MergedPullRequest(ctx, "main", strings.Repeat("a", 40))
		return err
	},
	"Approvals": func(ctx context.Context, c forge.Client) error {
		_, err := c.Approvals(ctx, forge.PullRequest{Thread: forge.Thread{Number: 1}, Head: strings.Repeat("a", 40)})
		return err
	},
	"FindLineComments": func(ctx context.Context, c forge.Client) error { _, err := c.FindLineComments(ctx, 1, "m"); return err },
	"ListIssues": func(ctx context.Context, c forge.Client) error {
		_, err := c.ListIssues(ctx, "l", forge.Open)
		return err
	},
	"Issue": func(ctx context.Context, c forge.Client) error { _, err := c.Issue(ctx, 1); return err },
	"FindStatus": func(ctx context.Context, c forge.Client) error {
		_, err := c.FindStatus(ctx, strings.Repeat("a", 40), "x")
		return err
	},
	"Access": func(ctx context.Context, c forge.Client) error { _, err := c.Access(ctx); return err },
}

// A forge that answers JSON of another form does not end the daemon, and its answer is not quoted without end.
func TestAnswersOfAnotherForm(t *testing.T) {
	for _, body := range []string{"null", "[null]", "{}", "[{}]", `[{"user":null,"head":null,"base":null,"labels":[null]}]`, `{"user":null,"head":null,"base":null,"labels":[null],"assets":[null]}`, "[[]]", "1", `"x"`} {
		for _, kind := range forge.Types {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Write([]byte(body))
			}))
			for name, send := range requests {
				t.Run(name+" "+string(kind)+" "+body, func(t *testing.T) {
					if err := send(t.Context(), newClient(t, kind, server.URL, "a/b", "0123456789abcdef-secret")); err != nil && len(err.Error()) > 1000 {
						t.Errorf("the error has %d bytes", len(err.Error()))
					}
				})
			}
			server.Close()
		}
	}
}

// No answer of a forge ends the daemon, has it quote a credential, or has it send requests without end.
func FuzzAnswers(f *testing.F) {
	const token = "0123456789abcdef-secret"
	var body atomic.Pointer[[]byte]
	var sent atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.Write(*body.Load())
	}))
	f.Cleanup(server.Close)
	f.Add([]byte(`[{"number":1,"iid":1,"user":{"login":"a"},"head":{"ref":"x","sha":"aa"},"base":{"ref":"main"},"labels":[{"name":"l"}],"state":"open"}]`))
	f.Add([]byte(`{"number":1,"id":1,"state":"open","permissions":{"push":true}}`))
	f.Add([]byte(`{"message":"` + token + `"}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		body.Store(&answer)
		for _, kind := range forge.Types {
			c := newClient(t, kind, server.URL, "a/b", token)
			for name, send := range requests {
				sent.Store(0)
				if err := send(t.Context(), c); err != nil && strings.Contains(err.Error(), token) {
					t.Errorf("%s %s quotes the token: %v", kind, name, err)
				}
				if sent.Load() > 200 {
					t.Errorf("%s %s sends %d requests", kind, name, sent.Load())
				}
			}
		}
	})
}
