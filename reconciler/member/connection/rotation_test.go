package connection

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/test/apiserver"
)

// cluster is an API server of the cluster with this UID that accepts one token.
func cluster(t *testing.T, token, uid string) *rest.Config {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if anonymous := r.Header.Get("Authorization") == ""; anonymous && r.URL.Path == "/readyz" {
			w.Write([]byte("ok")) //nolint:errcheck // the test would see it
			return
		} else if anonymous {
			apiserver.Refuse(w, http.StatusForbidden, `User "system:anonymous" cannot get resource "namespaces"`)
			return
		}
		if r.Header.Get("Authorization") != "Bearer "+token {
			apiserver.Refuse(w, http.StatusUnauthorized, "Unauthorized")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: types.UID(uid)}}) //nolint:errcheck // the test would see it
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	cfg := apiserver.Config(server)
	cfg.BearerToken = token
	return cfg
}

// Replaced credentials are used if they work and belong to the same cluster. Otherwise they are
// not used, and the reason is reported.
func TestReplacedCredentialsAreUsed(t *testing.T) {
	const uid = "one"
	other := func(change func(*rest.Config)) func(*testing.T, *rest.Config) *rest.Config {
		return func(_ *testing.T, cfg *rest.Config) *rest.Config {
			cfg = rest.CopyConfig(cfg)
			change(cfg)
			return cfg
		}
	}
	tests := map[string]struct {
		next    func(*testing.T, *rest.Config) *rest.Config
		renewed bool
		another bool
		kept    string // part of the reason why they are not used
	}{
		"nothing new":       {next: other(func(*rest.Config) {})},
		"another address":   {next: func(t *testing.T, _ *rest.Config) *rest.Config { return cluster(t, "second", uid) }, renewed: true},
		"another cluster":   {next: func(t *testing.T, _ *rest.Config) *rest.Config { return cluster(t, "second", "two") }, another: true},
		"another name":      {next: other(func(cfg *rest.Config) { cfg.ServerName = "example.com" }), renewed: true},
		"the wrong name":    {next: other(func(cfg *rest.Config) { cfg.ServerName = "server.invalid" }), kept: "certificate"},
		"the wrong token":   {next: other(func(cfg *rest.Config) { cfg.BearerToken = "wrong" }), kept: "Unauthorized"},
		"nobody's token":    {next: other(func(cfg *rest.Config) { cfg.BearerToken = "" }), kept: "system:anonymous"},
		"half a CA":         {next: other(func(cfg *rest.Config) { cfg.CAData = cfg.CAData[:len(cfg.CAData)/2] }), kept: "root certificates"},
		"a CA that is gone": {next: other(func(cfg *rest.Config) { cfg.CAData, cfg.CAFile = nil, "/nowhere/ca.crt" }), kept: "/nowhere/ca.crt"},
		"half a pair": {next: other(func(cfg *rest.Config) {
			cfg.CertData, cfg.KeyData = cfg.CAData, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("no key")})
		}), kept: "key"},
		"a server that is not there": {next: other(func(cfg *rest.Config) { cfg.Host = "https://127.0.0.1:1" }), kept: "connection refused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := cluster(t, "first", uid)
			var current *rest.Config
			connect := func(context.Context) (*rest.Config, error) { return current, nil }
			c, err := New(Config{Cluster: "east", Connect: connect, Timeout: time.Minute, Metrics: new(NewMetrics()), Log: slog.New(slog.NewTextHandler(t.Output(), nil))}, cfg)
			if err != nil {
				t.Fatal(err)
			}
			current = test.next(t, cfg)
			before := c.clients()
			r := c.Renew(t.Context(), uid)
			if renewed := c.clients() != before; renewed != test.renewed || len(r.Replaced) > 0 != test.renewed || (r.Another != nil) != test.another {
				t.Errorf("renewed: %v, another cluster: %v", renewed, r.Another)
			}
			if why := r.Unrenewed; (why == "") != (test.kept == "") || !strings.Contains(why, test.kept) {
				t.Errorf("they are kept because of %q, want %q", why, test.kept)
			}
			t.Cleanup(before.Close)
			t.Cleanup(c.Close)
			if _, err := c.clients().identify(t.Context()); err != nil {
				t.Errorf("the cluster cannot be asked: %v", err)
			}
			current = cfg
			if r := c.Renew(t.Context(), uid); r.Unrenewed != "" && !test.renewed {
				t.Errorf("it was mended, and is still kept because of %q", r.Unrenewed)
			}
		})
	}
}

