package main

import (
	"context"
	"path/filepath"

	"github.com/gitfleet/gitfleet/test/checkout"
)

func (d *demo) buildProduct(ctx context.Context) (string, error) {
	d.binary = filepath.Join(d.root, "build", "gitfleet")
	// With the flags of "make build", so that both share the build cache.
	args := []string{"-trimpath", "-ldflags=-s -w -X github.com/gitfleet/gitfleet/cmd/gitfleet/version.Release=", "./cmd/gitfleet"}
	return d.short(d.binary), checkout.Build(ctx, d.root, []string{"CGO_ENABLED=0"}, d.binary, args...)
}

// buildControlPlane builds the binary that runs clusters, which tests use too.
func (d *demo) buildControlPlane(ctx context.Context) (string, error) {
	var err error
	d.controlPlane, err = checkout.ControlPlane(ctx, "etcd", "kube-apiserver", "kube-controller-manager")
	return d.short(d.controlPlane), err
}
