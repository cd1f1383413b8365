package gitsource

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/gitrepo"
)

func writeTemp(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// A private CA is trusted while the CA bundle contains it. Changes of the bundle need no
// restart.
func TestAPrivateAuthorityIsTrusted(t *testing.T) {
	s := githttp.Serve(t, githttp.Config{TLS: true})
	repo := s.Repo(t, "hub.git")
	first := repo.Commit(t, "main", map[string]string{"a": "1"})
	other := githttp.Serve(t, githttp.Config{TLS: true})

	cfg := config(t, s.URL("hub.git"))
	cfg.AllowHTTP = false
	t.Run("unknown", func(t *testing.T) { wantError(t, start(t, cfg).poll(), "certificate") })

	cfg.Auth.CABundle = writeTemp(t, "ca.pem", string(other.CA()))
	r := start(t, cfg)
	wantError(t, r.poll(), "certificate")
	bundle := append(slices.Clone(other.CA()), s.CA()...)
	if err := os.WriteFile(cfg.Auth.CABundle, bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.again(); err != nil {
		t.Fatal(err)
	}
	r.wantHead(first)
	for content, says := range map[string]string{
		"nothing": "holds no certificate",
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})): "holds no certificate",
	} {
		if err := os.WriteFile(cfg.Auth.CABundle, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		wantError(t, r.again(), says, cfg.Auth.CABundle)
	}
}

// Every kind of credential is sent as the forges expect it, and read again at each poll. No log
// or error contains it.
func TestCredentialsAreRotated(t *testing.T) {
	const canary, replaced = "canary-one", "canary-two"
	tests := map[string]struct {
		auth func(secret remote.SecretSource) remote.Auth
		want func(secret string) string
	}{
		"token":          {func(s remote.SecretSource) remote.Auth { return remote.Auth{Token: s} }, func(s string) string { return basicAuth("git", s) }},
		"token as ada":   {func(s remote.SecretSource) remote.Auth { return remote.Auth{Token: s, Username: "ada"} }, func(s string) string { return basicAuth("ada", s) }},
		"basic":          {func(s remote.SecretSource) remote.Auth { return remote.Auth{Password: s, Username: "ada"} }, func(s string) string { return basicAuth("ada", s) }},
		"bearer":         {func(s remote.SecretSource) remote.Auth { return remote.Auth{Bearer: s} }, func(s string) string { return "Bearer " + s }},
		"no credentials": {func(remote.SecretSource) remote.Auth { return remote.Auth{} }, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gitrepo.New(t)
			first := g.Commit("first", map[string]string{"a": "1"})
			s := serveGit(t, g)
			accepted := canary
			s.answer(func(w http.ResponseWriter, r *http.Request) bool {
				want := ""
				if test.want != nil {
					want = test.want(accepted)
				}
				if got := r.Header.Get("Authorization"); got != want {
					http.Error(w, "you sent "+got, http.StatusUnauthorized)
					return true
				}
				return false
			})
			var log bytes.Buffer
			path := writeTemp(t, "secret", canary+"\n")
			cfg := config(t, s.URL)
			cfg.Auth = test.auth(remote.SecretSource{File: path})
			cfg.Logger = slog.New(slog.NewJSONHandler(&log, nil))
			r := start(t, cfg)
			r.wantHead(first)
			errs := []error{r.poll()}
			if errs[0] != nil {
				t.Fatal(errs[0])
			}
			if test.want == nil {
				return
			}
			accepted = replaced
			errs = append(errs, r.again())
			wantError(t, errs[1], "401", "check the URL")
			if err := os.WriteFile(path, []byte(replaced), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := r.again(); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			errs = append(errs, r.again())
			wantError(t, errs[2], path)
			shown := fmt.Sprintf("%v %+v %#v %s %+v", errs, r.Status(), cfg, log.String(), r.cfg.Auth)
			for _, secret := range []string{canary, replaced, test.want(canary), strings.TrimPrefix(test.want(canary), "Basic ")} {
				if strings.Contains(shown, secret) {
					at := strings.Index(shown, secret)
					t.Errorf("%q is shown: %s", secret, shown[max(0, at-100):])
					break
				}
			}
		})
	}
}

