package member

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/test/apiserver"
)

// cluster is an API server that accepts one token, and is the cluster with a UID.
func cluster(t *testing.T, token, uid string) *rest.Config {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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

// Whatever of the credentials is replaced is used, if it works and is of the same
// cluster. What does not work is not used, and it is said why.
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
		kept    string // part of why they are not used
	}{
		"nothing new":       {next: other(func(*rest.Config) {})},
		"another address":   {next: func(t *testing.T, _ *rest.Config) *rest.Config { return cluster(t, "second", uid) }, renewed: true},
		"another cluster":   {next: func(t *testing.T, _ *rest.Config) *rest.Config { return cluster(t, "second", "two") }, another: true},
		"another name":      {next: other(func(cfg *rest.Config) { cfg.ServerName = "example.com" }), renewed: true},
		"the wrong name":    {next: other(func(cfg *rest.Config) { cfg.ServerName = "server.invalid" }), kept: "certificate"},
		"the wrong token":   {next: other(func(cfg *rest.Config) { cfg.BearerToken = "wrong" }), kept: "Unauthorized"},
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
			s := sessionOf(t, cfg)
			s.conn().credentials, s.probing.uid = fingerprintOf(cfg), uid
			now := test.next(t, cfg)
			s.cfg.Connect = func(context.Context) (*rest.Config, error) { return now, nil }
			before := s.conn()
			r := s.renew(t.Context())
			if renewed := s.conn() != before; renewed != test.renewed || len(r.replaced) > 0 != test.renewed || (r.another != nil) != test.another {
				t.Errorf("renewed: %v, another cluster: %v", renewed, r.another)
			}
			if why := s.probing.unrenewed; (why == "") != (test.kept == "") || !strings.Contains(why, test.kept) {
				t.Errorf("they are kept because of %q, want %q", why, test.kept)
			}
			t.Cleanup(s.conn().close)
			if _, err := s.conn().identify(t.Context()); err != nil {
				t.Errorf("the cluster cannot be asked: %v", err)
			}
			s.cfg.Connect = func(context.Context) (*rest.Config, error) { return cfg, nil }
			if s.renew(t.Context()); s.probing.unrenewed != "" && !test.renewed {
				t.Errorf("it was mended, and is still kept because of %q", s.probing.unrenewed)
			}
		})
	}
}

// Files that credentials name are read again, also where a link is what is replaced.
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
	a := New(Config{Connect: func(context.Context) (*rest.Config, error) {
		return &rest.Config{Host: "https://east.example", BearerTokenFile: at("token"), TLSClientConfig: rest.TLSClientConfig{
			CAFile: at("ca.crt"), CertFile: at("tls.crt"), KeyFile: at("tls.key"),
		}}, nil
	}})
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

// A cluster that could not be reached is asked again soon after its credentials were
// replaced, however long it has been out of reach.
func TestReplacedCredentialsEndTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		a := New(Config{Connect: func(context.Context) (*rest.Config, error) {
			if time.Since(start) < 12*time.Second {
				return nil, errors.New("no credentials for member east")
			}
			return &rest.Config{Host: "https://east.example"}, nil
		}})
		a.sleepUntilRenewed(t.Context(), time.Minute)
		if waited := time.Since(start); waited < 12*time.Second || waited > 12*time.Second+credentialsPoll {
			t.Errorf("waited %s, want at most %s after 12s", waited, credentialsPoll)
		}
	})
}

// Watches go on over the new connection from where they were: nothing is listed again.
func TestWatchesMoveToNewCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var asked []string
		server := func(name string) *rest.Config {
			return &rest.Config{Host: "https://" + name + ".example", QPS: -1, Transport: apiserver.RoundTrip(func(r *http.Request) (*http.Response, error) {
				if v := r.URL.Query(); v.Get("watch") != "" {
					asked = append(asked, name+" watch "+v.Get("resourceVersion"))
					body, end := io.Pipe()
					context.AfterFunc(r.Context(), func() { end.CloseWithError(r.Context().Err()) })
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: r}, nil
				}
				asked = append(asked, name+" list")
				return &http.Response{
					StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
					Body: io.NopCloser(strings.NewReader(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[]}`)),
				}, nil
			})}
		}
		s := sessionOf(t, server("old"))
		s.cfg.Encoder, s.changes, s.firsts = NewEncoder("prod", ""), newChanges(), make(chan struct{}, 1)
		s.startWatch(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, configMaps, false)
		s.watch.begin()
		synctest.Wait()
		next, err := newConn(server("new"))
		if err != nil {
			t.Fatal(err)
		}
		s.moveOn([]*conn{s.link.Swap(next)})
		synctest.Wait()
		if got, want := strings.Join(asked, ", "), "old list, old watch 5, new watch 5"; got != want {
			t.Errorf("asked: %s\nwant:  %s", got, want)
		}
		cancel()
		s.running.Wait()
	})
}
