package remote

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/sshd"
)

// A fakeGitHub issues tokens to clients that authenticate as the App.
type fakeGitHub struct {
	*httptest.Server
	t      *testing.T
	key    *rsa.PublicKey
	made   atomic.Int64
	lasts  atomic.Int64 // a time.Duration
	answer atomic.Pointer[http.HandlerFunc]
}

func (g *fakeGitHub) token() string { return fmt.Sprintf("canary-%d", g.made.Load()) }

func (g *fakeGitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if answer := g.answer.Load(); answer != nil {
		(*answer)(w, r)
		return
	}
	if err := g.check(r); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	g.made.Add(1)
	w.WriteHeader(http.StatusCreated)
	err := json.NewEncoder(w).Encode(map[string]string{
		"token":      g.token(),
		"expires_at": time.Now().Add(time.Duration(g.lasts.Load())).Format(time.RFC3339),
	})
	if err != nil {
		g.t.Error(err)
	}
}

// check verifies the JSON Web Token as GitHub documents it.
func (g *fakeGitHub) check(r *http.Request) error {
	if r.Method != http.MethodPost || r.URL.Path != "/api/v3/app/installations/42/access_tokens" {
		return fmt.Errorf("asked %s %s", r.Method, r.URL)
	}
	proof, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	parts := strings.Split(proof, ".")
	if len(parts) != 3 {
		return fmt.Errorf("proof has %d parts", len(parts))
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(g.key, crypto.SHA256, sum[:], signature); err != nil {
		return err
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return err
	}
	var claims struct {
		Iss      string
		Iat, Exp int64
	}
	if err := json.Unmarshal(body, &claims); err != nil {
		return err
	}
	now := time.Now().Unix()
	if claims.Iss != "Iv1.app" || claims.Iat > now || claims.Exp <= now || claims.Exp > now+600 {
		return fmt.Errorf("claims are %+v", claims)
	}
	return nil
}

func newGitHub(t *testing.T, pkcs8 bool) (*fakeGitHub, GitHubApp) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	if pkcs8 {
		block.Type = "PRIVATE KEY"
		if block.Bytes, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
			t.Fatal(err)
		}
	}
	g := &fakeGitHub{t: t, key: &key.PublicKey}
	g.lasts.Store(int64(time.Hour))
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g, GitHubApp{
		ID: "Iv1.app", Installation: 42, APIURL: g.URL + "/api/v3/",
		Key: SecretSource{File: pemFile(t, string(pem.EncodeToMemory(block)))},
	}
}

// onlyFor accepts only requests with the App's current token.
func onlyFor(hub *fakeGitHub) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		user, password, _ := r.BasicAuth()
		if user == "x-access-token" && password == hub.token() {
			return false
		}
		http.Error(w, "bad token "+password, http.StatusUnauthorized)
		return true
	}
}

// The token of a GitHub App is requested once, used while it is valid, and replaced when it
// expires or is refused.
func TestAGitHubAppGetsItsToken(t *testing.T) {
	for name, pkcs8 := range map[string]bool{"PKCS1": false, "PKCS8": true} {
		t.Run(name, func(t *testing.T) {
			hub, app := newGitHub(t, pkcs8)
			server := githttp.Serve(t, githttp.Config{})
			first := server.Repo(t, "hub.git").Commit(t, "main", map[string]string{"a": "1"})
			guard := onlyFor(hub)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !guard(w, r) {
					server.ServeHTTP(w, r)
				}
			}))
			t.Cleanup(s.Close)
			where, err := ParseLocation(s.URL + "/hub.git")
			if err != nil {
				t.Fatal(err)
			}
			r, err := New(Config{Auth: Auth{GitHubApp: app}, Limits: Limits{ListBytes: 1 << 20, FetchBytes: 1 << 20}}, where)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			list := func() error {
				s, err := r.Session(t.Context())
				if err != nil {
					return err
				}
				defer s.Close()
				refs, err := s.List(t.Context())
				if err == nil && refs.References["refs/heads/main"].String() != first {
					t.Errorf("the references are %v", refs.References)
				}
				return err
			}
			for _, step := range []struct {
				revoked bool
				made    int64
			}{{false, 1}, {true, 3}} {
				if step.revoked {
					hub.made.Add(1)
					if err := list(); err == nil || !strings.Contains(err.Error(), "401") {
						t.Errorf("with a token that was revoked: %v", err)
					}
				}
				for range 2 {
					if err := list(); err != nil || hub.made.Load() != step.made {
						t.Errorf("%d tokens made (%v), want %d", hub.made.Load(), err, step.made)
					}
				}
			}
		})
	}
}

// A token that is about to expire is replaced before it does.
func TestATokenAboutToEndIsReplaced(t *testing.T) {
	hub, app := newGitHub(t, false)
	for lasts, want := range map[time.Duration]int64{tokenMargin + time.Minute: 1, tokenMargin - time.Minute: 3} {
		hub.made.Store(0)
		hub.lasts.Store(int64(lasts))
		tokens := &appTokens{app: app}
		for range 3 {
			token, err := tokens.get(t.Context(), http.DefaultTransport)
			if err != nil || token.Reveal() != hub.token() {
				t.Errorf("token %q: %v", token.Reveal(), err)
			}
		}
		if got := hub.made.Load(); got != want {
			t.Errorf("%d tokens made that last %s, want %d", got, lasts, want)
		}
	}
}

// If GitHub refuses the request or its response is invalid, the error contains neither the key
// nor a token.
func TestABadAnswerOfGitHubIsAnError(t *testing.T) {
	hub, app := newGitHub(t, false)
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	elsewhere := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.example.test/?canary", http.StatusTemporaryRedirect)
	}
	tests := map[string]struct {
		answer http.HandlerFunc
		key    string
		says   string
	}{
		"refused":     {answer: answer(404, "no"), says: "server answered 404"},
		"limited":     {answer: answer(429, "no"), says: "asks to wait 1m0s"},
		"not JSON":    {answer: answer(201, "canary"), says: "has no token"},
		"no expiry":   {answer: answer(201, `{"token":"canary"}`), says: "has no token"},
		"redirected":  {answer: elsewhere, says: "refused a redirect"},
		"no key file": {key: "/absent/app.pem", says: "/absent/app.pem"},
		"not a key":   {key: pemFile(t, "canary"), says: "not an RSA key in PEM form"},
		"another key": {key: sshd.NewKey(t, filepath.Join(t.TempDir(), "id"), ""), says: "not an RSA key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			hub.answer.Store(&test.answer)
			app := app
			if test.key != "" {
				app.Key.File = test.key
			}
			_, err := (&appTokens{app: app}).get(t.Context(), http.DefaultTransport)
			if err == nil || !strings.Contains(err.Error(), "GitHub App token") || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("%v, want %q", err, test.says)
			}
			if strings.Contains(Redact(err.Error()), "canary") {
				t.Errorf("error %q holds a secret", err)
			}
		})
	}
}

// pemFile writes the key of an App to a file.
func pemFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.pem")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
