package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/gitfleet/gitfleet/gitsource/mask"
)

// An HTTP is a remote that is accessed over HTTP. It keeps its connection pool until the CA
// bundle changes.
type HTTP struct {
	cfg   Config
	where Location
	app   *appTokens

	mu    sync.Mutex
	pool  *http.Transport
	trust []byte // the CA bundle of the pool
}

// NewHTTP returns a remote at an address of http:// or https://.
func NewHTTP(cfg Config, where Location) *HTTP {
	return &HTTP{cfg: cfg, where: where, app: &appTokens{app: cfg.Auth.GitHubApp, getenv: cfg.Getenv}}
}

// Session begins a session with the current credentials.
func (h *HTTP) Session(ctx context.Context) (Session, error) {
	client, header, m, err := h.client(ctx)
	if err != nil {
		return nil, err
	}
	endpoint := h.where.endpoint
	s, err := client.NewUploadPackSession(&endpoint, headerAuth{header})
	if err != nil {
		return nil, err
	}
	return &wireSession{UploadPackSession: s, meter: m}, nil
}

// client returns a client for one session, with the current credentials.
func (h *HTTP) client(ctx context.Context) (transport.Transport, Secret, *meter, error) {
	pool, err := h.connections()
	if err != nil {
		return nil, Secret{}, nil, err
	}
	header, err := h.header(ctx, pool)
	if err != nil {
		return nil, Secret{}, nil, err
	}
	m := newMeter(h.cfg.Limits)
	m.credentials = mask.New(mask.OfHeader(header.value)...)
	return githttp.NewClientWithOptions(&http.Client{
		Transport:     &meteredTransport{pool, m, h.app},
		CheckRedirect: stayOnHost,
	}, &githttp.ClientOptions{RedirectPolicy: githttp.FollowInitialRedirects}), header, m, nil
}

// Close closes the idle connections.
func (h *HTTP) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pool != nil {
		h.pool.CloseIdleConnections()
	}
}

func (h *HTTP) header(ctx context.Context, via http.RoundTripper) (Secret, error) {
	if h.app.app == (GitHubApp{}) {
		return h.cfg.Auth.Header(h.cfg.Getenv)
	}
	token, err := h.app.get(ctx, via)
	return basic("x-access-token", token), err
}

// connections returns the connection pool. It creates a new one if the CA bundle has changed.
// Proxies are taken from the environment, as usual in Go.
func (h *HTTP) connections() (*http.Transport, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	pem, err := h.cfg.Auth.trust()
	if err != nil {
		return nil, err
	}
	if h.pool != nil && bytes.Equal(h.trust, pem) {
		return h.pool, nil
	}
	pool, err := h.cfg.Auth.transport(pem)
	if err != nil {
		return nil, err
	}
	if h.pool != nil {
		h.pool.CloseIdleConnections()
	}
	h.pool, h.trust = pool, pem
	return pool, nil
}

// trust returns the CA bundle; nil if there is none.
func (a Auth) trust() ([]byte, error) {
	if a.CABundle == "" {
		return nil, nil
	}
	pem, err := readSmall(a.CABundle)
	return pem, wrap("CA bundle", err)
}

// Transport returns a new connection pool that trusts the CA bundle. Proxies are taken from the environment.
func (a Auth) Transport() (*http.Transport, error) {
	pem, err := a.trust()
	if err != nil {
		return nil, err
	}
	return a.transport(pem)
}

func (a Auth) transport(pem []byte) (*http.Transport, error) {
	pool := http.DefaultTransport.(*http.Transport).Clone()
	pool.MaxIdleConnsPerHost = 2
	pool.ResponseHeaderTimeout, pool.MaxResponseHeaderBytes = time.Minute, maxHeader
	pool.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if pem == nil {
		return pool, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CA bundle %s holds no certificate in PEM form", a.CABundle)
	}
	pool.TLSClientConfig.RootCAs = roots
	return pool, nil
}

// maxHeader is the maximum size of the headers of a response.
const maxHeader = 256 << 10

// A meteredTransport converts error responses to HTTPErrors and counts the bytes of bodies.
type meteredTransport struct {
	next  http.RoundTripper
	meter *meter
	app   *appTokens
}

// RoundTrip implements http.RoundTripper.
func (t *meteredTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, t.meter.fail(err)
	}
	res.Body = metered{res.Body, t.meter}
	if res.StatusCode < 400 {
		return res, nil
	}
	if res.StatusCode == http.StatusUnauthorized {
		t.app.forget()
	}
	return nil, t.meter.fail(refusal(res, time.Now()))
}
