package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gitfleet/gitfleet/reconciler/server"
)

// Contains returns a function that reports whether the history of a commit contains another
// commit, which must be the same in all calls. It is given by its hash or the beginning of it;
// every history contains an empty one. Responses of the daemon are cached. If the daemon does
// not support the request, the result is false.
func (c *Client) Contains() func(ctx context.Context, head, commit string) (bool, error) {
	known := map[string]bool{}
	return func(ctx context.Context, head, commit string) (bool, error) {
		if head == "" || strings.HasPrefix(head, commit) {
			return head != "", nil
		}
		if yes, asked := known[head]; asked {
			return yes, nil
		}
		var answer server.Containment
		err := c.Get(ctx, "/contains", url.Values{"head": {head}, "commit": {commit}}, &answer)
		var wrong *ResponseError
		if errors.As(err, &wrong) && wrong.Code == http.StatusNotFound {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		known[head] = answer.Contains
		return answer.Contains, nil
	}
}
