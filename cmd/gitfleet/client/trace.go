package client

import (
	"context"
	"net/url"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Trace requests the trace of an object on a member cluster from the daemon. The name is one that
// api.ParseObject accepts.
func (c *Connection) Trace(ctx context.Context, name, namespace, cluster string) (*status.Trace, error) {
	object, err := api.ParseObject(name, namespace)
	if err != nil {
		return nil, err
	}
	daemon, err := c.Client()
	if err != nil {
		return nil, err
	}
	t := &status.Trace{}
	err = daemon.Get(ctx, "/trace", url.Values{
		"kind": {object.Kind}, "namespace": {object.Namespace}, "name": {object.Name}, "cluster": {api.ClusterName(cluster)},
	}, t)
	return t, err
}
