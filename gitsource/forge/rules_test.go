package forge_test

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// answering serves the same answers to all requests with a method and a path, which ends with that of
// the answer.
func answering(t *testing.T, answers map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for request, answer := range answers {
			method, path, _ := strings.Cut(request, " ")
			if r.Method != method || !strings.HasSuffix(r.URL.EscapedPath(), path) {
				continue
			}
			status, body, ok := strings.Cut(answer, " ")
			if code := 0; ok {
				if _, err := fmt.Sscan(status, &code); err == nil {
					w.WriteHeader(code)
					answer = body
				}
			}
			fmt.Fprint(w, answer)
			return
		}
		t.Errorf("%s %s is not expected", r.Method, r.URL)
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// The URL of a forge has a host and nothing that would be lost or leak.
func TestURLsAreValidated(t *testing.T) {
	for url, valid := range map[string]bool{
		"https://git.example.com": true, "http://git.example.com:3000/forge": true, "https://[::1]:3000": true,
		"": false, "git.example.com": false, "ssh://git.example.com": false, "https://": false, "https://user:password@git.example.com": false,
		"https://git.example.com?a=b": false, "https://git.example.com#a": false, "https://git example.com": false,
	} {
		err := forge.Config{Type: forge.Gitea, URL: url, Repository: "a/b", Token: func() (string, error) { return "", nil }}.Validate()
		if (err == nil) != valid || err != nil && err.Error() != "url: must be like https://git.example.com" {
			t.Errorf("%q: %v", url, err)
		}
	}
	if err := (forge.Config{URL: "https://git.example.com", Repository: "a/b"}).Validate(); err == nil || !strings.HasPrefix(err.Error(), "a token is needed") {
		t.Errorf("without a token: %v", err)
	}
	if _, err := forge.New(forge.Config{Type: "svn", URL: "https://git.example.com", Repository: "a/b", Token: func() (string, error) { return "", nil }}); err == nil || err.Error() != `type: "svn" is not supported` {
		t.Errorf("an unknown type: %v", err)
	}
}

// A forge with a certificate of an own authority is trusted only with its bundle.
func TestTheCABundleIsTrusted(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"number":1}`)
	}))
	defer server.Close()
	bundle := func(text []byte) string {
		path := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	valid := bundle(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for name, test := range map[string]struct{ bundle, want string }{
		"its bundle": {valid, ""}, "none": {"", "certificate signed by unknown authority"},
		"no certificate": {bundle([]byte("nothing")), "has no certificate"}, "no file": {"/does/not/exist", "no such file"},
	} {
		for _, kind := range forge.Types {
			c, err := forge.New(forge.Config{Type: kind, URL: server.URL, Repository: "a/b", Token: func() (string, error) { return "1", nil }, CABundle: test.bundle})
			if err == nil {
				_, err = c.PullRequest(t.Context(), 1)
			}
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s, %s: %v, want %q", name, kind, err, test.want)
			}
		}
	}
}

// A merge request is merged by a merge commit, a squash commit, or its own last commit.
func TestTheMergeCommitOnGitLab(t *testing.T) {
	for name, test := range map[string]struct{ fields, want string }{
		"merged":                      {`"state":"merged","merge_commit_sha":"m","squash_commit_sha":"s"`, "m"},
		"squashed and fast-forwarded": {`"state":"merged","squash_commit_sha":"s"`, "s"},
		"fast-forwarded":              {`"state":"merged"`, "h"},
		"closed":                      {`"state":"closed","merge_commit_sha":"m"`, ""},
		"open":                        {`"state":"opened"`, ""},
		"locked during the merge":     {`"state":"locked"`, ""},
	} {
		url := answering(t, map[string]string{"GET /merge_requests/1": `{"iid":1,"sha":"h",` + test.fields + `}`})
		pr, err := newClient(t, forge.GitLab, url, "a/b", "1").PullRequest(t.Context(), 1)
		if err != nil || pr.MergeCommit != test.want || (pr.State == forge.Merged) != (test.want != "") {
			t.Errorf("%s: %+v, %v, want %q", name, pr, err, test.want)
		}
	}
}

// Of the pull requests of a branch the open one counts, otherwise the newest; those of other branches
// and of forks do not.
func TestWhichPullRequestOfABranchCounts(t *testing.T) {
	const branch = "gitfleet/drift/1"
	entry := func(number int, state, branch string, fork bool) string {
		repository := 1
		if fork {
			repository = 2
		}
		return fmt.Sprintf(`{"number":%d,"state":%q,"head":{"ref":%q,"repo":{"id":%d}},"base":{"ref":"main","repo":{"id":1}}}`, number, state, branch, repository)
	}
	for name, test := range map[string]struct {
		list []string
		want int64
	}{
		"none":             {nil, 0},
		"the newest":       {[]string{entry(9, "closed", branch, false), entry(5, "closed", branch, false)}, 9},
		"the open one":     {[]string{entry(9, "closed", branch, false), entry(5, "open", branch, false)}, 5},
		"the newest open":  {[]string{entry(9, "open", branch, false), entry(5, "open", branch, false)}, 9},
		"of a fork":        {[]string{entry(9, "open", branch, true), entry(5, "closed", branch, false)}, 5},
		"a similar branch": {[]string{entry(9, "open", branch+"0", false)}, 0},
	} {
		url := answering(t, map[string]string{"GET /pulls": "[" + strings.Join(test.list, ",") + "]"})
		pr, err := newClient(t, forge.GitHub, url, "a/b", "1").FindPullRequest(t.Context(), "main", branch)
		if err != nil || pr == nil != (test.want == 0) || pr != nil && pr.Number != test.want {
			t.Errorf("%s: %+v, %v, want %d", name, pr, err, test.want)
		}
	}
}

// GitLab refuses to set the state that a status has already, which is no error; anything else is.
func TestSettingAStatusOnGitLab(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		ok     bool
	}{
		"set":                {`{"id":1}`, true},
		"it has that state":  {`400 {"message":"Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via \"enqueue\")"}`, true},
		"it has another one": {`400 {"message":"Cannot transition status via :run from :success (Reason(s): x)"}`, false},
		"no such commit":     {`404 {"message":"404 Not Found"}`, false},
	} {
		url := answering(t, map[string]string{"POST /statuses/1234": test.answer})
		err := newClient(t, forge.GitLab, url, "a/b", "1").SetStatus(t.Context(), forge.Status{Commit: "1234", Context: "gitfleet/plan", State: forge.StatusPending, Description: "1 change"})
		if (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// GitLab has states of its own: those without an equal are errors.
func TestStatesOfStatusesOnGitLab(t *testing.T) {
	for status, want := range map[string]forge.StatusState{
		"pending": forge.StatusPending, "success": forge.StatusSuccess, "failed": forge.StatusFailure, "canceled": forge.StatusErrored,
	} {
		url := answering(t, map[string]string{"GET /statuses": `[{"name":"gitfleet/other","status":"success"},{"name":"gitfleet/plan","status":"` + status + `","description":"said"}]`})
		s, err := newClient(t, forge.GitLab, url, "a/b", "1").FindStatus(t.Context(), "1234", "gitfleet/plan")
		if err != nil || s == nil || *s != (forge.Status{Commit: "1234", Context: "gitfleet/plan", State: want, Description: "said"}) {
			t.Errorf("%s: %+v, %v", status, s, err)
		}
	}
}

// A member of a project may push as a Developer of it or of its group.
func TestAccessOnGitLab(t *testing.T) {
	level := func(n int) string {
		if n == 0 {
			return "null"
		}
		return fmt.Sprintf(`{"access_level":%d}`, n)
	}
	for name, test := range map[string]struct {
		project, group int
		token          string
		want           forge.Access
	}{
		"Developer of the project":        {30, 0, `{"scopes":["api"]}`, forge.Access{User: "fleet"}},
		"Maintainer of the group":         {0, 40, `{"scopes":["api"]}`, forge.Access{User: "fleet"}},
		"Reporter, Developer of a group":  {20, 30, `{"scopes":["api"]}`, forge.Access{User: "fleet"}},
		"Reporter":                        {20, 0, `{"scopes":["api"]}`, forge.Access{User: "fleet", ReadOnly: true}},
		"an administrator without a role": {0, 0, `{"scopes":["api"]}`, forge.Access{User: "fleet"}},
		"a scope that only reads":         {30, 0, `{"scopes":["read_api"]}`, forge.Access{User: "fleet", MissingScope: "api"}},
		"a token without scopes to read":  {30, 0, `401 {"message":"401 Unauthorized"}`, forge.Access{User: "fleet"}},
	} {
		url := answering(t, map[string]string{
			"GET /user": `{"username":"fleet"}`, "GET /personal_access_tokens/self": test.token,
			"GET /projects/a%2Fb": `{"permissions":{"project_access":` + level(test.project) + `,"group_access":` + level(test.group) + `}}`,
		})
		if a, err := newClient(t, forge.GitLab, url, "a/b", "1").Access(t.Context()); err != nil || a != test.want {
			t.Errorf("%s: %+v, %v, want %+v", name, a, err, test.want)
		}
	}
}

// A classic token of GitHub needs the scope repo, or public_repo for a public repository. The other
// tokens have no scopes.
func TestScopesOfATokenOfGitHub(t *testing.T) {
	for name, test := range map[string]struct {
		scopes  string
		private bool
		missing string
	}{
		"no classic token": {"", true, ""}, "repo": {"read:org, repo", true, ""}, "public_repo": {"public_repo", false, ""},
		"public_repo of a private one": {"public_repo", true, "repo"}, "none of them": {"read:org,gist", false, "repo"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-OAuth-Scopes", test.scopes)
			if strings.HasSuffix(r.URL.Path, "/user") {
				fmt.Fprint(w, `{"login":"fleet"}`)
				return
			}
			fmt.Fprintf(w, `{"private":%v,"has_issues":true,"permissions":{"push":true}}`, test.private)
		}))
		defer server.Close()
		if a, err := newClient(t, forge.GitHub, server.URL, "a/b", "1").Access(t.Context()); err != nil || a != (forge.Access{User: "fleet", MissingScope: test.missing}) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

// A repository without issues is told apart from an issue that is gone and from a token that may not
// read issues.
func TestWhyAnIssueIsNotFound(t *testing.T) {
	repository := map[forge.Type][2]string{ // without and with issues
		forge.Gitea:  {`{"has_issues":false}`, `{"has_issues":true}`},
		forge.GitHub: {`{"has_issues":false}`, `{"has_issues":true}`},
		forge.GitLab: {`{"issues_access_level":"disabled"}`, `{"issues_access_level":"enabled"}`},
	}
	for name, test := range map[string]struct {
		status  int
		enabled int
		want    string
	}{
		"disabled, 404": {404, 0, "issues are disabled"},
		"disabled, 410": {410, 0, "issues are disabled"},
		"disabled, 403": {403, 0, "issues are disabled"},
		"deleted":       {404, 1, ""},
		"gone":          {410, 1, ""},
		"may not":       {403, 1, "the forge answered 403"},
		"out of order":  {500, 0, "the forge answered 500"},
		"a wrong token": {401, 0, "the forge answered 401"},
	} {
		for _, kind := range forge.Types {
			url := answering(t, map[string]string{
				"GET /issues/7":  fmt.Sprintf(`%d {"message":"x"}`, test.status),
				"GET /repos/a/b": repository[kind][test.enabled], "GET /projects/a%2Fb": repository[kind][test.enabled],
			})
			issue, err := newClient(t, kind, url, "a/b", "1").Issue(t.Context(), 7)
			if issue != nil || (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s on %s: %+v, %v, want %q", name, kind, issue, err, test.want)
			}
		}
	}
}

// A token that may not ask what others may do has an error of its own; of a user who is not known nothing is allowed.
func TestWhoMayWriteIsNotSaid(t *testing.T) {
	for status, want := range map[int]error{http.StatusForbidden: forge.ErrPermissionsHidden, http.StatusNotFound: nil} {
		for _, kind := range forge.Types {
			answer := fmt.Sprintf(`%d {"message":"no"}`, status)
			url := answering(t, map[string]string{"GET /collaborators/anna/permission": answer, "GET /members/all/7": answer})
			may, err := newClient(t, kind, url, "a/b", "1").MayWrite(t.Context(), forge.Remark{Author: "anna", AuthorID: 7})
			if may || !errors.Is(err, want) {
				t.Errorf("%d on %s: %t, %v", status, kind, may, err)
			}
		}
	}
}

// A repository with more pull requests than are read has an error, and no part of the list.
func TestTooManyPullRequests(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?page=99999>; rel="next"`, r.Host, r.URL.Path))
		w.Header().Set("X-Next-Page", "99999")
		fmt.Fprint(w, "[]")
	}))
	defer server.Close()
	for _, kind := range forge.Types {
		if list, err := newClient(t, kind, server.URL, "a/b", "1").ListOpen(t.Context(), "main"); err == nil || err.Error() != "list pull requests: more than 5000 are open" || list != nil {
			t.Errorf("%s: %d listed, %v", kind, len(list), err)
		}
	}
}

