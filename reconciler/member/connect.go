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

// A conn is the clients of a cluster, over two connections.
type conn struct {
	rest *rest.RESTClient // for small requests, and watches
	bulk *rest.RESTClient // for requests and answers that may be large

	cfg        *rest.Config
	bulkClient *http.Client
	close      func()
	// credentials identify those that the clients use.
	credentials fingerprint
}

// connect makes the clients of a cluster. It makes no request.
func (a *Agent) connect(ctx context.Context) (*conn, error) {
	cfg, err := a.credentials(ctx)
	if err != nil {
		return nil, err
	}
	return a.dial(cfg)
}

// dial is connect with credentials whose files have been read.
func (a *Agent) dial(cfg *rest.Config) (*conn, error) {
	credentials := fingerprintOf(cfg)
	cfg.UserAgent = "gitfleet"
	cfg.QPS = -1 // the server limits the rate itself; it answers 429 and Retry-After
	cfg.Timeout = 0
	cfg.WarningHandler = rest.NoWarnings{} // they would be logged in the server's words
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &meter{next, a.cfg.Metrics, a.cfg.Name} })
	if a.cfg.Wrap != nil {
		cfg.Wrap(a.cfg.Wrap)
	}
	c, err := newConn(cfg)
	if err != nil {
		return nil, fmt.Errorf("use the credentials: %w", err)
	}
	c.credentials = credentials
	return c, nil
}

func newConn(cfg *rest.Config) (*conn, error) {
	client, bulk, closeIdle, err := newClients(cfg)
	if err != nil {
		return nil, err
	}
	c := &conn{cfg: cfg, bulkClient: bulk, close: closeIdle}
	raw := rest.CopyConfig(cfg)
	raw.GroupVersion = &schema.GroupVersion{}
	raw.NegotiatedSerializer = statusCodec
	if c.rest, err = rest.RESTClientForConfigAndClient(raw, client); err != nil {
		return nil, err
	}
	if c.bulk, err = rest.RESTClientForConfigAndClient(raw, bulk); err != nil {
		return nil, err
	}
	return c, nil
}

// The following clients are made when they are needed: they are large, and rarely used.

func (c *conn) metadata() (metadata.Interface, error) {
	return metadata.NewForConfigAndClient(metadata.ConfigFor(c.cfg), c.bulkClient)
}

func (c *conn) dynamic() (dynamic.Interface, error) {
	return dynamic.NewForConfigAndClient(c.cfg, c.bulkClient)
}

func (c *conn) discovery() (*discovery.DiscoveryClient, error) {
	return discovery.NewDiscoveryClientForConfigAndClient(c.cfg, c.bulkClient)
}

// statusCodec decodes the errors of an API server; everything else is decoded here.
var statusCodec = func() runtime.NegotiatedSerializer {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(s).WithoutConversion()
}()
