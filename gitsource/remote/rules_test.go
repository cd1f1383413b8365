package remote

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
)

// newKey returns a private key in the format of OpenSSH, encrypted if the passphrase is not empty.
func newKey(t *testing.T, seed byte, passphrase string) (ssh.Signer, string) {
	t.Helper()
	private := ed25519.NewKeyFromSeed(slices.Repeat([]byte{seed}, ed25519.SeedSize))
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	var block *pem.Block
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(private, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return signer, string(pem.EncodeToMemory(block))
}

func TestSSHKeysMayBeEncrypted(t *testing.T) {
	want, plain := newKey(t, 1, "")
	_, encrypted := newKey(t, 1, "open sesame")
	for name, test := range map[string]struct {
		key, passphrase string
		named           bool // the configuration names a passphrase
		want            string
	}{
		"plain":                  {plain, "", false, ""},
		"plain, with passphrase": {plain, "open sesame", true, ""},
		"encrypted":              {encrypted, "open sesame", true, ""},
		"no passphrase named":    {encrypted, "", false, "read SSH key: it is encrypted, and neither source.sshPassphraseFile nor source.sshPassphraseEnv is set"},
		"wrong passphrase":       {encrypted, "sesame", true, "SSH key: "},
		"missing passphrase":     {encrypted, "", true, "SSH passphrase: "},
		"no key":                 {"not a key", "", false, "SSH key: "},
		"missing key":            {"", "", false, "SSH key: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := SSH{Key: SecretSource{Env: "KEY"}}
			if test.named {
				s.Passphrase = SecretSource{Env: "PASSPHRASE"}
			}
			got, err := s.signer(func(name string) string {
				return map[string]string{"KEY": test.key, "PASSPHRASE": test.passphrase}[name]
			})
			switch {
			case test.want == "" && (err != nil || string(got.PublicKey().Marshal()) != string(want.PublicKey().Marshal())):
				t.Errorf("%v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			case err != nil && test.passphrase != "" && strings.Contains(err.Error(), test.passphrase+" "):
				t.Errorf("the error has the passphrase: %v", err)
			}
		})
	}
}

// An unknown or changed host key is refused, and the error has the fingerprint to compare.
func TestHostKeysAreVerified(t *testing.T) {
	known, _ := newKey(t, 1, "")
	other, _ := newKey(t, 2, "")
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, []byte(knownhosts.Line([]string{"git.example.com"}, known.PublicKey())+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, clientKey := newKey(t, 3, "")
	where, err := ParseLocation("ssh://git@git.example.com/hub.git")
	if err != nil {
		t.Fatal(err)
	}
	r := &sshRemote{where: where, cfg: Config{
		Auth:   Auth{SSH: SSH{Key: SecretSource{Env: "KEY"}, KnownHosts: file}},
		Getenv: func(string) string { return clientKey },
	}}
	config, err := r.clientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if config.User != "git" || r.address() != "git.example.com:22" {
		t.Errorf("user %q at %s", config.User, r.address())
	}
	shows := " ssh-ed25519 " + ssh.FingerprintSHA256(other.PublicKey())
	for name, test := range map[string]struct {
		host string
		key  ssh.Signer
		want string
	}{
		"the known key":   {"git.example.com:22", known, ""},
		"another key":     {"git.example.com:22", other, "host key of git.example.com:22 is not the one in " + file + ": it was replaced, or somebody else answers; it shows" + shows},
		"an unknown host": {"other.example.com:22", other, "host key of other.example.com:22 is not in " + file + ": it shows" + shows + "; add it if that is what its owner publishes"},
	} {
		t.Run(name, func(t *testing.T) {
			err := config.HostKeyCallback(test.host, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 22}, test.key.PublicKey())
			if got := errorText(err); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	if got := errorText(explainHostKey(io.EOF, "h", file, known.PublicKey())); got != "host key of h: EOF" {
		t.Errorf("another error: %s", got)
	}
	r.cfg.Auth.SSH.KnownHosts = file + ".missing"
	if _, err := r.clientConfig(); err == nil || !strings.HasPrefix(err.Error(), "read known hosts: ") {
		t.Errorf("without a file of known hosts: %v", err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Of the error output of the server, maxCapture bytes are quoted, on one line.
func TestTheErrorOutputOfTheServerIsQuoted(t *testing.T) {
	for name, test := range map[string]struct {
		writes []string
		want   string
	}{
		"nothing":       {nil, "EOF"},
		"white space":   {[]string{" \n"}, "EOF"},
		"several lines": {[]string{"ERROR: no such\n", "repository\n"}, `server says "ERROR: no such repository": EOF`},
		"too much":      {[]string{strings.Repeat("a", maxCapture-1), "bc", "d"}, `server says "` + strings.Repeat("a", maxCapture-1) + `b": EOF`},
	} {
		t.Run(name, func(t *testing.T) {
			var c capture
			for _, text := range test.writes {
				if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
					t.Fatalf("wrote %d, %v", n, err)
				}
			}
			err := c.explain(io.EOF)
			if err.Error() != test.want || !errors.Is(err, io.EOF) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// An error of a push that says that the credentials may only read gets advice; others do not.
func TestRefusedPushesGetAdvice(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		advice bool
	}{
		"401":                 {&HTTPError{Status: http.StatusUnauthorized}, true},
		"403":                 {&HTTPError{Status: http.StatusForbidden}, true},
		"404":                 {&HTTPError{Status: http.StatusNotFound}, false},
		"500":                 {&HTTPError{Status: http.StatusInternalServerError}, false},
		"authorization":       {transport.ErrAuthorizationFailed, true},
		"authentication":      {transport.ErrAuthenticationRequired, true},
		"a read-only SSH key": {errClosedBySSH, true},
		"a conflict":          {errors.New("fetch first"), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := ExplainRefusal(test.err)
			if !errors.Is(got, test.err) || strings.Contains(got.Error(), "they must be allowed to write") != test.advice {
				t.Errorf("%v", got)
			}
		})
	}
}

// A request asks for the whole history, and for no progress if the server can omit it.
func TestFetchRequests(t *testing.T) {
	want, have := plumbing.NewHash(strings.Repeat("a", 40)), plumbing.NewHash(strings.Repeat("b", 40))
	for name, test := range map[string]struct {
		server   []capability.Capability
		sideband capability.Capability
		quiet    bool
	}{
		"an old server":   {nil, "", false},
		"with a sideband": {[]capability.Capability{capability.Sideband}, capability.Sideband, false},
		"a usual server":  {[]capability.Capability{capability.Sideband, capability.Sideband64k, capability.NoProgress}, capability.Sideband64k, true},
	} {
		t.Run(name, func(t *testing.T) {
			refs := packp.NewAdvRefs()
			for _, c := range test.server {
				if err := refs.Capabilities.Set(c); err != nil {
					t.Fatal(err)
				}
			}
			req, err := request(refs, FetchRequest{Wants: []plumbing.Hash{want}, Haves: []plumbing.Hash{have}})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(req.Wants, []plumbing.Hash{want}) || !slices.Equal(req.Haves, []plumbing.Hash{have}) || !req.Depth.IsZero() {
				t.Errorf("wants %v, haves %v, depth %v", req.Wants, req.Haves, req.Depth)
			}
			for _, c := range []capability.Capability{capability.Sideband, capability.Sideband64k} {
				if req.Capabilities.Supports(c) != (c == test.sideband) {
					t.Errorf("%s requested: %t", c, req.Capabilities.Supports(c))
				}
			}
			if req.Capabilities.Supports(capability.NoProgress) != test.quiet {
				t.Errorf("no progress: %t", !test.quiet)
			}
			source := strings.NewReader("PACK")
			if plain := demultiplex(req, source) == io.Reader(source); plain != (test.sideband == "") {
				t.Errorf("the response is read as it is: %t", plain)
			}
		})
	}
}

// What the server says at the end of a pack that breaks off is the error.
func TestAPackThatBreaksOffHasTheFirstError(t *testing.T) {
	m := newMeter(Limits{})
	p := &wirePack{Reader: io.MultiReader(strings.NewReader("PA"), brokenReader{}), meter: m}
	cause := m.fail(errors.New("connection reset"))
	_ = m.fail(errors.New("a later one"))
	if text, err := io.ReadAll(p); string(text) != "PA" || !errors.Is(err, cause) {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := io.ReadAll(&wirePack{Reader: strings.NewReader("PACK"), meter: m}); string(text) != "PACK" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestShownAddressesHaveNoCredentials(t *testing.T) {
	for address, want := range map[string]string{
		"https://git.example.com/hub.git":      "https://git.example.com/hub.git",
		"https://u:canary@git.example.com/hub": "",
		"git@git.example.com:hub.git":          "ssh://git@git.example.com/hub.git",
		"ftp://git.example.com/hub.git":        "",
		"":                                     "",
	} {
		if got := Shown(address); got != want {
			t.Errorf("%s is shown as %q, want %q", address, got, want)
		}
	}
}
