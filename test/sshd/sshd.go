// Package sshd runs an SSH server for tests of Git over SSH.
package sshd

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sync"
	"testing"
)

// A Server runs OpenSSH's sshd, one process per connection, with a host key and authorized keys
// of the test, for the current user.
type Server struct {
	Address, User string
	// Identity is the file of a private key that is authorized.
	Identity, KnownHosts string

	program, config, authorized string
}

// Serve starts a server that ends with the test. Without sshd the test fails; with -short it is
// skipped.
func Serve(t *testing.T) *Server {
	t.Helper()
	program, err := exec.LookPath("sshd")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/sshd")
	}
	if err != nil {
		const missing = "this test needs sshd: install the package openssh-server, or leave such tests out with -short"
		if testing.Short() {
			t.Skip(missing)
		}
		t.Fatal(missing)
	}
	if os.Getuid() == 0 { // where it wants to lock its children up
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &Server{
		User: me.Username, program: program, config: filepath.Join(dir, "sshd_config"), Identity: NewKey(t, filepath.Join(dir, "identity"), ""),
		authorized: filepath.Join(dir, "authorized"), KnownHosts: filepath.Join(dir, "known_hosts"),
	}
	host := NewKey(t, filepath.Join(dir, "host"), "")
	s.Allow(t, read(t, s.Identity+".pub"))
	write(t, s.config, fmt.Sprintf("HostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"+
		"PasswordAuthentication no\nKbdInteractiveAuthentication no\nPidFile none\nLogLevel ERROR\n", host, s.authorized))
	s.listen(t)
	name, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.KnownHosts, fmt.Sprintf("[%s]:%s %s", name, port, read(t, host+".pub")))
	return s
}

// Allow replaces the authorized_keys file by the given lines.
func (s *Server) Allow(t *testing.T, lines string) {
	t.Helper()
	write(t, s.authorized, lines)
}

// NewKey creates a key pair with the public key in path.pub, and returns path.
func NewKey(t *testing.T, path, passphrase string) string {
	t.Helper()
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", path).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	return path
}

// listen starts a server process for each connection, as inetd does.
func (s *Server) listen(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Address = l.Addr().String()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		running.Wait()
	})
}

func (s *Server) serve(conn net.Conn) {
	defer conn.Close()
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		return
	}
	defer file.Close()
	command := exec.Command(s.program, "-i", "-e", "-f", s.config)
	command.Stdin, command.Stdout = file, file
	command.Run() //nolint:errcheck // its verdict reaches the client
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