// A line is linked to only if it is known, and the name of a file cannot change the address.
func TestLinksToLines(t *testing.T) {
	for kind, view := range map[forge.Type]string{forge.Gitea: "src/commit/1234", forge.GitHub: "blob/1234", forge.GitLab: "-/blob/1234"} {
		c := newClient(t, kind, "https://git.example.com/", "a/b", "1")
		for file, want := range map[string]string{"apps/web.yaml": "apps/web.yaml", "a?b=c#d.yaml": "a%3Fb=c%23d.yaml", "100%.yaml": "100%25.yaml"} {
			if got := c.LineURL("1234", file, 0); got != "https://git.example.com/a/b/"+view+"/"+want {
				t.Errorf("%s: %s is at %s", kind, file, got)
			}
			if got := c.LineURL("1234", file, 7); got != "https://git.example.com/a/b/"+view+"/"+want+"#L7" {
				t.Errorf("%s: line 7 of %s is at %s", kind, file, got)
			}
		}
	}
}

// Gitea lists all issues if the repository does not have the label: those without it are left out.
func TestIssuesWithoutTheLabelAreLeftOut(t *testing.T) {
	url := answering(t, map[string]string{
		"GET /user":   `{"id":1}`,
		"GET /issues": `[{"number":1,"user":{"id":1},"labels":[{"name":"bug"}]},{"number":2,"user":{"id":1},"labels":[{"name":"gitfleet/manual-edit"}]},{"number":3,"user":{"id":2},"labels":[{"name":"gitfleet/manual-edit"}]}]`,
	})
	for _, kind := range []forge.Type{forge.Gitea, forge.GitHub} {
		list, err := newClient(t, kind, url, "a/b", "1").ListIssues(t.Context(), "gitfleet/manual-edit", forge.Open)
		if err != nil || len(list) != 1 || list[0].Number != 2 {
			t.Errorf("%s: %+v, %v", kind, list, err)
		}
	}
}
