package forge_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

const recordedToken = "0123456789abcdef-recorded"

func TestGitHub(t *testing.T) {
	p := play(t, "testdata/github.txtar", map[string]string{
		"Accept": "application/vnd.github.v3+json", "X-Github-Api-Version": "2022-11-28",
	})
	h := p.host(forge.GitHub, "refs/pull/%d/head", "/fleet/hub/blob/%s/apps/a%%20b%%23%%281%%29.yaml#L3")
	keepsContract(t, h)
	keepsIssueContract(t, h)
	limitsAccess(t, h, limited("repo", false))
}

func TestGitLab(t *testing.T) {
	p := play(t, "testdata/gitlab.txtar", map[string]string{"Accept": "application/json"})
	h := p.host(forge.GitLab, "refs/merge-requests/%d/head", "/fleet/hub/-/blob/%s/apps/a%%20b%%23%%281%%29.yaml#L3")
	keepsContract(t, h)
	keepsIssueContract(t, h)
	limitsAccess(t, h, limited("api", true))
}

// A player serves recorded responses. A request that differs in any way from the recorded one
// fails the test.
type player struct {
	t      *testing.T
	url    string
	header map[string]string
	steps  map[string][]exchange

	mu   sync.Mutex
	step string
	next []exchange
}

// An exchange is one request with its response.
type exchange struct {
	request, answer message
}

// A message has a first line, headers and a body.
type message struct {
	line, body string
	header     map[string]string
}

// play serves a file of exchanges until the test ends. Lines with > are the request, and lines
// with < the response. The given headers are required in every request.
func play(t *testing.T, path string, header map[string]string) *player {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{t: t, header: header, steps: map[string][]exchange{}}
	server := httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(server.Close)
	p.url = server.URL
	for _, f := range archive.Files {
		for block := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(string(f.Data)), "{{URL}}", server.URL), "\n\n") {
			p.steps[f.Name] = append(p.steps[f.Name], exchange{parse(block, "> "), parse(block, "< ")})
		}
	}
	return p
}

func parse(block, prefix string) message {
	m := message{header: map[string]string{}}
	for line := range strings.SplitSeq(block, "\n") {
		text, ok := strings.CutPrefix(line, prefix)
		key, value, isHeader := strings.Cut(text, ": ")
		switch {
		case !ok:
		case m.line == "":
			m.line = text
		case strings.HasPrefix(text, "{") || strings.HasPrefix(text, "["):
			m.body = text
		case isHeader:
			m.header[key] = value
		}
	}
	return m
}

// begin begins a step, and fails the test if requests of the step before were not sent.
func (p *player) begin(step string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, missed := range p.next {
		p.t.Errorf("%s: not requested: %s", p.step, missed.request.line)
	}
	p.step, p.next = step, p.steps[step]
}

func (p *player) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	line := r.Method + " " + r.URL.RequestURI()
	if err != nil || len(p.next) == 0 {
		p.t.Errorf("%s: %s is not expected, %v", p.step, line, err)
		w.WriteHeader(http.StatusTeapot)
		return
	}
	e := p.next[0]
	p.next = p.next[1:]
	want := maps.Clone(p.header)
	want["Authorization"], want["User-Agent"] = "Bearer "+recordedToken, "gitfleet"
	if e.request.body != "" {
		want["Content-Type"] = "application/json"
	}
	maps.Copy(want, e.request.header)
	got := map[string]string{}
	for key, values := range r.Header {
		if key != "Accept-Encoding" && key != "Content-Length" {
			got[key] = strings.Join(values, ", ")
		}
	}
	if line != e.request.line || !maps.Equal(got, want) || !sameJSON(string(body), e.request.body) {
		p.t.Errorf("%s\ngot  %s %v\n%s\nwant %s %v\n%s", p.step, line, got, body, e.request.line, want, e.request.body)
		w.WriteHeader(http.StatusTeapot)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	for key, value := range e.answer.header {
		w.Header().Set(key, value)
	}
	var status int
	fmt.Sscan(e.answer.line, &status)
	w.WriteHeader(status)
	io.WriteString(w, e.answer.body)
}

// sameJSON reports whether two texts are the same JSON, or both are empty.
func sameJSON(a, b string) bool {
	var x, y any
	errA, errB := json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)
	if errA != nil || errB != nil {
		return a == b
	}
	return reflect.DeepEqual(x, y)
}

// host returns the host for a recorded forge.
func (p *player) host(kind forge.Type, headRef, lineURL string) host {
	commits := []string{"6dcb09b5b57875f334f61aebed695e2e4193db5e", "c3d0be41ecbe669545ee3e94d31ed9a4bc91ee3c"}
	return host{
		client: newClient(p.t, kind, p.url, "fleet/hub", recordedToken),
		url:    p.url,
		step:   p.begin,
		commit: func(string) string {
			next := commits[0]
			commits = slices.Delete(commits, 0, 1)
			return next
		},
		fork:     func(string) (int64, string) { return 2, "827efc6d56897b048c772eb4087f854f46256132" },
		comment:  func(int64, string) {},
		merge:    func(int64) {},
		label:    func(int64, ...string) {},
		issue:    func(forge.NewIssue) {},
		noIssues: func() {},
		headRef:  func(number int64) string { return fmt.Sprintf(headRef, number) },
		lineURL:  lineURL,
		since:    time.Date(2026, 1, 26, 19, 0, 0, 0, time.UTC),
		owner:    forge.Remark{Author: "fleet", AuthorID: 1},
	}
}
