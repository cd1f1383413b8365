package main

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"

	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// person returns the name of the local user. A daemon that authenticates the request uses the
// authenticated name instead.
func person() string { return cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME"), "unknown") }

// act sends an order to the daemon. If the daemon refuses it, the error is the daemon's message
// alone.
func (c *client) act(ctx context.Context, action string, o reconciler.Order) (server.ActionResult, error) {
	var a server.ActionResult
	resp, err := c.do(ctx, http.MethodPost, "/actions/"+action, nil, o)
	var answer *answerError
	if errors.As(err, &answer) && !answer.isUnknownName() && (answer.code == http.StatusNotFound || answer.code == http.StatusBadRequest) {
		return a, errors.New(answer.text)
	}
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	return a, understand(resp, &a)
}
