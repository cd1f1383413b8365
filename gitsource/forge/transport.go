package forge

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/mask"
	"github.com/gitfleet/gitfleet/gitsource/retryafter"
)

// The limits of one request.
const (
	requestTimeout = 30 * time.Second
	maxMessage     = 300
	// maxRefusal is how much of an error response is looked at, and maxHeader the maximum size of the
	// headers of a response, which are cached with it.
	maxRefusal = 64 << 10
	maxHeader  = 64 << 10
)

// The limits of the delay that a forge may ask for.
const (
	// secondaryLimit is the delay after GitHub's secondary rate limit, if the response does not
	// name one.
	secondaryLimit = time.Minute
	maxRetryAfter  = 24 * time.Hour
)

// userAgent is the User-Agent header of requests.
const userAgent = "gitfleet"

// transport adds the token to requests and accepts only JSON responses of limited size. Every
// other response becomes a *StatusError without credentials. Responses with an ETag are cached.
type transport struct {
	next http.RoundTripper
	// scheme is the scheme of the Authorization header.
	scheme string
	token  func() (string, error)
	cache  cache
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(original *http.Request) (*http.Response, error) {
	req := original.Clone(original.Context())
	token, err := t.token()
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, fmt.Errorf("read the token of the forge: %w", err)
	}
	req.Header.Set("Authorization", t.scheme+" "+token)
	key := ""
	var known answer
	if req.Method == http.MethodGet {
		key = req.URL.String()
		if known = t.cache.find(key); known.etag != "" {
			req.Header.Set("If-None-Match", known.etag)
		}
	}
	credentials := mask.Of(req)
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, credentials.Error(fmt.Errorf("the forge does not answer: %w", err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, credentials.Error(fmt.Errorf("read the answer: %w", err))
	}
	if resp.StatusCode == http.StatusNotModified && known.etag != "" {
		header := known.header.Clone()
		maps.Copy(header, resp.Header)
		header.Set("Content-Type", known.header.Get("Content-Type"))
		resp.StatusCode, resp.Status, resp.Header, body = http.StatusOK, "200 OK", header, known.body
	}
	kind := resp.Header.Get("Content-Type")
	success := resp.StatusCode/100 == 2
	if success && (len(body) > maxAnswer || manyValues(body)) {
		return nil, errTooLarge
	}
	if !success {
		body = body[:min(len(body), maxRefusal)]
	}
	if !success || mask.IsPage(kind, body) {
		e := &StatusError{Status: resp.StatusCode, Message: credentials.Text(kind, body, maxMessage), reason: mask.Line(credentials.Mask(plainReason(body)), maxMessage)}
		if resp.StatusCode >= 400 {
			e.RetryAfter = retryAfter(e, resp.Header, time.Now())
		}
		return nil, e
	}
	if etag := resp.Header.Get("ETag"); key != "" && etag != "" {
		t.cache.put(answer{key, etag, resp.Header.Clone(), body})
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

// manyValues reports whether an answer would decode to too much.
func manyValues(body []byte) bool {
	if len(body) < maxValues {
		return false
	}
	in := json.NewDecoder(bytes.NewReader(body))
	for range maxValues {
		if _, err := in.Token(); err != nil {
			return false // the end, or what cannot be decoded either
		}
	}
	return true
}

// retryAfter returns the delay that a forge asks for.
func retryAfter(e *StatusError, h http.Header, now time.Time) time.Duration {
	wait := retryafter.Of(h, now)
	if wait == 0 && strings.Contains(e.Message, "secondary rate limit") {
		wait = secondaryLimit
	}
	return min(wait, maxRetryAfter)
}

// newHTTPClient returns an HTTP client for a forge. It trusts the certificates of the CA bundle
// in addition to the system's, and follows no redirects.
func newHTTPClient(cfg Config, scheme string) (*http.Client, error) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxResponseHeaderBytes = maxHeader
	if cfg.CABundle != "" {
		pem, err := os.ReadFile(cfg.CABundle)
		if err != nil {
			return nil, err
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, err
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate", cfg.CABundle)
		}
		base.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: &transport{next: base, scheme: scheme, token: cfg.Token}, Timeout: requestTimeout}, nil
}
