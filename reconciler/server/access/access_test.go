package access

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// An authority issues certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.key = newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	writePEM(t, a.file(), "CERTIFICATE", raw)
	return a
}

func (a *authority) file() string { return filepath.Join(a.dir, "ca.crt") }

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t *testing.T, path, kind string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// issue writes a certificate and its key, and returns their files.
func (a *authority) issue(name string) (cert, key string) {
	a.t.Helper()
	own := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, own.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyRaw, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, key = filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")
	writePEM(a.t, cert, "CERTIFICATE", raw)
	writePEM(a.t, key, "PRIVATE KEY", keyRaw)
	return cert, key
}

// A guarded server responds with the user of the request.
type guarded struct {
	t    *testing.T
	url  string
	pool *x509.CertPool
}

func guard(t *testing.T, cfg Config, ca *authority) *guarded {
	t.Helper()
	g, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{TLSConfig: g.TLS(), ErrorLog: log.New(io.Discard, "", 0), Handler: g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if u, found := request.UserFrom(req.Context()); found {
			io.WriteString(w, u.GetName())
		}
		if req.Header.Get("Authorization") != "" {
			t.Error("the credentials were passed to the handler")
		}
	}), func(string) bool { return false })}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	if srv.TLSConfig == nil {
		go srv.Serve(l)
		return &guarded{t: t, url: "http://" + l.Addr().String()}
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	go srv.ServeTLS(l, "", "")
	return &guarded{t, "https://" + l.Addr().String(), pool}
}

// A client is what a client sends, with its credentials.
type client struct {
	path, token, cert, key, host, site string
}

func (g *guarded) request(who client) (int, string, *tls.ConnectionState) {
	g.t.Helper()
	config := &tls.Config{RootCAs: g.pool}
	if who.cert != "" {
		pair, err := tls.LoadX509KeyPair(who.cert, who.key)
		if err != nil {
			g.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(g.t.Context(), "POST", g.url+who.path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	req.Host = who.host
	if who.token != "" {
		req.Header.Set("Authorization", "Bearer "+who.token)
	}
	if who.site != "" {
		req.Header.Set("Origin", who.site)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(text)), resp.TLS
}

const (
	token = "4c1b0a9f8e7d6c5b4a39"
	other = "00112233445566778899"
)

func TestAuthentication(t *testing.T) {
	ca, foreign := newAuthority(t, "ours"), newAuthority(t, "foreign")
	cert, key := ca.issue("server")
	tokens := filepath.Join(t.TempDir(), "tokens")
	write(t, tokens, "# of the team\n"+token+",alice\n")
	g := guard(t, Config{Listen: "0.0.0.0:443", CertFile: cert, KeyFile: key, TokenFile: tokens, ClientCAFile: ca.file(), OpenMetrics: true}, ca)
	bob, bobKey := ca.issue("bob")
	eve, eveKey := foreign.issue("bob")
	tests := map[string]struct {
		who  client
		code int
		text string
	}{
		"nobody":                      {client{path: "/report"}, 401, "authentication required: send a token or a client certificate"},
		"a token":                     {client{path: "/report", token: token}, 200, "alice"},
		"a wrong token":               {client{path: "/report", token: other}, 401, "authentication required: send a token or a client certificate"},
		"a certificate":               {client{path: "/report", cert: bob, key: bobKey}, 200, "bob"},
		"another's certificate":       {client{path: "/report", cert: eve, key: eveKey}, 401, "authentication required: send a token or a client certificate"},
		"the health":                  {client{path: "/healthz"}, 200, ""},
		"the readiness":               {client{path: "/readyz"}, 200, ""},
		"metrics":                     {client{path: "/metrics"}, 200, ""},
		"a webhook":                   {client{path: "/webhook"}, 200, ""},
		"almost an open path":         {client{path: "/healthz/"}, 401, "authentication required: send a token or a client certificate"},
		"a token from another site":   {client{path: "/report", token: token, site: "https://evil.example"}, 403, "a page of another site sends this"},
		"a webhook that names a site": {client{path: "/webhook", site: "https://git.example"}, 200, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			code, text, _ := g.request(test.who)
			if code != test.code || text != test.text {
				t.Errorf("%d %q, want %d %q", code, text, test.code, test.text)
			}
		})
	}
}

// Without credentials, only requests to this machine by its own names are answered: a web page
// can use a name that resolves to this machine.
func TestWithoutAuthenticationOnlyLocalHostNamesAreServed(t *testing.T) {
	g := guard(t, Config{Listen: "127.0.0.1:8085"}, nil)
	for host, want := range map[string]int{
		"": 200, "localhost:8085": 200, "127.0.0.1:8085": 200, "[::1]:8085": 200, "localhost": 200, "LocalHost:8085": 200,
		"evil.example": 403, "evil.example:8085": 403, "10.0.0.1:8085": 403, "localhost.evil.example": 403,
	} {
		if code, text, _ := g.request(client{path: "/report", host: host}); code != want {
			t.Errorf("Host %q: %d %s, want %d", host, code, text, want)
		}
	}
	if code, _, _ := g.request(client{path: "/actions", host: "localhost:8085", site: "http://localhost:3000"}); code != 403 {
		t.Errorf("a page of another site: %d", code)
	}
}

// A request that a browser sends for a page of another site is refused, even if it only reads.
func TestCrossSiteRequestsAreRefused(t *testing.T) {
	g, err := New(t.Context(), Config{Listen: "127.0.0.1:8085"})
	if err != nil {
		t.Fatal(err)
	}
	handler := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), func(string) bool { return false })
	tests := map[string]struct {
		path, site, origin string
		want               int
	}{
		"no browser":                   {"/report", "", "", 200},
		"the address bar":              {"/report", "none", "", 200},
		"a page of its own":            {"/report", "same-origin", "", 200},
		"its own origin":               {"/report", "", "http://localhost:8085", 200},
		"another site":                 {"/report", "cross-site", "", 403},
		"another port":                 {"/report", "same-site", "", 403},
		"an older browser":             {"/report", "", "https://evil.example", 403},
		"an older browser, other port": {"/report", "", "http://localhost:3000", 403},
		"a page without an origin":     {"/report", "", "null", 403},
		"metrics":                      {"/metrics", "cross-site", "", 403},
		"the health":                   {"/healthz", "cross-site", "", 200},
	}
	for name, test := range tests {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			req := httptest.NewRequest(method, "http://localhost:8085"+test.path, nil)
			for header, value := range map[string]string{"Sec-Fetch-Site": test.site, "Origin": test.origin} {
				if value != "" {
					req.Header.Set(header, value)
				}
			}
			w := httptest.NewRecorder()
			if handler.ServeHTTP(w, req); w.Code != test.want {
				t.Errorf("%s, %s: %d %s, want %d", name, method, w.Code, w.Body, test.want)
			}
		}
	}
}

