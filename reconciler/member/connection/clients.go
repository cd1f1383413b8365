package connection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/member/memory"
)

// Clients are the clients of a cluster for one set of credentials. They use two connections.
type Clients struct {
	rest *rest.RESTClient // for small requests and watches
	bulk *rest.RESTClient // for large requests and responses

	// base is the URL of the API server. applyHeader has the request headers of server-side applies.
	base        *url.URL
	applyHeader applyHeader

	cfg       *rest.Config
	quota     *quota
	closeIdle func()
	// credentials is the fingerprint of the credentials.
	credentials fingerprint
	validity    validity
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
	all, err := newClients(cfg, c.Memory)
	if err != nil {
		return nil, fmt.Errorf("use the credentials: %w", err)
	}
	all.credentials, all.validity = credentials, validityOf(cfg)
	return all, nil
}

func newClients(cfg *rest.Config, share *memory.Share) (*Clients, error) {
	shared := newQuota(share)
	client, bulk, closeIdle, err := newHTTPClients(cfg, shared)
	if err != nil {
		return nil, err
	}
	c := &Clients{cfg: rest.CopyConfig(cfg), quota: shared, closeIdle: closeIdle, applyHeader: newApplyHeader(cfg)}
	c.cfg.ExecProvider = nil // only the transports need it, and copies of a configuration write to it
	if c.rest, err = c.over(client); err != nil {
		return nil, err
	}
	if c.bulk, err = c.over(bulk); err != nil {
		return nil, err
	}
	c.base = c.rest.Get().AbsPath().URL()
	return c, nil
}

// An applyHeader has the request headers of server-side applies, for responses with the whole object and with metadata only. All
// requests share them, so that they must not be changed.
type applyHeader struct {
	whole, metadata http.Header
	// plugin says that a credential plugin adds its token to the headers of each request, which is then a copy.
	plugin bool
}

func newApplyHeader(cfg *rest.Config) applyHeader {
	with := func(accept string) http.Header {
		h := http.Header{"Content-Type": {string(types.ApplyPatchType)}, "Accept": {accept}, "User-Agent": {cfg.UserAgent}}
		if cfg.BearerToken != "" && cfg.BearerTokenFile == "" {
			h.Set("Authorization", "Bearer "+cfg.BearerToken) // so that no transport copies the headers to add it
		}
		return h
	}
	return applyHeader{with("application/json"), with(AcceptMetadata), cfg.ExecProvider != nil}
}

// over returns a client that sends its requests by another one.
func (c *Clients) over(client *http.Client) (*rest.RESTClient, error) {
	raw := rest.CopyConfig(c.cfg)
	raw.GroupVersion, raw.NegotiatedSerializer = &schema.GroupVersion{}, statusCodec
	return rest.RESTClientForConfigAndClient(raw, client)
}

// patch returns a server-side apply that client-go sends by an HTTP client.
func (c *Clients) patch(by *http.Client) *rest.Request {
	return rest.NewRequestWithClient(c.base, "", statusContent, by).WarningHandler(rest.NoWarnings{}).Verb(http.MethodPatch).
		SetHeader("Content-Type", string(types.ApplyPatchType))
}

func (c *Clients) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	err := c.rest.Get().AbsPath("readyz").MaxRetries(0).Do(ctx).Error()
	var status apierrors.APIStatus
	if errors.As(err, &status) && !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("health probe failed with status code %d", status.Status().Code)
	}
	return err
}

// readyWithin is how long a server may take to answer the readiness check. A server that hangs
// counts as reachable for that time plus the time between two probes.
const readyWithin = 5 * time.Second

// Close is Conn.Close for the connections with one set of credentials.
func (c *Clients) Close() { c.closeIdle() }

// statusCodec decodes the errors of an API server; everything else is decoded here.
var statusCodec = func() runtime.NegotiatedSerializer {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(s).WithoutConversion()
}()

// statusContent is the content of requests that statusCodec decodes.
var statusContent = rest.ClientContentConfig{Negotiator: runtime.NewClientNegotiator(statusCodec, schema.GroupVersion{})}
