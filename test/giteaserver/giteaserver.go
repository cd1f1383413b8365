// Package giteaserver runs a Gitea: built from its Go module, with its own database and one
// user. Tests use [Start], other programs [Launch].
package giteaserver

import (
	"encoding/base64"
	"os"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/gitfleet/gitfleet/test/process"
)

// User owns every repository.
const User = "fleet"

// Server is a running Gitea.
type Server struct {
	// URL is its base URL.
	URL string
	// Token is a token of User with all permissions for repositories and issues.
	Token string
	// Client authenticates as User.
	Client *gitea.Client

	t        testing.TB
	instance *Instance
}

// Start runs a Gitea until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	i, err := Launch(t.Context(), t.TempDir(), address, "of-a-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Stop(); err != nil {
			t.Log(err) // it may exit with a status that reports the signal
		}
		if said, _ := os.ReadFile(i.Log); t.Failed() {
			t.Logf("log of Gitea:\n%s", said[max(0, len(said)-4<<10):])
		}
	})
	return &Server{URL: i.URL, Token: i.Token, Client: i.Client, t: t, instance: i}
}

// Log returns Gitea's log so far.
func (s *Server) Log() string {
	s.t.Helper()
	text, err := os.ReadFile(s.instance.Log)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// AddUser creates another user without any special permission, and returns a client that
// authenticates as that user.
func (s *Server) AddUser(name string) *gitea.Client {
	s.t.Helper()
	err := s.instance.createUser(name, "of-a-test")
	if err != nil {
		s.t.Fatal(err)
	}
	_, client, err := s.instance.authorize(name, allScopes)
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// TokenFor returns a new token of a user that has only some scopes.
func (s *Server) TokenFor(user, scopes string) string {
	s.t.Helper()
	token, _, err := s.instance.authorize(user, scopes)
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// Repository creates a repository of User with files on its branch main, and returns its name
// as OWNER/NAME.
func (s *Server) Repository(name string, files map[string]string) string {
	s.t.Helper()
	if _, _, err := s.Client.CreateRepo(gitea.CreateRepoOption{Name: name, AutoInit: true, DefaultBranch: "main"}); err != nil {
		s.t.Fatal(err)
	}
	for path, text := range files {
		_, _, err := s.Client.CreateFile(User, name, path, gitea.CreateFileOptions{
			FileOptions: gitea.FileOptions{Message: "add " + path, BranchName: "main"}, Content: base64.StdEncoding.EncodeToString([]byte(text)),
		})
		if err != nil {
			s.t.Fatalf("create %s: %v", path, err)
		}
	}
	return User + "/" + name
}

// Merge merges a pull request.
func (s *Server) Merge(name string, number int64) {
	s.t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) { // Gitea checks for conflicts first
		merged, _, failed := s.Client.MergePullRequest(User, name, number, gitea.MergePullRequestOption{Style: gitea.MergeStyleMerge})
		if merged {
			return
		}
		err = failed
	}
	s.t.Fatalf("pull request %d is not merged: %v", number, err)
}

// Close closes a pull request without merging it.
func (s *Server) Close(name string, number int64) {
	s.t.Helper()
	closed := gitea.StateClosed
	if _, _, err := s.Client.EditPullRequest(User, name, number, gitea.EditPullRequestOption{State: &closed}); err != nil {
		s.t.Fatal(err)
	}
}
