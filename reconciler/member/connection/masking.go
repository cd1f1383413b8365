package connection

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/mask"
)

// longestRefusal is how much of an error response is read.
const longestRefusal = 64 << 10

// masking is a transport whose errors and error responses are safe to show: it removes
// credentials of the request, which a server or proxy may have echoed, and replaces a web page
// by a description. It is below all transports that add credentials. Other responses are not
// changed.
type masking struct{ next http.RoundTripper }

// errNoAPI is the error of a server that is not an API server.
var errNoAPI = errors.New("an API server was expected: check the address, and whether a proxy or a login page stands before it")

// RoundTrip implements http.RoundTripper.
func (m masking) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := m.next.RoundTrip(req)
	if err != nil {
		return nil, mask.Of(req).Error(err)
	}
	kind := res.Header.Get("Content-Type")
	success := res.StatusCode < http.StatusMultipleChoices
	if success && !mask.IsPage(kind, nil) {
		return res, nil
	}
	text, err := refusalText(res, req, kind)
	switch {
	case success:
		return nil, errors.Join(fmt.Errorf("the server answers with %s: %w", text, errNoAPI), err)
	case err != nil:
		return nil, err
	}
	credentials := mask.Of(req)
	for _, values := range res.Header {
		for i := range values {
			values[i] = credentials.Mask(values[i])
		}
	}
	res.Status = credentials.Mask(res.Status)
	if !strings.Contains(kind, "json") {
		res.Header.Set("Content-Type", "text/plain")
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader([]byte(text))), int64(len(text))
	res.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return res, nil
}

// refusalText reads an error response, and returns the text that may be shown. JSON remains
// JSON.
func refusalText(res *http.Response, req *http.Request, kind string) (string, error) {
	body, err := io.ReadAll(io.LimitReader(res.Body, longestRefusal))
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return "", mask.Of(req).Error(err)
	}
	if strings.Contains(kind, "json") && !mask.IsPage(kind, body) {
		return mask.Of(req).Mask(string(body)), nil
	}
	return mask.Of(req).Text(kind, body, longestText), nil
}

// longestText is the maximum length of the text of an error response that is not from an API
// server.
const longestText = 500
