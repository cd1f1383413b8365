package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	"golang.org/x/net/proxy"
)

// An sshRemote is a remote that is accessed over SSH. The library's own transport reads the
// user's ssh_config, which could redirect the connection, and its reads can be neither
// cancelled nor limited.
type sshRemote struct {
	cfg   Config
	where Location
}

func (r *sshRemote) Close() {}

func (r *sshRemote) address() string {
	return net.JoinHostPort(strings.Trim(r.where.endpoint.Host, "[]"), strconv.Itoa(cmp.Or(r.where.endpoint.Port, 22)))
}

// Session connects, verifies the host key and starts git-upload-pack on the server. The session
// ends when ctx is done.
func (r *sshRemote) Session(ctx context.Context) (Session, error) {
	s, err := r.start(ctx, "git-upload-pack")
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (r *sshRemote) start(ctx context.Context, program string) (*sshSession, error) {
	config, err := r.clientConfig()
	if err != nil {
		return nil, err
	}
	conn, err := proxy.Dial(ctx, "tcp", r.address())
	if err != nil {
		return nil, err
	}
	m := newMeter(r.cfg.Limits)
	s := &sshSession{meter: m, conn: conn}
	s.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	if err := s.start(r.address(), config, command(program, r.where.endpoint.Path)); err != nil {
		return nil, errors.Join(s.explain(err), s.Close())
	}
	return s, nil
}

// clientConfig returns the configuration with the current key and known hosts.
func (r *sshRemote) clientConfig() (*ssh.ClientConfig, error) {
	signer, err := r.cfg.Auth.SSH.signer(r.cfg.Getenv)
	if err != nil {
		return nil, err
	}
	file := r.cfg.Auth.SSH.KnownHosts
	db, err := knownhosts.NewDB(file)
	if err != nil {
		return nil, fmt.Errorf("read known hosts: %w", err)
	}
	check := db.HostKeyCallback()
	return &ssh.ClientConfig{
		User:              r.where.endpoint.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyAlgorithms: db.HostKeyAlgorithms(r.address()),
		HostKeyCallback: func(host string, addr net.Addr, key ssh.PublicKey) error {
			return explainHostKey(check(host, addr, key), host, file, key)
		},
		Timeout: r.cfg.Limits.ListTime,
	}, nil
}

// explainHostKey adds advice to an error about a host key: what to compare, or what to change.
func explainHostKey(err error, host, file string, key ssh.PublicKey) error {
	switch {
	case err == nil:
		return nil
	case knownhosts.IsHostKeyChanged(err):
		return fmt.Errorf("host key of %s is not the one in %s: it was replaced, or somebody else answers; it shows %s %s",
			host, file, key.Type(), ssh.FingerprintSHA256(key))
	case knownhosts.IsHostUnknown(err):
		return fmt.Errorf("host key of %s is not in %s: it shows %s %s; add it if that is what its owner publishes",
			host, file, key.Type(), ssh.FingerprintSHA256(key))
	}
	return fmt.Errorf("host key of %s: %w", host, err)
}

func (s SSH) signer(getenv func(string) string) (ssh.Signer, error) {
	key, err := s.Key.Read(getenv)
	if err != nil {
		return nil, wrap("SSH key", err)
	}
	pem := []byte(key.value + "\n")
	signer, err := ssh.ParsePrivateKey(pem)
	var locked *ssh.PassphraseMissingError
	if !errors.As(err, &locked) {
		return signer, wrap("SSH key", err)
	}
	if s.Passphrase.IsZero() {
		return nil, errors.New("read SSH key: it is encrypted, and neither source.sshPassphraseFile nor source.sshPassphraseEnv is set")
	}
	passphrase, err := s.Passphrase.Read(getenv)
	if err != nil {
		return nil, wrap("SSH passphrase", err)
	}
	signer, err = ssh.ParsePrivateKeyWithPassphrase(pem, []byte(passphrase.value))
	return signer, wrap("SSH key", err)
}

// command returns the command for the server's shell. The path is quoted so that every shell,
// also git-shell, reads it unchanged.
func command(program, path string) string {
	if strings.HasPrefix(path, "/~") {
		path = path[1:] // the path is relative to a home directory on the server
	}
	quote := strings.NewReplacer("'", `'\''`, "!", `'\!'`)
	return program + " '" + quote.Replace(path) + "'"
}

// An sshSession is one run of a program on the server.
type sshSession struct {
	meter  *meter
	conn   net.Conn
	stop   func() bool
	client *ssh.Client
	run    *ssh.Session
	in     io.WriteCloser
	out    io.Reader
	stderr capture
	refs   *packp.AdvRefs
}

func (s *sshSession) start(address string, config *ssh.ClientConfig, command string) error {
	if err := s.conn.SetDeadline(time.Now().Add(config.Timeout)); err != nil {
		return err
	}
	c, channels, requests, err := ssh.NewClientConn(s.conn, address, config)
	if err != nil {
		return err
	}
	s.client = ssh.NewClient(c, channels, requests)
	if err := s.conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	if s.run, err = s.client.NewSession(); err != nil {
		return err
	}
	s.run.Stderr = &s.stderr
	if s.in, err = s.run.StdinPipe(); err != nil {
		return err
	}
	out, err := s.run.StdoutPipe()
	if err != nil {
		return err
	}
	s.out = metered{io.NopCloser(out), s.meter}
	return s.run.Start(command)
}

func (s *sshSession) List(ctx context.Context) (*packp.AdvRefs, error) {
	defer context.AfterFunc(ctx, func() { _ = s.conn.Close() })()
	refs := packp.NewAdvRefs()
	if err := refs.Decode(s.out); err != nil {
		if errors.Is(err, packp.ErrEmptyAdvRefs) {
			err = transport.ErrEmptyRemoteRepository
		}
		return nil, s.explain(errors.Join(err, ctx.Err()))
	}
	transport.FilterUnsupportedCapabilities(refs.Capabilities)
	s.refs = refs
	return refs, nil
}

func (s *sshSession) Fetch(_ context.Context, f FetchRequest) (io.ReadCloser, error) {
	s.meter.fetch()
	req, err := request(s.refs, f)
	if err != nil {
		return nil, err
	}
	if err := s.send(req); err != nil {
		return nil, s.explain(err)
	}
	res := packp.NewUploadPackResponse(req)
	if err := res.Decode(io.NopCloser(s.out)); err != nil {
		return nil, s.explain(err)
	}
	return &wirePack{demultiplex(req, res), res, s.meter}, nil
}

// send writes the request with all haves at once, since the library supports only one round of
// negotiation.
func (s *sshSession) send(req *packp.UploadPackRequest) error {
	if err := req.UploadRequest.Encode(s.in); err != nil {
		return err
	}
	if err := req.UploadHaves.Encode(s.in, true); err != nil {
		return err
	}
	if err := pktline.NewEncoder(s.in).EncodeString("done\n"); err != nil {
		return err
	}
	return s.in.Close()
}

// stderrTimeout is the maximum time to wait for the error output of a program that failed.
const stderrTimeout = time.Second

// explain adds the error output of the program to an error.
func (s *sshSession) explain(err error) error {
	err = s.meter.explain(err)
	if s.run != nil && s.conn.SetDeadline(time.Now().Add(stderrTimeout)) == nil {
		_ = s.run.Wait() // the error output says more than the exit status
	}
	return s.stderr.explain(err)
}

func (s *sshSession) Received() int64 { return s.meter.total() }

func (s *sshSession) Close() error {
	s.stop()
	if s.client != nil {
		_ = s.client.Close() // this also closes the connection
		return nil
	}
	_ = s.conn.Close() // the session has already failed
	return nil
}

// A capture is a writer that keeps the first maxCapture bytes.
type capture struct {
	mu   sync.Mutex
	text []byte
}

const maxCapture = 300

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, p[:min(len(p), maxCapture-len(c.text))]...)
	return len(p), nil
}

// explain adds the captured text to an error.
func (c *capture) explain(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if text := oneLine(string(c.text)); text != "" {
		return fmt.Errorf("server says %q: %w", text, err)
	}
	return err
}
