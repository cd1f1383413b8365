package main

import (
	"time"

	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/server/kubeapi"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// serveKube makes the server answer as a Kubernetes API does too, and returns
// what a report has to be published with.
func serveKube(srv *server.Server) (func(*status.Report), error) {
	kube, err := kubeapi.New(kubeapi.Config{Store: store.New(time.Now())})
	if err != nil {
		return nil, err
	}
	for _, path := range kubeapi.Paths() {
		srv.Mount(path, kube)
	}
	return func(r *status.Report) {
		srv.Publish(r)
		kube.Publish(r)
	}, nil
}
