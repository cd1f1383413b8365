package remote

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/mask"
	"github.com/gitfleet/gitfleet/gitsource/retryafter"
)

// refusal returns the HTTPError of a response.
func refusal(res *http.Response, now time.Time) error {
	detail, err := io.ReadAll(io.LimitReader(res.Body, 4*(1<<10)))
	_ = errors.Join(err, res.Body.Close()) // the status is the more important error
	e := &HTTPError{Status: res.StatusCode, RetryAfter: min(retryafter.Of(res.Header, now), maxRetryAfter)}
	e.Detail = mask.Of(res.Request).Text(res.Header.Get("Content-Type"), detail, maxDetail)
	return e
}

// maxDetail is the maximum length of HTTPError.Detail.
const maxDetail = 200

// maxRetryAfter limits the delay that a server can request.
const maxRetryAfter = time.Hour

// stayOnHost refuses a redirect to another host, so that credentials are sent only to the
// configured one. A redirect to https on the same host is allowed.
func stayOnHost(req *http.Request, via []*http.Request) error {
	from, to := via[0].URL, req.URL
	same := strings.EqualFold(from.Scheme, to.Scheme) && strings.EqualFold(from.Host, to.Host)
	upgrade := from.Scheme == "http" && to.Scheme == "https" && from.Port() == "" && to.Port() == "" &&
		strings.EqualFold(from.Hostname(), to.Hostname())
	if !same && !upgrade {
		return fmt.Errorf("refused a redirect from %s to %s; if that is right, set url to it",
			origin(from), origin(to))
	}
	return nil
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }
