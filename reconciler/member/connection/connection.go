// Package connection sends requests to the API server of one member cluster.
//
// A Conn has the clients for the current credentials, and new ones once the credentials are
// replaced. All requests use the transports of this package, which limit the size of responses,
// remove credentials from errors and responses, and count requests. Config.Wrap adds other
// transports, such as ReadOnly.
package connection

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gitfleet/gitfleet/reconciler/member/memory"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// Config configures a connection. Cluster, Timeout and Metrics must be set.
type Config struct {
	Cluster string
	// Connect returns the credentials of the cluster. It is called every few seconds, so that
	// replaced credentials are used. If it is nil, the credentials never change.
	Connect func(context.Context) (*rest.Config, error)
	// Wrap, if set, wraps the transport of every request.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Timeout bounds every request except watches.
	Timeout time.Duration
	Metrics *Metrics
	Log     *slog.Logger
	// Memory is what this cluster may take of the memory that all clusters share; nil if nothing limits that.
	Memory *memory.Share
	// Refused, if set, is called with each error that may be due to a missing permission.
	Refused func(error)
}

// A Conn sends requests to one cluster. It is safe for concurrent use.
type Conn struct {
	cfg Config
	// current are the clients in use. They are replaced together with the credentials.
	current atomic.Pointer[Clients]
	// silent counts consecutive requests without a response.
	silent atomic.Int32
	// unchanged is what Connect returns as long as the credentials are those in use; nil if that cannot be told. Only Renew uses it.
	unchanged *rest.Config
	// kept limits the log lines about new credentials that do not work. Only Renew uses it.
	kept retry.LogLimiter
}

// Open reads the credentials and returns a connection. It sends no request.
func (c Config) Open(ctx context.Context) (*Conn, error) {
	credentials, err := c.credentials(ctx)
	if err != nil {
		return nil, err
	}
	return New(c, credentials)
}

// New returns a connection with credentials into which the files that they name were read. It
// sends no request.
func New(cfg Config, credentials *rest.Config) (*Conn, error) {
	clients, err := cfg.dial(credentials)
	if err != nil {
		return nil, err
	}
	c := &Conn{cfg: cfg}
	c.current.Store(clients)
	cfg.Metrics.setExpiry(cfg.Cluster, clients.validity)
	return c, nil
}

// Timeout bounds every request except watches.
func (c *Conn) Timeout() time.Duration { return c.cfg.Timeout }

// Memory returns the share of the cluster of the memory for all clusters; nil if there is no common limit.
func (c *Conn) Memory() *memory.Share { return c.cfg.Memory }

// Expiries returns what has a known end: the client certificate, the token, and the certificates of the CA that verify the
// server.
func (c *Conn) Expiries() []Expiry {
	cfg := c.clients().cfg
	return expiriesOf(cfg.CertData, cfg.BearerToken, cfg.CAData)
}

// Close closes the connections that are idle, and those in use soon after their last request. A later request opens new ones.
func (c *Conn) Close() { c.clients().Close() }

// clients returns the clients in use.
func (c *Conn) clients() *Clients { return c.current.Load() }

// REST returns the client for small requests, and watches.
func (c *Conn) REST() *rest.RESTClient { return c.clients().rest }

// Bulk returns the client for requests and answers that may be large.
func (c *Conn) Bulk() *rest.RESTClient { return c.clients().bulk }

// Metadata returns a client for the metadata of objects. Like the following ones it is created
// for each call, since such clients are large and rarely used.
func (c *Conn) Metadata() (metadata.Interface, error) {
	all := c.clients()
	return metadata.NewForConfigAndClient(metadata.ConfigFor(all.cfg), all.bulk.Client)
}

// Dynamic returns a client for whole objects of any kind.
func (c *Conn) Dynamic() (dynamic.Interface, error) {
	all := c.clients()
	return dynamic.NewForConfigAndClient(all.cfg, all.bulk.Client)
}

// Discovery returns a discovery client.
func (c *Conn) Discovery() (*discovery.DiscoveryClient, error) {
	all := c.clients()
	return discovery.NewDiscoveryClientForConfigAndClient(all.cfg, all.bulk.Client)
}

// Unstructured returns a controller-runtime client for objects of the kinds that a mapper
// knows.
func (c *Conn) Unstructured(kinds meta.RESTMapper) (client.Client, error) {
	all := c.clients()
	return client.New(all.cfg, client.Options{
		HTTPClient: all.bulk.Client, Scheme: runtime.NewScheme(), Mapper: kinds,
		Log: logr.FromSlogHandler(slog.DiscardHandler), // without a logger, controller-runtime prints that none was set, with a stack trace
	})
}

// Ready returns an error if the API server does not say that it is ready.
func (c *Conn) Ready(ctx context.Context) error { return c.clients().ready(ctx) }

// RecordRefusal calls Config.Refused with the error of a request.
func (c *Conn) RecordRefusal(err error) {
	if c.cfg.Refused != nil {
		c.cfg.Refused(err)
	}
}

// CutOff reports whether the server has stopped answering.
func (c *Conn) CutOff() bool { return c.silent.Load() >= 3 }

// Restored records that the server answers again.
func (c *Conn) Restored() { c.silent.Store(0) }
