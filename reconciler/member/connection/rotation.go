package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// CredentialsPoll is the time between two checks for replaced credentials.
const CredentialsPoll = 5 * time.Second

// A Rotation is the result of a check for new credentials.
type Rotation struct {
	// Replaced are the clients that still use the old credentials.
	Replaced []*Clients
	// Another is set if the new credentials may be those of another cluster.
	Another error
	// Unrenewed is the reason why credentials that were replaced or removed are not used, but those from before; empty if the configured
	// ones are.
	Unrenewed string
}

// renewWithin limits the duration of a check for new credentials.
const renewWithin = 10 * time.Second

// Renew switches to new credentials if they were replaced. It refuses credentials that do not
// work and those of a cluster whose UID is not uid. Only one goroutine may call it.
func (c *Conn) Renew(ctx context.Context, uid string) (r Rotation) {
	if c.cfg.Connect == nil {
		return r
	}
	err := c.tryRenewal(ctx, uid, &r)
	switch {
	case err == nil:
		c.kept = retry.LogLimiter{}
	case ctx.Err() == nil:
		r.Unrenewed = WithoutPort(Plain(err))
		if c.kept.Due(r.Unrenewed) {
			c.cfg.Log.Warn("configured credentials cannot be used; keeping those from before", "cluster", c.cfg.Cluster, "err", Plain(err))
		}
	}
	return r
}

func (c *Conn) tryRenewal(ctx context.Context, uid string, r *Rotation) error {
	ctx, cancel := context.WithTimeout(ctx, min(c.cfg.Timeout, renewWithin))
	defer cancel()
	connect, err := c.cfg.Connect(ctx)
	if err != nil {
		return err
	}
	if connect == c.unchanged {
		return nil
	}
	cfg, err := read(connect)
	if err != nil {
		return err
	}
	if fingerprintOf(cfg) == c.clients().credentials {
		if !namesFiles(connect) {
			c.unchanged = connect
		}
		return nil
	}
	all, err := c.cfg.dial(cfg)
	if err != nil {
		return err
	}
	found, err := all.identify(ctx)
	switch {
	case err != nil && (uid != "" || !Answered(err)):
		all.Close()
		return err
	case found == "" || found != uid:
		all.Close()
		r.Another = errors.New("the credentials were replaced, and may be of another cluster")
		return nil
	}
	c.cfg.Log.Info("credentials renewed", "cluster", c.cfg.Cluster)
	c.cfg.Metrics.setExpiry(c.cfg.Cluster, all.validity)
	r.Replaced = append(r.Replaced, c.current.Swap(all))
	c.unchanged = nil
	return nil
}

// identify returns the UID of the kube-system namespace of a cluster that is ready. Anybody may ask
// whether it is ready, so that credentials which may not read the namespace may be no credentials.
func (c *Clients) identify(ctx context.Context) (string, error) {
	if err := c.ready(ctx); err != nil {
		return "", err
	}
	raw, err := Answer(c.rest.Get().AbsPath("api/v1/namespaces/"+metav1.NamespaceSystem).SetHeader("Accept", AcceptMetadata).Do(ctx))
	if err != nil {
		return "", fmt.Errorf("read namespace %s: %w", metav1.NamespaceSystem, err)
	}
	var m metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &m); err != nil {
		return "", fmt.Errorf("read namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(m.UID), nil
}

// SleepUntilRenewed waits for d, or until the credentials have changed or ctx is done.
func (c Config) SleepUntilRenewed(ctx context.Context, d time.Duration) {
	state := func() (fingerprint, string) {
		cfg, err := c.credentials(ctx)
		if err != nil {
			return fingerprint{}, err.Error()
		}
		return fingerprintOf(cfg), ""
	}
	if d <= CredentialsPoll {
		retry.Sleep(ctx, d)
		return
	}
	was, failed := state()
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; {
		retry.Sleep(ctx, min(CredentialsPoll, time.Until(end)))
		if is, fails := state(); is != was || fails != failed {
			return
		}
	}
}
