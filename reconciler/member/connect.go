package member

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// A conn is one connection to a cluster: several clients over one transport.
type conn struct {
	rest      *rest.RESTClient
	metadata  metadata.Interface
	dynamic   dynamic.Interface
	discovery *discovery.DiscoveryClient
	http      *http.Client
}

// connect makes the clients of a cluster. It asks nothing of it yet.
func (a *Agent) connect(ctx context.Context) (*conn, error) {
	cfg, err := a.cfg.Connect(ctx)
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = "gitfleet"
	cfg.QPS = -1 // the server's own fairness decides; it answers 429 and Retry-After
	cfg.Timeout = 0
	if a.cfg.Wrap != nil {
		cfg.Wrap(a.cfg.Wrap)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("use the credentials: %w", err)
	}
	return newConn(cfg, client)
}

func newConn(cfg *rest.Config, client *http.Client) (*conn, error) {
	c := &conn{http: client}
	var err error
	if c.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(cfg), client); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(cfg, client); err != nil {
		return nil, err
	}
	if c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(cfg, client); err != nil {
		return nil, err
	}
	raw := rest.CopyConfig(cfg)
	raw.GroupVersion = &schema.GroupVersion{}
	raw.NegotiatedSerializer = statusCodec
	if c.rest, err = rest.RESTClientForConfigAndClient(raw, client); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *conn) close() { c.http.CloseIdleConnections() }

// statusCodec reads the errors an API server answers with; everything else we
// read ourselves.
var statusCodec = func() runtime.NegotiatedSerializer {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(s).WithoutConversion()
}()
