package giteaserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/gitfleet/gitfleet/test/checkout"
	"github.com/gitfleet/gitfleet/test/process"
)

// An Instance is a running Gitea.
type Instance struct {
	*process.Process
	// URL is the base URL.
	URL string
	// Token is a token of User with all permissions for repositories and issues. Client uses
	// it.
	Token  string
	Client *gitea.Client
	// Log is the path of its log file.
	Log string

	run func(args ...string) (string, error)
}

const settings = `APP_NAME = Gitea
RUN_MODE = prod
WORK_PATH = %[2]s
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
STATIC_ROOT_PATH = %[1]s
APP_DATA_PATH = %[2]s/data
HTTP_ADDR = %[3]s
HTTP_PORT = %[4]s
ROOT_URL = http://%[3]s:%[4]s/
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
LEVEL = Info
`

// Launch runs Gitea with all its files in a directory, and returns once it is ready. User may
// sign in with the password. If the directory has the files of an earlier Gitea, that one is
// started again.
func Launch(ctx context.Context, dir, address, password string) (*Instance, error) {
	program, static, err := checkout.Gitea(ctx)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(filepath.Join(dir, "gitea.db"))
	fresh := errors.Is(err, fs.ErrNotExist)
	config := filepath.Join(dir, "app.ini")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(config, fmt.Appendf(nil, settings, static, dir, host, port), 0o600)); err != nil {
		return nil, err
	}
	i := &Instance{URL: "http://" + address, Log: filepath.Join(dir, "gitea.log")}
	i.run = func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, program, append([]string{"--config", config}, args...)...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("gitea %s: %w\n%s", strings.Join(args[:min(len(args), 3)], " "), err, out)
		}
		return string(out), nil
	}
	if _, err := i.run("migrate"); err != nil {
		return nil, err
	}
	if fresh {
		if err := i.createUser(User, password, "--admin"); err != nil {
			return nil, err
		}
	}
	if i.Token, i.Client, err = i.authorize(User, allScopes); err != nil {
		return nil, err
	}
	log, err := os.Create(i.Log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if i.Process, err = process.Start(log, program, "--config", config, "web"); err != nil {
		return nil, err
	}
	if err := i.await(ctx); err != nil {
		return nil, errors.Join(err, i.Stop())
	}
	return i, nil
}

// createUser creates a user.
func (i *Instance) createUser(name, password string, flags ...string) error {
	_, err := i.run(append([]string{
		"admin", "user", "create", "--username", name, "--password", password, "--email", name + "@example.com", "--must-change-password=false",
	}, flags...)...)
	return err
}

// allScopes are those that a token for gitfleet, or of people, needs.
const allScopes = "write:repository,write:issue,write:user"

var tokenIn = regexp.MustCompile(`(?m)^[0-9a-f]{40}$`)

// authorize creates a token of a user with some scopes, and a client that uses it.
func (i *Instance) authorize(user, scopes string) (string, *gitea.Client, error) {
	out, err := i.run("admin", "user", "generate-access-token", "--username", user, "--raw",
		"--token-name", fmt.Sprint("at ", time.Now().UnixNano()), "--scopes", scopes)
	if err != nil {
		return "", nil, err
	}
	token := tokenIn.FindString(out) // its log may come before and after the token
	if token == "" {
		return "", nil, errors.New("gitea made no token")
	}
	client, err := gitea.NewClient(i.URL, gitea.SetToken(token), gitea.SetGiteaVersion(""))
	return token, client, err
}

// await waits until Gitea is ready.
func (i *Instance) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.URL+"/api/healthz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(request)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-i.Ended():
			return fmt.Errorf("the Gitea ended: %w", i.Err())
		case <-ctx.Done():
			return fmt.Errorf("the Gitea does not answer: %w", errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