// Replaced files are used without a restart, and invalid ones are ignored.
func TestChangedFilesAreReloaded(t *testing.T) {
	ca := newAuthority(t, "ours")
	cert, key := ca.issue("server")
	tokens := filepath.Join(t.TempDir(), "tokens")
	write(t, tokens, token)
	g := guard(t, Config{Listen: "127.0.0.1:443", CertFile: cert, KeyFile: key, TokenFile: tokens}, ca)
	_, _, before := g.request(client{path: "/report", token: token})
	ca.issue("server")
	later(t, cert, key)
	code, _, after := g.request(client{path: "/report", token: token})
	if code != 200 || before.PeerCertificates[0].Equal(after.PeerCertificates[0]) {
		t.Errorf("%d with the old certificate after it was replaced", code)
	}
	write(t, cert, "broken")
	write(t, tokens, "\n"+other+"\n")
	later(t, cert, tokens)
	if code, _, _ := g.request(client{path: "/report", token: token}); code != 401 {
		t.Errorf("the old token: %d", code)
	}
	if code, _, _ := g.request(client{path: "/report", token: other}); code != 200 {
		t.Errorf("the new token: %d", code)
	}
	write(t, tokens, "short")
	later(t, tokens)
	if code, _, _ := g.request(client{path: "/report", token: other}); code != 200 {
		t.Errorf("the token before a broken file: %d", code)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// later makes files newer than before, whatever the resolution of the clock.
func later(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		at := info.ModTime().Add(time.Hour)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInvalidConfigs(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "short"), "# here\nabc\n")
	write(t, filepath.Join(dir, "empty"), "# none\n")
	ca := newAuthority(t, "ours")
	cert, key := ca.issue("server")
	tests := []struct {
		cfg  Config
		want string
	}{
		{Config{Listen: "0.0.0.0:8085"}, "listen: 0.0.0.0:8085 can be reached from other machines"},
		{Config{Listen: ":8085"}, "listen: :8085 can be reached from other machines"},
		{Config{Listen: "10.1.2.3:8085"}, "listen: 10.1.2.3:8085 can be reached from other machines"},
		{Config{Listen: "127.0.0.1:8085", TokenFile: "x"}, "server.certFile: missing"},
		{Config{Listen: "127.0.0.1:8085", CertFile: "x"}, "server.certFile: goes together with server.keyFile"},
		{Config{Listen: ":1", CertFile: "x", KeyFile: "y", TokenFile: "z", Unauthenticated: true}, "server.allowUnauthenticated: cannot be combined with authentication"},
		{Config{Listen: "127.0.0.1:8085", Kubeconfig: "x"}, "server.kubeconfig: is of use with server.delegated only"},
		{Config{Listen: ":1", CertFile: cert, KeyFile: key, TokenFile: filepath.Join(dir, "short")}, "short: line 2: a token needs 16 characters"},
		{Config{Listen: ":1", CertFile: cert, KeyFile: key, TokenFile: filepath.Join(dir, "empty")}, "empty: has no token"},
		{Config{Listen: ":1", CertFile: cert, KeyFile: key, ClientCAFile: filepath.Join(dir, "empty")}, "empty: has no certificate in PEM"},
		{Config{Listen: ":1", CertFile: cert, KeyFile: cert, ClientCAFile: ca.file()}, "server.certFile: "},
	}
	for _, test := range tests {
		if _, err := New(t.Context(), test.cfg); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "abc") {
			t.Errorf("%+v: %v; want %s", test.cfg, err, test.want)
		}
	}
	for _, cfg := range []Config{{Listen: "127.0.0.1:0"}, {Listen: "[::1]:1"}, {Listen: "localhost:1"}, {Listen: ":1", Unauthenticated: true}} {
		if err := cfg.Validate(); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
