package forge

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/mask"
)

// The bounds of one request.
const (
	requestTimeout = 30 * time.Second
	mostAnswer     = 8 << 20
	mostMessage    = 300
)

// transport lets nothing pass but JSON of a bounded size. Every other answer becomes a
// *StatusError without credentials.
type transport struct {
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	credentials := mask.Of(req)
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, credentials.Error(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer+1))
	if err != nil {
		return nil, credentials.Error(fmt.Errorf("read the answer: %w", err))
	}
	kind := resp.Header.Get("Content-Type")
	switch {
	case resp.StatusCode/100 != 2, mask.IsPage(kind, body):
		return nil, &StatusError{resp.StatusCode, credentials.Text(kind, body, mostMessage), retryAfter(resp.Header, time.Now())}
	case len(body) > mostAnswer:
		return nil, fmt.Errorf("the answer is larger than %d bytes", mostAnswer)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// retryAfter is how long a server asks to be left alone, in either form of the header,
// or until its rate limit is renewed.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		return max(0, time.Duration(min(seconds, 86400))*time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	if reset, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil && h.Get("X-RateLimit-Remaining") == "0" {
		return max(0, time.Unix(reset, 0).Sub(now))
	}
	return 0
}

// newClient makes an HTTP client that trusts the certificates of a PEM file beside the
// system's; none if it is empty. It follows no redirects.
func newClient(caBundle string) (*http.Client, error) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	if caBundle != "" {
		pem, err := os.ReadFile(caBundle)
		if err != nil {
			return nil, err
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, err
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate", caBundle)
		}
		base.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: &transport{base}, Timeout: requestTimeout}, nil
}
