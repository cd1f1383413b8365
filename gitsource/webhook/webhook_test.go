package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

const secret = "s3cret"

func sign(body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// Only a request with a valid signature wakes the poller, and only for a tracked reference.
func TestOnlyAnAuthenticPushWakes(t *testing.T) {
	push := `{"ref":"refs/heads/main","commits":[]}`
	other := `{"ref":"refs/heads/other"}`
	form := "payload=%7B%22ref%22%3A%22refs%2Fheads%2Fother%22%7D"
	tests := map[string]struct {
		method  string
		headers map[string]string
		body    string
		secret  func() (string, error)
		status  int
		result  string
	}{
		"GitHub":                      {headers: map[string]string{"X-GitHub-Event": "push", "X-Hub-Signature-256": "sha256=" + sign(push)}, body: push, status: 202, result: Woke},
		"GitLab":                      {headers: map[string]string{"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": secret}, body: push, status: 202, result: Woke},
		"Gitea":                       {headers: map[string]string{"X-Gitea-Event": "push", "X-Gitea-Signature": sign(push)}, body: push, status: 202, result: Woke},
		"Forgejo":                     {headers: map[string]string{"X-Forgejo-Event": "push", "X-Forgejo-Signature": sign(push), "X-Hub-Signature-256": "sha256=" + sign(push)}, body: push, status: 202, result: Woke},
		"another branch":              {headers: map[string]string{"X-Gitea-Signature": sign(other)}, body: other, status: 200, result: Ignored},
		"a ping":                      {headers: map[string]string{"X-GitHub-Event": "ping", "X-Hub-Signature-256": "sha256=" + sign(`{}`)}, body: `{}`, status: 200, result: Ignored},
		"no reference":                {headers: map[string]string{"X-Gitea-Signature": sign(`{}`)}, body: `{}`, status: 202, result: Woke},
		"a form":                      {headers: map[string]string{"X-Hub-Signature-256": "sha256=" + sign(form)}, body: form, status: 202, result: Woke},
		"not signed":                  {body: push, status: 401, result: Unauthorized},
		"signed for another body":     {headers: map[string]string{"X-Hub-Signature-256": "sha256=" + sign(other)}, body: push, status: 401, result: Unauthorized},
		"one right, one wrong":        {headers: map[string]string{"X-Hub-Signature-256": "sha256=" + sign(push), "X-Gitea-Signature": sign(other)}, body: push, status: 401, result: Unauthorized},
		"empty signature":             {headers: map[string]string{"X-Hub-Signature-256": "sha256="}, body: push, status: 401, result: Unauthorized},
		"no prefix":                   {headers: map[string]string{"X-Hub-Signature-256": sign(push)}, body: push, status: 401, result: Unauthorized},
		"SHA-1 alone":                 {headers: map[string]string{"X-Hub-Signature": "sha1=" + sign(push)[:40]}, body: push, status: 401, result: Unauthorized},
		"not hexadecimal":             {headers: map[string]string{"X-Gitea-Signature": strings.Repeat("z", 64)}, body: push, status: 401, result: Unauthorized},
		"wrong token":                 {headers: map[string]string{"X-Gitlab-Token": secret + "x"}, body: push, status: 401, result: Unauthorized},
		"empty token":                 {headers: map[string]string{"X-Gitlab-Token": ""}, body: push, status: 401, result: Unauthorized},
		"a GET":                       {method: http.MethodGet, headers: map[string]string{"X-Gitlab-Token": secret}, status: 405, result: Malformed},
		"just not too large":          {headers: map[string]string{"X-Gitlab-Token": secret}, body: strings.Repeat(" ", maxBody), status: 202, result: Woke},
		"too large":                   {headers: map[string]string{"X-Gitlab-Token": secret}, body: strings.Repeat(" ", maxBody+1), status: 413, result: Malformed},
		"the secret cannot be read":   {headers: map[string]string{"X-Gitlab-Token": ""}, body: push, secret: func() (string, error) { return "", errors.New("gone") }, status: 503, result: Unavailable},
		"the secret is empty":         {headers: map[string]string{"X-Gitlab-Token": ""}, body: push, secret: func() (string, error) { return "", nil }, status: 503, result: Unavailable},
		"signed with an empty secret": {headers: map[string]string{"X-Gitea-Signature": sign("")}, body: push, secret: func() (string, error) { return "", nil }, status: 503, result: Unavailable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			woken := 0
			var results []string
			c := Config{
				Secret:   func() (string, error) { return secret, nil },
				Wake:     func() { woken++ },
				Follows:  func(ref string) bool { return ref == "refs/heads/main" },
				Received: func(r string) { results = append(results, r) },
			}
			if test.secret != nil {
				c.Secret = test.secret
			}
			method := test.method
			if method == "" {
				method = http.MethodPost
			}
			req := httptest.NewRequest(method, "/", strings.NewReader(test.body))
			for k, v := range test.headers {
				req.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			New(c).ServeHTTP(w, req)
			if w.Code != test.status || len(results) != 1 || results[0] != test.result {
				t.Errorf("answered %d %q, want %d %q", w.Code, results, test.status, test.result)
			}
			if want := test.result == Woke; (woken == 1) != want || woken > 1 {
				t.Errorf("woke %d times", woken)
			}
			if strings.Contains(w.Body.String(), secret) {
				t.Errorf("the answer %q holds the secret", w.Body)
			}
		})
	}
}

// No request causes a panic, and no request without a valid signature wakes the poller.
func FuzzWebhook(f *testing.F) {
	f.Add("X-Hub-Signature-256", "sha256="+sign("{}"), []byte("{}"))
	f.Add("X-Gitlab-Token", secret, []byte(`{"ref":"refs/heads/main"}`))
	f.Add("X-Gitea-Signature", "00", []byte(`{"ref":1}`))
	f.Add("X-Forgejo-Signature", strings.Repeat("f", 64), []byte(`[[[[[[[[`))
	f.Add("X-GitHub-Event", "ping", []byte("\x00\xff"))
	f.Fuzz(func(t *testing.T, header, value string, body []byte) {
		woken := false
		h := New(Config{Secret: func() (string, error) { return secret, nil }, Wake: func() { woken = true }})
		req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
		req.Header[http.CanonicalHeaderKey(header)] = []string{value}
		h.ServeHTTP(httptest.NewRecorder(), req)
		proof := value == secret || strings.Contains(strings.ToLower(value), sign(string(body)))
		if woken && !proof {
			t.Errorf("woken by %s: %q", header, value)
		}
	})
}

// pushedRef reads any content without a panic.
func FuzzPushedRef(f *testing.F) {
	f.Add([]byte(`{"ref":"refs/heads/main"}`))
	f.Add([]byte(`{"ref":"main"}`))
	f.Add([]byte(`{"ref":{"ref":"refs/"}}`))
	f.Add([]byte(`{"ref":"refs/heads/\ud800"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if ref, ok := pushedRef(body); ok != strings.HasPrefix(ref, "refs/") {
			t.Errorf("ref %q, %t", ref, ok)
		}
	})
}

// A change of a pull request calls WakePullRequests and nothing else.
func TestPullRequestsWakeWhoLooksAtThem(t *testing.T) {
	for name, test := range map[string]struct{ header, value, body string }{
		"GitHub":          {"X-GitHub-Event", "pull_request", `{"action":"closed","number":1,"pull_request":{"number":1,"merged":true}}`},
		"Gitea":           {"X-Gitea-Event", "pull_request", `{"action":"label_updated","number":1,"pull_request":{"id":1}}`},
		"issue of GitHub": {"X-GitHub-Event", "issues", `{"action":"closed","issue":{"number":1}}`},
		"issue of GitLab": {"X-Gitlab-Event", "Issue Hook", `{"object_kind":"issue","event_type":"issue","object_attributes":{"iid":1}}`},
		"GitLab":          {"X-Gitlab-Event", "Merge Request Hook", `{"object_kind":"merge_request","event_type":"merge_request","object_attributes":{"iid":1}}`},
	} {
		for _, looks := range []bool{true, false} {
			var woken []string
			c := Config{Secret: func() (string, error) { return secret, nil }, Wake: func() { woken = append(woken, "poll") }}
			if looks {
				c.WakePullRequests = func() { woken = append(woken, "pull requests") }
			}
			req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(test.body))
			req.Header.Set(test.header, test.value)
			req.Header.Set("X-Gitlab-Token", secret)
			w := httptest.NewRecorder()
			New(c).ServeHTTP(w, req)
			want, status := "", http.StatusOK
			if looks {
				want, status = "pull requests", http.StatusAccepted
			}
			if got := strings.Join(woken, ", "); got != want || w.Code != status {
				t.Errorf("%s: woken %q, answered %d", name, got, w.Code)
			}
		}
	}
}

// Of issues only those that are followed wake anybody, as their labels or their body say.
func TestIssuesOfOthersAreIgnored(t *testing.T) {
	followed := func(labels []string, body string) bool {
		return strings.Contains(strings.Join(labels, " ")+body, "ours")
	}
	for body, want := range map[string]string{
		`{"action":"opened","issue":{"number":1,"body":"hello","labels":[{"name":"bug"}]}}`:                                             Ignored,
		`{"action":"created","issue":{"number":1,"body":null,"labels":null},"comment":{"body":"ours"}}`:                                 Ignored,
		`{"action":"closed","issue":{"number":1,"body":"hello","labels":[{"name":"bug"},{"name":"ours"}]}}`:                             Woke,
		`{"action":"unlabeled","issue":{"number":1,"body":"<!-- ours -->","labels":[]}}`:                                                Woke,
		`{"object_kind":"issue","object_attributes":{"iid":1,"description":"hello","labels":[{"title":"bug"}]}}`:                        Ignored,
		`{"object_kind":"issue","object_attributes":{"iid":1,"description":"hello","labels":[{"title":"ours"}]}}`:                       Woke,
		`{"object_kind":"issue","object_attributes":{"iid":1,"description":"ours"}}`:                                                    Woke,
		`{"object_kind":"merge_request","object_attributes":{"iid":1,"description":"hello"}}`:                                           Woke,
		`{"action":"created","issue":{"number":1,"body":"hello","pull_request":{"url":"/pulls/1"}},"comment":{"id":1}}`:                 Woke,
		`{"object_kind":"note","object_attributes":{"note":"/gitfleet plan","noteable_type":"MergeRequest"},"merge_request":{"iid":1}}`: Woke,
		`{"action":"opened","issue":{"labels":"of another form"}}`:                                                                      Woke,
	} {
		c := Config{Secret: func() (string, error) { return secret, nil }, Wake: func() { t.Errorf("%s: polled", body) }, WakePullRequests: func() {}, FollowsIssue: followed}
		req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		req.Header.Set("X-Gitlab-Token", secret)
		w := httptest.NewRecorder()
		New(c).ServeHTTP(w, req)
		if got := strings.TrimSpace(w.Body.String()); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// However many requests are sent at once, only the bodies of a few are in memory.
func TestFewBodiesAreReadAtOnce(t *testing.T) {
	h := New(Config{Secret: func() (string, error) { return secret, nil }, Wake: func() {}})
	arriving, rest := make(chan struct{}), make(chan struct{})
	var slow sync.WaitGroup
	for range maxReading {
		slow.Go(func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/webhook", io.MultiReader(signal{arriving}, waiter{rest})))
		})
		<-arriving
	}
	post := func() *httptest.ResponseRecorder {
		w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/webhook", strings.NewReader("{}"))
		req.Header.Set("X-Gitlab-Token", secret)
		h.ServeHTTP(w, req)
		return w
	}
	if w := post(); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("one more gets %d", w.Code)
	}
	close(rest)
	slow.Wait()
	if w := post(); w.Code != http.StatusAccepted {
		t.Errorf("afterwards one gets %d", w.Code)
	}
}

// A signal is a body that says when it is read; a waiter is one that ends when its channel closes.
type (
	signal struct{ read chan<- struct{} }
	waiter struct{ end <-chan struct{} }
)

func (s signal) Read([]byte) (int, error) {
	s.read <- struct{}{}
	return 0, io.EOF
}

func (w waiter) Read([]byte) (int, error) {
	<-w.end
	return 0, io.EOF
}
