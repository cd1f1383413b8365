package e2e

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

// An sshServer is OpenSSH's own, with a host key and one authorized key of the
// test, for the user who runs it.
type sshServer struct {
	address, user       string
	identity, known     string // files: the private key, and known_hosts
	program, configFile string
}

// serveSSH fails without sshd: a test that nobody runs proves nothing.
func serveSSH(t *testing.T) *sshServer {
	t.Helper()
	program, err := exec.LookPath("sshd")
	if err != nil {
		program = "/usr/sbin/sshd"
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatal("this test needs sshd: install the package openssh-server, or leave the tests of clusters out with -short")
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
	s := &sshServer{
		user: me.Username, program: program, configFile: filepath.Join(dir, "sshd_config"),
		identity: newSSHKey(t, filepath.Join(dir, "identity")), known: filepath.Join(dir, "known_hosts"),
	}
	host := newSSHKey(t, filepath.Join(dir, "host"))
	write(t, s.configFile, fmt.Sprintf("HostKey %s\nAuthorizedKeysFile %s.pub\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"+
		"PasswordAuthentication no\nKbdInteractiveAuthentication no\nPidFile none\nLogLevel ERROR\n", host, s.identity))
	s.listen(t)
	name, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.known, fmt.Sprintf("[%s]:%s %s", name, port, read(t, host+".pub")))
	return s
}

// listen hands each connection to a server process of its own, as inetd does.
func (s *sshServer) listen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
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
		l.Close()
		running.Wait()
	})
}

func (s *sshServer) serve(conn net.Conn) {
	defer conn.Close()
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		return
	}
	defer file.Close()
	command := exec.Command(s.program, "-i", "-e", "-f", s.configFile)
	command.Stdin, command.Stdout = file, file
	command.Run() // its verdict reaches the client
}

func newSSHKey(t *testing.T, path string) string {
	t.Helper()
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	return path
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
