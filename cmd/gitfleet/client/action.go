package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"

	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// User returns the name of the local user. A daemon that authenticates the request uses the
// authenticated name instead.
func User() string { return cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME"), "unknown") }

// Act sends an order to the daemon. If the daemon refuses it, the error has only the daemon's
// message.
func (c *Client) Act(ctx context.Context, action string, o reconciler.Order) (server.ActionResult, error) {
	var a server.ActionResult
	resp, err := c.Do(ctx, http.MethodPost, "/actions/"+action, nil, o)
	var answer *ResponseError
	if errors.As(err, &answer) && !answer.isUnknownName() && (answer.Code == http.StatusNotFound || answer.Code == http.StatusBadRequest) {
		return a, errors.New(answer.text)
	}
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	return a, decodeResponse(resp, &a)
}
