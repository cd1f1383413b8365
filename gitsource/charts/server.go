package charts

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/atomicfile"
	"github.com/gitfleet/gitfleet/gitsource/hostlimit"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/mask"
)

// A server is what charts are fetched from. Its credentials are those of the moment at which it was created.
type server struct {
	cfg    Config
	client *http.Client
	plain  bool
	// header is the Authorization header, and credentials its secrets.
	header      string
	credentials mask.Credentials
}

// ask calls a function with a server, by HOST or HOST:PORT, once it may be asked. The function has a limited time, and what it
// receives counts for the host. The error has no credentials.
func (c Config) ask(ctx context.Context, host string, do func(context.Context, *server) error) error {
	known, _ := c.Hosts.Of(host)
	port := 443
	if known.PlainHTTP {
		port = 80
	}
	return c.Fetches.Fetch(ctx, hostlimit.Name(host, port), func(share *hostlimit.Share) error {
		s, err := newServer(c, host, share)
		if err != nil {
			return err
		}
		most := min(c.Limits.Time, share.Time)
		ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("it took longer than %s (limits.fetchTime)", most))
		defer cancel()
		err = do(ctx, s)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, http.ErrSchemeMismatch) {
			err = fmt.Errorf("%w; if the server does not use TLS, set hosts[].plainHTTP for it", err)
		}
		if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
			err = fmt.Errorf("%w; if the server has a CA of its own, set hosts[].caBundle for it", err)
		}
		return s.mask(err)
	})
}

// newServer returns a server by HOST or HOST:PORT. What it sends counts for a share.
func newServer(cfg Config, host string, share *hostlimit.Share) (*server, error) {
	known, _ := cfg.Hosts.Of(host)
	header, err := known.Header(cfg.Getenv)
	if err != nil {
		return nil, err
	}
	pool, err := known.Transport()
	if err != nil {
		return nil, err
	}
	s := &server{cfg: cfg, plain: known.PlainHTTP, header: header.Reveal(), credentials: mask.New(mask.OfHeader(header.Reveal())...)}
	s.client = &http.Client{Transport: counting{pool, share}, CheckRedirect: s.checkRedirect}
	return s, nil
}

// counting counts the bytes of responses.
type counting struct {
	http.RoundTripper
	share *hostlimit.Share
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := c.RoundTripper.RoundTrip(req)
	if err == nil {
		res.Body = c.share.Reader(res.Body)
	}
	return res, err
}

func (s *server) mask(err error) error { return s.credentials.Error(err) }

// maxRedirects limits redirects, of which registries need one, to where they keep archives.
const maxRedirects = 5

// checkRedirect lets archives be elsewhere, since their digest says what they are, and their servers get no credentials.
func (s *server) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if !strings.EqualFold(req.URL.Host, via[0].URL.Host) {
		req.Header.Del("Authorization")
	}
	return s.checkURL(req.URL)
}

func (s *server) checkURL(u *url.URL) error {
	switch {
	case u.Scheme == "https" || u.Scheme == "http" && s.plain:
		return nil
	case u.Scheme == "http":
		return fmt.Errorf("http://%s is neither secret nor authentic; use https://, or set hosts[].plainHTTP for the host", u.Host)
	}
	return fmt.Errorf("scheme %q is not supported; use https:// or oci://", u.Scheme)
}

// readLimited reads at most so many bytes of a response.
func readLimited(body io.ReadCloser, most int64, what string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, most+1))
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s is larger than %s", what, limit.Size(most))
	}
	return data, nil
}

// receive writes a response of at most so many bytes to a file of the cache.
func (s *server) receive(body io.ReadCloser, most int64) (packed archive, err error) {
	defer func() { err = errors.Join(err, body.Close()) }()
	if err := os.MkdirAll(s.cfg.Dir, 0o700); err != nil {
		return packed, err
	}
	f, err := os.CreateTemp(s.cfg.Dir, ".fetching-*")
	if err != nil {
		return packed, atomicfile.NotCreated(err, s.cfg.Dir)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(body, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("the archive is larger than %s", limit.Size(most))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return packed, atomicfile.About(errors.Join(err, os.Remove(f.Name())), f.Name(), s.cfg.Dir)
	}
	return archive{f.Name(), "sha256:" + hex.EncodeToString(sum.Sum(nil))}, nil
}

// userAgent is how requests introduce themselves.
const userAgent = "gitfleet"

// hostOf returns the HOST or HOST:PORT of an address, which must have no credentials.
func hostOf(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return nil, errors.New("the repository is no address such as https://HOST/PATH or oci://HOST/PATH")
	case u.User != nil:
		return nil, errors.New("the repository must not carry credentials; set them in hosts of the configuration")
	}
	return u, nil
}
