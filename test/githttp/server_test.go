package githttp_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/test/githttp"
)

func TestCloneHasWhatWasCommitted(t *testing.T) {
	server := githttp.Serve(t, githttp.Config{})
	repo := server.Repo(t, "team/hub.git")
	hash := repo.Commit(t, "main", map[string]string{"a/b.yaml": "kind: ConfigMap\n"})

	work := filepath.Join(t.TempDir(), "work")
	git(t, ".", "clone", "--quiet", server.URL("team/hub.git"), work)
	if got := git(t, work, "rev-parse", "HEAD"); got != hash {
		t.Errorf("HEAD is %s, committed was %s", got, hash)
	}
	content, err := os.ReadFile(filepath.Join(work, "a", "b.yaml"))
	if err != nil || string(content) != "kind: ConfigMap\n" {
		t.Errorf("content is %q: %v", content, err)
	}
	if server.Count("team/hub.git", githttp.Poll) != 1 || server.Count("team/hub.git", githttp.Fetch) == 0 {
		t.Errorf("counted %+v", server.Requests())
	}
	if n := server.Count("team/hub.git", githttp.Push); n != 0 {
		t.Errorf("a clone counts as %d pushes", n)
	}
}

// A push of more than a megabyte comes in chunks, compressed or not.
func TestPushUpdatesTheRepository(t *testing.T) {
	server := githttp.Serve(t, githttp.Config{})
	repo := server.Repo(t, "hub.git")
	repo.Commit(t, "main", map[string]string{"small": "1"})
	work := filepath.Join(t.TempDir(), "work")
	git(t, ".", "clone", "--quiet", server.URL("hub.git"), work)

	noise := make([]byte, 3<<20)
	rand.Read(noise)
	if err := os.WriteFile(filepath.Join(work, "large"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, work, "add", "large")
	git(t, work, "commit", "--quiet", "--message=large")
	git(t, work, "push", "--quiet", "origin", "HEAD:proposal")

	if pushed, there := git(t, work, "rev-parse", "HEAD"), repo.Head(t, "proposal"); pushed != there {
		t.Errorf("pushed %s, there is %s", pushed, there)
	}
	if server.Count("hub.git", githttp.Push) == 0 {
		t.Errorf("counted %+v", server.Requests())
	}
}

func TestOnlyKnownCredentialsAreServed(t *testing.T) {
	server := githttp.Serve(t, githttp.Config{Token: "token-1", Username: "ada", Password: "password-1"})
	server.Repo(t, "hub.git").Commit(t, "main", map[string]string{"a": "1"})
	basic := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	tests := map[string]struct {
		sign func(*http.Request)
		want int
	}{
		"nobody":                      {func(*http.Request) {}, 401},
		"the token":                   {bearer("token-1"), 200},
		"another token":               {bearer("token-2"), 401},
		"the password as token":       {bearer("password-1"), 401},
		"an empty token":              {bearer(""), 401},
		"the token as password":       {basic("x-access-token", "token-1"), 200},
		"user and password":           {basic("ada", "password-1"), 200},
		"password of another user":    {basic("bob", "password-1"), 401},
		"user with an empty password": {basic("ada", ""), 401},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			response := poll(t, http.DefaultClient, server.URL("hub.git"), test.sign)
			if response.StatusCode != test.want {
				t.Errorf("got %s, want %d", response.Status, test.want)
			}
		})
	}
}

func TestUnavailableServerSaysWhenToRetry(t *testing.T) {
	server := githttp.Serve(t, githttp.Config{})
	server.Repo(t, "hub.git").Commit(t, "main", map[string]string{"a": "1"})
	ask := func() *http.Response { return poll(t, http.DefaultClient, server.URL("hub.git"), nil) }

	server.Unavailable(true, 90*time.Second)
	if r := ask(); r.StatusCode != 503 || r.Header.Get("Retry-After") != "90" {
		t.Errorf("got %s, retry after %q", r.Status, r.Header.Get("Retry-After"))
	}
	server.Unavailable(true, 0)
	if r := ask(); r.StatusCode != 503 || r.Header["Retry-After"] != nil {
		t.Errorf("got %s, retry after %q", r.Status, r.Header["Retry-After"])
	}
	server.Unavailable(false, 0)
	if r := ask(); r.StatusCode != 200 {
		t.Errorf("got %s", r.Status)
	}
	failed := func(q githttp.Request) bool { return q.Status == 503 }
	if all, down := server.Count("hub.git"), server.Count("hub.git", githttp.Poll, failed); all != 3 || down != 2 {
		t.Errorf("counted %+v", server.Requests())
	}
}

func TestTLSNeedsTheCA(t *testing.T) {
	server := githttp.Serve(t, githttp.Config{TLS: true})
	server.Repo(t, "hub.git").Commit(t, "main", map[string]string{"a": "1"})
	if !strings.HasPrefix(server.URL("hub.git"), "https://127.0.0.1:") {
		t.Errorf("address is %s", server.URL("hub.git"))
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(server.CA()) {
		t.Fatalf("no certificate in %q", server.CA())
	}
	trusting := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	if response := poll(t, trusting, server.URL("hub.git"), nil); response.StatusCode != 200 {
		t.Errorf("got %s", response.Status)
	}
	response, err := http.Get(server.URL("hub.git") + "/info/refs?service=git-upload-pack")
	if err == nil {
		response.Body.Close()
		t.Error("a client that does not know the authority is served")
	}
}

func TestUnknownRepositoryIsNotFound(t *testing.T) {
	server := githttp.Serve(t, githttp.Config{})
	if r := poll(t, http.DefaultClient, server.URL("nothing.git"), nil); r.StatusCode != 404 {
		t.Errorf("got %s", r.Status)
	}
}

func TestServerNeedsARoot(t *testing.T) {
	if _, err := githttp.New(githttp.Config{}); err == nil {
		t.Error("serves the working directory, or what?")
	}
}

// poll asks for the refs of a repository, signed if sign is not nil.
func poll(t *testing.T, client *http.Client, url string, sign func(*http.Request)) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/info/refs?service=git-upload-pack", nil)
	if err != nil {
		t.Fatal(err)
	}
	if sign != nil {
		sign(request)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := githttp.Git(dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
