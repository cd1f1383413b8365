// Package giteaserver runs a Gitea for tests: built from its Go module, with a database
// of its own and one user.
package giteaserver

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/gitfleet/gitfleet/test/checkout"
	"github.com/gitfleet/gitfleet/test/process"
)

// User is who owns every repository.
const User = "fleet"

// Server is a running Gitea.
type Server struct {
	// URL is where it answers.
	URL string
	// Token is one of User that may do everything with repositories and issues.
	Token string
	// Client asks it in the name of User.
	Client *gitea.Client

	t   testing.TB
	run func(args ...string) (string, error)
}

const settings = `APP_NAME = Gitea
RUN_MODE = prod
[server]
STATIC_ROOT_PATH = %[1]s
APP_DATA_PATH = %[2]s/data
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[3]s
ROOT_URL = http://127.0.0.1:%[3]s/
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = %[2]s/gitea.db
[repository]
ROOT = %[2]s/repositories
DEFAULT_BRANCH = main
[security]
INSTALL_LOCK = true
SECRET_KEY = of-tests-only
[service]
DISABLE_REGISTRATION = true
[cron]
ENABLED = false
[mailer]
ENABLED = false
[log]
LEVEL = Warn
`

// Start runs a Gitea until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	program, static, err := checkout.Gitea(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "app.ini")
	_, port, _ := strings.Cut(address, ":")
	if err := os.WriteFile(config, fmt.Appendf(nil, settings, static, dir, port), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GITEA_WORK_DIR", dir)
	t.Setenv("GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT", "true")
	s := &Server{URL: "http://" + address, t: t}
	s.run = func(args ...string) (string, error) {
		out, err := exec.Command(program, append([]string{"--config", config}, args...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := s.run("migrate"); err != nil {
		t.Fatalf("gitea migrate: %v\n%s", err, out)
	}
	s.Token = s.createUser(User, "--admin")

	log, err := os.Create(filepath.Join(dir, "gitea.log"))
	if err != nil {
		t.Fatal(err)
	}
	running, err := process.Start(log, program, "--config", config, "web")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Log(err) // it may end with a status that says that it was asked to
		}
		if said, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("log of Gitea:\n%s", said[max(0, len(said)-4<<10):])
		}
	})
	s.await()
	s.Client = s.client(s.Token)
	return s
}

// AddUser makes another user, who may do nothing but what everybody may, and returns a
// client that asks in the name of that user.
func (s *Server) AddUser(name string) *gitea.Client {
	s.t.Helper()
	return s.client(s.createUser(name))
}

// createUser makes a user and returns a token of that user.
func (s *Server) createUser(name string, flags ...string) (token string) {
	s.t.Helper()
	out, err := s.run(append([]string{
		"admin", "user", "create", "--username", name, "--random-password", "--email", name + "@example.com",
		"--must-change-password=false", "--access-token", "--access-token-scopes", "write:repository,write:issue,write:user",
	}, flags...)...)
	if err != nil {
		s.t.Fatalf("gitea admin user create: %v\n%s", err, out)
	}
	fields := strings.Fields(out[strings.LastIndex(out, "Access token was successfully created..."):])
	return fields[len(fields)-1]
}

func (s *Server) client(token string) *gitea.Client {
	s.t.Helper()
	c, err := gitea.NewClient(s.URL, gitea.SetToken(token), gitea.SetGiteaVersion(""))
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *Server) await() {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(s.URL + "/api/healthz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("Gitea does not answer: %v", err)
		}
	}
}

// Repository makes a repository of User with files on its branch main, and returns its
// name as OWNER/NAME.
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
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) { // Gitea first checks for conflicts
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
