package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gitfleet/gitfleet/reconciler/server"
)

// Contains returns a function that reports whether the history of a commit has another one,
// always the same, given by its hash or the beginning of it; every history has an empty one.
// Answers of the daemon are cached. A daemon that does not support the request always means no.
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
