package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/gitfleet/gitfleet/gitsource/mask"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/expression"
)

// A Server is a server that gates may ask.
type Server struct {
	// URL is its address; everything below its path may be asked.
	URL string
	// Auth are the credentials, and the CAs that are trusted.
	Auth remote.Auth
	// CertFile and KeyFile are the files of the certificate of this client; empty if it has none.
	CertFile, KeyFile string
}

// The limits of one question.
const (
	// requestTimeout limits the time until the whole answer is there.
	requestTimeout = 10 * time.Second
	// maxAnswer is the maximum size of an answer, and maxHeader that of its headers.
	maxAnswer = 1 << 20
	maxHeader = 64 << 10
	// maxAtOnce is how many questions one server is asked at the same time, and maxReads from how many clusters objects or Jobs are read.
	maxAtOnce = 4
	maxReads  = 8
	// maxObjects is how many objects of one cluster a gate may look at.
	maxObjects = 50
	// longestText is the maximum length of the text of an answer.
	longestText = 300
)

// notEvaluated are the status codes that say nothing of what was asked: the credentials are wrong, or it was asked too often.
var notEvaluated = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusTooManyRequests}

// requestHTTP asks once, and compares the answer with what is expected.
func (a *Asker) requestHTTP(ctx context.Context, g *api.HTTPGate) (good bool, text string, err error) {
	resp, err := a.get(ctx, g.URL, nil)
	if err != nil {
		return false, "", err
	}
	switch {
	case resp.status != g.Expected() && slices.Contains(notEvaluated, resp.status):
		return false, "", resp.refusal(g.URL)
	case resp.status != g.Expected():
		return false, fmt.Sprintf("%v, not %d", resp.refusal(g.URL), g.Expected()), nil
	case g.Condition == "":
		return true, fmt.Sprintf("%s answers %d", g.URL, resp.status), nil
	}
	var body any
	if err := json.Unmarshal(resp.body, &body); err != nil {
		return false, "", fmt.Errorf("%s answers %d with something that is not JSON", g.URL, resp.status)
	}
	condition, err := expression.CompileResponse(g.Condition)
	if err != nil {
		return false, "", err
	}
	holds, err := condition.Holds(map[string]any{"status": int64(resp.status), "body": body})
	switch {
	case err != nil:
		return false, "", resp.credentials.Error(fmt.Errorf("the condition cannot be evaluated for the answer of %s: %w", g.URL, err))
	case !holds:
		return false, fmt.Sprintf("the answer of %s is not: %s", g.URL, g.Condition), nil
	}
	return true, fmt.Sprintf("the answer of %s is: %s", g.URL, g.Condition), nil
}

// A server is asked by few at a time.
type server struct {
	Server
	slots chan struct{}
}

// server returns the server of the configuration for an address; nil if there is none. If one is below another, that is the one.
func (a *Asker) server(address string) (found *server) {
	for _, s := range a.servers {
		if api.AddressWithin(address, s.URL) && (found == nil || len(s.URL) > len(found.URL)) {
			found = s
		}
	}
	return found
}

// transport returns a transport for one request, so that replaced certificates are used at once.
func (s *Server) transport() (*http.Transport, error) {
	t, err := s.Auth.Transport()
	if err != nil {
		return nil, err
	}
	t.DisableKeepAlives, t.MaxResponseHeaderBytes = true, maxHeader
	if s.CertFile == "" {
		return t, nil
	}
	cert, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the client certificate: %w", err)
	}
	t.TLSClientConfig.Certificates = []tls.Certificate{cert}
	return t, nil
}

// get sends a GET request to an address of the configuration. It follows no redirect.
func (a *Asker) get(ctx context.Context, address string, query url.Values) (*response, error) {
	s := a.server(address)
	if s == nil {
		return nil, fmt.Errorf("the configuration of gitfleet does not allow %s; add it to gates.servers", address)
	}
	if query != nil {
		address += "?" + query.Encode()
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "gitfleet")
	req.Header.Set("Accept", "application/json")
	header, err := s.Auth.Header(a.cfg.Getenv)
	if err != nil {
		return nil, err
	}
	if !header.Empty() {
		req.Header.Set("Authorization", header.Reveal())
	}
	transport, err := s.transport()
	if err != nil {
		return nil, err
	}
	out := &response{credentials: mask.Of(req)}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, out.credentials.Error(a.noAnswer(ctx, s.URL, err))
	}
	defer resp.Body.Close()
	out.status, out.header = resp.StatusCode, resp.Header
	if out.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1)); err != nil {
		return nil, out.credentials.Error(a.noAnswer(ctx, s.URL, err))
	}
	if len(out.body) > maxAnswer {
		return nil, fmt.Errorf("the answer of %s is larger than %d KiB", s.URL, maxAnswer>>10)
	}
	return out, nil
}

// noAnswer is the error of a request, without its query, in which nothing differs between two attempts.
func (a *Asker) noAnswer(ctx context.Context, server string, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s has not answered within %s", server, a.timeout)
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return fmt.Errorf("%s does not answer: %w", server, err)
}

// A response is what a server has answered.
type response struct {
	status int
	header http.Header
	body   []byte
	// credentials are those of the request, which the server may repeat.
	credentials mask.Credentials
}

// refusal says what a server answers instead of what was asked for.
func (r *response) refusal(server string) error {
	text := r.credentials.Text(r.header.Get("Content-Type"), r.body, longestText/2)
	return fmt.Errorf("%s answers %s", server, strings.TrimSuffix(fmt.Sprintf("%d: %s", r.status, text), ": "))
}
