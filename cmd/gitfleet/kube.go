package main

import (
	"context"
	"net/http"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/server/access"
	"github.com/gitfleet/gitfleet/reconciler/server/kubeapi"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// ServerConfig configures access to the daemon.
type ServerConfig struct {
	CertFile        string `json:"certFile,omitempty"`
	KeyFile         string `json:"keyFile,omitempty"`
	TokenFile       string `json:"tokenFile,omitempty"`
	ClientCAFile    string `json:"clientCAFile,omitempty"`
	Unauthenticated bool   `json:"allowUnauthenticated,omitempty"`
	OpenMetrics     bool   `json:"openMetrics,omitempty"`
	// Delegated delegates authentication and authorization to the cluster that gitfleet runs
	// in, or to that of Kubeconfig.
	Delegated  bool   `json:"delegated,omitempty"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
}

func (s *ServerConfig) settings() []setting {
	return []setting{
		{"server.certFile", &s.CertFile, "file with the certificate to answer with over TLS"},
		{"server.keyFile", &s.KeyFile, "file with the key of that certificate"},
		{"server.tokenFile", &s.TokenFile, "file with the tokens of those who may ask: in each line one, or TOKEN,USER"},
		{"server.clientCAFile", &s.ClientCAFile, "file with the certificates that vouch for those of clients who may ask"},
		{"server.allowUnauthenticated", &s.Unauthenticated, "let everybody ask who reaches the address, and not this machine only"},
		{"server.openMetrics", &s.OpenMetrics, "let everybody read /metrics"},
		{"server.delegated", &s.Delegated, "let a Kubernetes cluster authenticate and authorize requests, such as the one gitfleet runs in"},
		{"server.kubeconfig", &s.Kubeconfig, "kubeconfig of the cluster to ask, if it is another"},
	}
}

// access returns how access to the daemon is controlled.
func (c Config) access() access.Config {
	return access.Config{
		Listen: c.Listen, CertFile: c.Server.CertFile, KeyFile: c.Server.KeyFile, TokenFile: c.Server.TokenFile,
		ClientCAFile: c.Server.ClientCAFile, Unauthenticated: c.Server.Unauthenticated, OpenMetrics: c.Server.OpenMetrics,
		Delegated: c.Server.Delegated, Kubeconfig: c.Server.Kubeconfig,
	}
}

// serveKube makes the server serve the Kubernetes API too and check access, and returns the
// function with which reports are published.
func (c Config) serveKube(ctx context.Context, srv *server.Server) (func(*status.Report), error) {
	guard, err := access.New(ctx, c.access())
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
