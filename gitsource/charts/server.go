package charts

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

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

// newServer returns a server by HOST or HOST:PORT.
func newServer(cfg Config, host string) (*server, error) {
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
	s.client = &http.Client{Transport: pool, CheckRedirect: s.checkRedirect}
	return s, nil
}

func (s *server) mask(err error) error { return s.credentials.Error(err) }

// mostRedirects limits redirects, of which registries need one, to where they keep archives.
const mostRedirects = 5

// checkRedirect lets archives be elsewhere, since their digest says what they are, and their servers get no credentials.
func (s *server) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > mostRedirects {
		return fmt.Errorf("more than %d redirects", mostRedirects)
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
