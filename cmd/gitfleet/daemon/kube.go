package daemon

import (
	"context"
	"net/http"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/server/access"
	"github.com/gitfleet/gitfleet/reconciler/server/kubeapi"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// serveKube makes the server serve the Kubernetes API too and check access, and returns the
// function with which reports are published.
func serveKube(ctx context.Context, c settings.Config, srv *server.Server) (func(*status.Report), error) {
	guard, err := access.New(ctx, c.AccessConfig())
	if err != nil {
		return nil, err
	}
	kube, err := kubeapi.New(kubeapi.Config{Store: store.New(time.Now()), Authorizer: guard.Authorizer()})
	if err != nil {
		return nil, err
	}
	for _, path := range kubeapi.Paths() {
		srv.Mount(path, kube)
	}
	srv.Protect(guard.TLS(), func(h http.Handler) http.Handler { return guard.Wrap(h, kubeapi.Serves) })
	return func(r *status.Report) {
		srv.Publish(r)
		kube.Publish(r)
	}, nil
}
