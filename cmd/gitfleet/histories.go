package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gitfleet/gitfleet/reconciler/server"
)

// histories tells whether the history of a commit has another, always the same,
// which is named by its hash or by how that begins; without a name every history
// has it. What it learned from the daemon it does not ask again. A daemon that
// does not know the question has no answer but no.
func (c *client) histories() func(ctx context.Context, head, commit string) (bool, error) {
	known := map[string]bool{}
	return func(ctx context.Context, head, commit string) (bool, error) {
		if head == "" || strings.HasPrefix(head, commit) {
			return head != "", nil
		}
		if yes, asked := known[head]; asked {
			return yes, nil
		}
		var answer server.Containment
		err := c.get(ctx, "/contains", url.Values{"head": {head}, "commit": {commit}}, &answer)
		var wrong *answerError
		if errors.As(err, &wrong) && wrong.code == http.StatusNotFound {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		known[head] = answer.Contains
		return answer.Contains, nil
	}
}
