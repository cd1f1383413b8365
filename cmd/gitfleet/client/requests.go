package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Report returns the newest report about a placement or a cluster, or about everything.
func (c *Client) Report(ctx context.Context, of Subject) (*status.Report, error) {
	r, _, err := c.Reports(of)(ctx, "")
	return r, err
}

// Trace requests the trace of an object on a member cluster. The name is one that api.ParseObject
// accepts. An empty cluster is the only one that has the object.
func (c *Client) Trace(ctx context.Context, name, namespace, cluster string) (*status.Trace, error) {
	object, err := api.ParseObject(name, namespace)
	if err != nil {
		return nil, err
	}
	t := &status.Trace{}
	err = c.Get(ctx, "/trace", url.Values{
		"kind": {object.Kind}, "namespace": {object.Namespace}, "name": {object.Name}, "cluster": {api.ClusterName(cluster)},
	}, t)
	if answer, ok := errors.AsType[*ResponseError](err); ok && answer.Code == http.StatusBadRequest {
		err = errors.New(answer.text) // several namespaces or clusters have such an object
	}
	return t, err
}

// Contains reports whether the history of a commit contains another commit, which is given by its
// hash or the beginning of it. Every history contains an empty one. If the daemon does not support
// the request, the result is false.
func (c *Client) Contains(ctx context.Context, head, commit string) (bool, error) {
	if head == "" || strings.HasPrefix(head, commit) {
		return head != "", nil
	}
	var answer server.Containment
	err := c.Get(ctx, "/contains", url.Values{"head": {head}, "commit": {commit}}, &answer)
	if wrong, ok := errors.AsType[*ResponseError](err); ok && wrong.Code == http.StatusNotFound {
		return false, nil
	}
	return answer.Contains, err
}

// Act sends an order in the name of the local user, for whom a daemon that authenticates requests
// takes the authenticated one. If the daemon refuses it, the error has only the daemon's message.
func (c *Client) Act(ctx context.Context, action string, o reconciler.Order) (server.ActionResult, error) {
	var a server.ActionResult
	o.By = cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME"), "unknown")
	resp, err := c.Do(ctx, http.MethodPost, "/actions/"+action, nil, o)
	if answer, ok := errors.AsType[*ResponseError](err); ok && !answer.isUnknownName() && (answer.Code == http.StatusNotFound || answer.Code == http.StatusBadRequest) {
		return a, errors.New(answer.text)
	}
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	return a, decodeResponse(resp, &a)
}