// A redirect to another host is refused before any request is sent there.
func TestARedirectStaysOnTheHost(t *testing.T) {
	g := gitrepo.New(t)
	first := g.Commit("first", map[string]string{"a": "1"})
	s := serveGit(t, g)
	elsewhere := make(chan *http.Request, 10)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { elsewhere <- r }))
	t.Cleanup(other.Close)
	token := writeTemp(t, "token", "canary")
	for name, test := range map[string]struct {
		to   string
		says string
	}{
		"another port":    {other.URL + "/info/refs", "refused a redirect from"},
		"a query":         {other.URL + "/info/refs?token=canary-in-query", "refused a redirect from"},
		"same host":       {s.URL + "/moved/info/refs?service=git-upload-pack", ""},
		"another scheme":  {"file:///etc/passwd", "unsupported"},
		"not a directory": {s.URL + "/elsewhere?service=git-upload-pack", "redirect"},
	} {
		t.Run(name, func(t *testing.T) {
			s.answer(func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasPrefix(r.URL.Path, "/moved/") {
					r.URL.Path = strings.TrimPrefix(r.URL.Path, "/moved")
					return false
				}
				http.Redirect(w, r, test.to, http.StatusFound)
				return true
			})
			cfg := config(t, s.URL)
			cfg.Auth.Token = remote.SecretSource{File: token}
			r := start(t, cfg)
			err := r.poll()
			if test.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				r.wantHead(first)
				return
			}
			wantError(t, err, test.says)
			if shown := r.Status().Error; strings.Contains(shown, "canary") {
				t.Errorf("status shows %s", shown)
			}
		})
	}
	if len(elsewhere) > 0 {
		t.Errorf("the other host was asked %s with %v", (<-elsewhere).URL, (<-elsewhere).Header)
	}
}

// The client waits for as long as a rate-limited response asks.
func TestARateLimitIsRespected(t *testing.T) {
	for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusForbidden} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			g := gitrepo.New(t)
			first := g.Commit("first", map[string]string{"a": "1"})
			s := serveGit(t, g)
			s.answer(func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Retry-After", "1800")
				http.Error(w, "slow down", code)
				return true
			})
			cfg := config(t, s.URL).withDefaults()
			r := open(t, cfg)
			_, err := r.poll(t.Context())
			wantError(t, err, fmt.Sprint(code), "asks to wait 30m0s", "slow down")
			if got := requestedDelay(err); got != 30*time.Minute {
				t.Errorf("the server asked for %s", got)
			}
			s.answer(nobody)
			if c, err := r.poll(t.Context()); err != nil || c == nil || c.Hash.String() != first {
				t.Errorf("afterwards %v, %v", c, err)
			}
		})
	}
}

// The proxy in the environment is used. The library reads the environment once per process, so
// that the test runs itself in a new process.
func TestTheProxyOfTheEnvironmentIsUsed(t *testing.T) {
	if os.Getenv("GITSOURCE_TEST_PROXIED") != "" {
		cfg := config(t, "http://git.example.test/")
		start(t, cfg).next()
		return
	}
	g := gitrepo.New(t)
	g.Commit("first", map[string]string{"a": "1"})
	s := serveGit(t, g)
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 10)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		asked <- r.In.URL.String()
		r.SetURL(target)
	}})
	t.Cleanup(proxy.Close)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "GITSOURCE_TEST_PROXIED=1", "HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "NO_PROXY=", "no_proxy=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := <-asked; !strings.HasPrefix(got, "http://git.example.test/info/refs") {
		t.Errorf("the proxy was asked for %s", got)
	}
}

// basicAuth returns the header of Basic authentication.
func basicAuth(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}
