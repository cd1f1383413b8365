package gitsource

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/test/gitrepo"
	"github.com/gitfleet/gitfleet/test/sshd"
)

// serveSSH serves repositories as Git servers do.
func serveSSH(t *testing.T) *sshServer {
	t.Helper()
	return &sshServer{sshd.Serve(t)}
}

type sshServer struct{ *sshd.Server }

func (s *sshServer) config(t *testing.T, dir string) Config {
	t.Helper()
	cfg := config(t, "ssh://"+s.User+"@"+s.Address+dir)
	cfg.AllowHTTP, cfg.AllowFile = false, false
	cfg.Auth.SSH = remote.SSH{Key: remote.SecretSource{File: s.Identity}, KnownHosts: s.KnownHosts}
	return cfg
}

func TestACommitArrivesOverSSH(t *testing.T) {
	s := serveSSH(t)
	for name, passphrase := range map[string]string{"plain key": "", "key with passphrase": "open sesame"} {
		t.Run(name, func(t *testing.T) {
			g := gitrepo.New(t)
			odd := g.Dir + " it's odd!"
			if err := os.Rename(g.Dir, odd); err != nil {
				t.Fatal(err)
			}
			g.Dir = odd
			first := g.Commit("first", map[string]string{"a": "1", "dir/b": strings.Repeat("b", 100_000)})
			cfg := s.config(t, strings.NewReplacer(" ", "%20", "'", "%27").Replace(g.Dir))
			if passphrase != "" {
				cfg.Auth.SSH.Key.File = sshd.NewKey(t, filepath.Join(t.TempDir(), "locked"), passphrase)
				cfg.Auth.SSH.Passphrase.Env = "PASSPHRASE"
				cfg.Getenv = func(string) string { return passphrase }
				s.Allow(t, read(t, s.Identity+".pub")+read(t, cfg.Auth.SSH.Key.File+".pub"))
			}
			r := start(t, cfg)
			r.wantHead(first)
			if err := r.poll(); err != nil {
				t.Fatal(err)
			}
			if passphrase != "" {
				return
			}
			second := g.Commit("second", map[string]string{"a": "2"})
			if err := r.again(); err != nil {
				t.Fatal(err)
			}
			r.wantHead(second)
			if got := contents(t, r.Repo, second); got["a"] != "2" || len(got) != 2 {
				t.Errorf("files are %.100v", got)
			}
			base := g.Git("rev-parse", "HEAD~1")
			g.Git("reset", "-q", "--hard", base)
			third := g.Commit("rewritten", map[string]string{"c": "3"})
			if err := r.again(); err != nil {
				t.Fatal(err)
			}
			r.wantHead(third)
		})
	}
}

// An unknown server is sent nothing, and a client with a wrong key gets nothing. Both errors
// say what to check.
func TestSSHTrustsOnlyWhomItKnows(t *testing.T) {
	s := serveSSH(t)
	g := gitrepo.New(t)
	g.Commit("first", map[string]string{"a": "1"})
	wrong := sshd.NewKey(t, filepath.Join(t.TempDir(), "wrong"), "")
	locked := sshd.NewKey(t, filepath.Join(t.TempDir(), "locked"), "open sesame")
	host, _, _ := strings.Cut(read(t, s.KnownHosts), " ")
	tests := map[string]struct {
		change func(c *Config)
		says   []string
	}{
		"another host key": {
			func(c *Config) { c.Auth.SSH.KnownHosts = writeTemp(t, "changed", host+" "+read(t, wrong+".pub")) },
			[]string{"host key of", "is not the one in", "somebody else answers", "SHA256:"},
		},
		"unknown host": {
			func(c *Config) { c.Auth.SSH.KnownHosts = writeTemp(t, "empty", "") },
			[]string{"host key of", "is not in", "add it if that is what its owner publishes"},
		},
		"no known hosts": {
			func(c *Config) { c.Auth.SSH.KnownHosts += "-absent" },
			[]string{"read known hosts"},
		},
		"not authorized": {
			func(c *Config) { c.Auth.SSH.Key.File = wrong },
			[]string{"unable to authenticate"},
		},
		"no passphrase": {
			func(c *Config) { c.Auth.SSH.Key.File = locked },
			[]string{"neither source.sshPassphraseFile nor source.sshPassphraseEnv is set"},
		},
		"wrong passphrase": {
			func(c *Config) {
				c.Auth.SSH.Key.File = locked
				c.Auth.SSH.Passphrase.Env, c.Getenv = "P", func(string) string { return "canary" }
			},
			[]string{"read SSH key"},
		},
		"not a key": {
			func(c *Config) { c.Auth.SSH.Key.File = writeTemp(t, "nokey", "canary") },
			[]string{"read SSH key"},
		},
		"no such repository": {
			func(c *Config) { c.URL += "-absent" },
			[]string{"server says", "does not appear to be a git repository"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := s.config(t, g.Dir)
			test.change(&cfg)
			r := start(t, cfg)
			err := r.poll()
			wantError(t, err, test.says...)
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("error %q holds a secret", err)
			}
			r.wantNoHead()
		})
	}
}

// A server that does not respond is given up after the time limit for listing.
func TestASilentServerIsGivenUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	held := make(chan net.Conn, 10)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			held <- conn
		}
	}()
	identity := sshd.NewKey(t, filepath.Join(t.TempDir(), "identity"), "")
	for _, scheme := range []string{"http", "ssh"} {
		t.Run(scheme, func(t *testing.T) {
			cfg := config(t, scheme+"://"+l.Addr().String()+"/hub.git")
			if scheme == "ssh" {
				cfg.Auth.SSH = remote.SSH{Key: remote.SecretSource{File: identity}, KnownHosts: writeTemp(t, "known", "")}
			}
			cfg.Limits.ListTime = 50 * time.Millisecond
			wantError(t, start(t, cfg).poll(), "")
			conn := <-held
			if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Errorf("the connection was not given up: %v", err)
			}
			_ = conn.Close()
		})
	}
}