// A configuration that stays the same is compared once, unless it names files: those may be replaced.
func TestUnchangedCredentialsAreNotComparedAgain(t *testing.T) {
	for _, inFile := range []bool{false, true} {
		current := cluster(t, "first", "one")
		token := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(token, []byte("first"), 0o600); err != nil {
			t.Fatal(err)
		}
		if inFile {
			current.BearerTokenFile = token
		}
		c, err := New(Config{
			Cluster: "east", Connect: func(context.Context) (*rest.Config, error) { return current, nil }, Timeout: time.Minute,
			Metrics: new(NewMetrics()), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		}, cluster(t, "first", "one"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		for range 2 { // the first finds another address
			if r := c.Renew(t.Context(), "one"); r.Unrenewed != "" {
				t.Fatal(r.Unrenewed)
			}
		}
		if compared := c.unchanged == nil; compared != inFile {
			t.Errorf("in a file: %t, compared again: %t", inFile, compared)
		}
		if err := os.WriteFile(token, []byte("wrong"), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := c.Renew(t.Context(), "one"); (r.Unrenewed != "") != inFile {
			t.Errorf("in a file: %t; after the file was replaced: %q", inFile, r.Unrenewed)
		}
	}
}

// Credentials that were replaced and are put back are used again.
func TestCredentialsThatArePutBackAreUsed(t *testing.T) {
	first, second := cluster(t, "first", "one"), cluster(t, "second", "one")
	second.BearerTokenFile = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(second.BearerTokenFile, []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	current := first
	c, err := New(Config{
		Cluster: "east", Connect: func(context.Context) (*rest.Config, error) { return current, nil }, Timeout: time.Minute,
		Metrics: new(NewMetrics()), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}, first)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for i, next := range []*rest.Config{first, second, first} {
		current = next
		if r := c.Renew(t.Context(), "one"); r.Unrenewed != "" || len(r.Replaced) > 0 != (i > 0) {
			t.Errorf("step %d: kept because of %q, %d replaced", i, r.Unrenewed, len(r.Replaced))
		}
	}
}

// Files that the credentials name are read again, also if a symbolic link is replaced.
func TestFilesOfCredentialsAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	write := func(version, name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, version), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, version, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	point := func(version string) {
		t.Helper()
		if err := os.Symlink(version, filepath.Join(dir, "next")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "data")); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"ca.crt", "tls.crt", "tls.key", "token"}
	at := func(name string) string { return filepath.Join(dir, "data", name) }
	a := Config{Connect: func(context.Context) (*rest.Config, error) {
		return &rest.Config{Host: "https://east.example", BearerTokenFile: at("token"), TLSClientConfig: rest.TLSClientConfig{
			CAFile: at("ca.crt"), CertFile: at("tls.crt"), KeyFile: at("tls.key"),
		}}, nil
	}}
	for _, n := range names {
		write("v0", n, n)
	}
	point("v0")
	seen := map[fingerprint]string{}
	for i, changed := range append([]string{"nothing"}, names...) {
		version := "v" + string(rune('1'+i))
		for _, n := range names {
			text := n
			if n == changed {
				text += " changed"
			}
			write(version, n, text)
		}
		point(version)
		cfg, err := a.credentials(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if was, known := seen[fingerprintOf(cfg)]; known {
			t.Errorf("%s has changed, and is taken for %s", changed, was)
		}
		seen[fingerprintOf(cfg)] = changed
	}
}

// When its credentials are replaced, a cluster that could not be reached is soon tried again,
// however long it has been unreachable.
func TestReplacedCredentialsEndTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		a := Config{Connect: func(context.Context) (*rest.Config, error) {
			if time.Since(start) < 12*time.Second {
				return nil, errors.New("no credentials for member east")
			}
			return &rest.Config{Host: "https://east.example"}, nil
		}}
		a.SleepUntilRenewed(t.Context(), time.Minute)
		if waited := time.Since(start); waited < 12*time.Second || waited > 12*time.Second+CredentialsPoll {
			t.Errorf("waited %s, want at most %s after 12s", waited, CredentialsPoll)
		}
	})
}
