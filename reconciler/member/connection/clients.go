package connection

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Clients are the clients of a cluster for one set of credentials. They use two connections.
type Clients struct {
	rest *rest.RESTClient // for small requests and watches
	bulk *rest.RESTClient // for large requests and responses

	cfg       *rest.Config
	closeIdle func()
	// credentials is the fingerprint of the credentials.
	credentials fingerprint
}

// dial creates the clients for a configuration into which the files that it names were read. It
// sends no request.
func (c Config) dial(cfg *rest.Config) (*Clients, error) {
	cfg = rest.CopyConfig(cfg)
	credentials := fingerprintOf(cfg)
	cfg.UserAgent = "gitfleet"
	cfg.QPS = -1 // the server limits the rate with 429 and Retry-After
	cfg.Timeout = 0
	cfg.WarningHandler = rest.NoWarnings{} // warnings would be logged in the server's words
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &meter{next, c.Metrics, c.Cluster} })
	if c.Wrap != nil {
		cfg.Wrap(c.Wrap)
	}
	all, err := newClients(cfg)
	if err != nil {
		return nil, fmt.Errorf("use the credentials: %w", err)
	}
	all.credentials = credentials
	return all, nil
}

func newClients(cfg *rest.Config) (*Clients, error) {
	client, bulk, closeIdle, err := newHTTPClients(cfg)
	if err != nil {
		return nil, err
	}
	c := &Clients{cfg: cfg, closeIdle: closeIdle}
	raw := rest.CopyConfig(cfg)
	raw.GroupVersion, raw.NegotiatedSerializer = &schema.GroupVersion{}, statusCodec
	if c.rest, err = rest.RESTClientForConfigAndClient(raw, client); err != nil {
		return nil, err
	}
	if c.bulk, err = rest.RESTClientForConfigAndClient(raw, bulk); err != nil {
		return nil, err
	}
	return c, nil
}

// Close closes the connections that are idle.
func (c *Clients) Close() { c.closeIdle() }

// statusCodec decodes the errors of an API server; everything else is decoded here.
var statusCodec = func() runtime.NegotiatedSerializer {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(s).WithoutConversion()
}()
