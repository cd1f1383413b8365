package member

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// credentialsPoll is the time between two checks whether credentials were replaced.
const credentialsPoll = 5 * time.Second

// credentials returns the current client configuration of the cluster. Files that it names have
// been read, so that no part of it changes afterwards.
func (a *Agent) credentials(ctx context.Context) (*rest.Config, error) {
	cfg, err := a.cfg.Connect(ctx)
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return nil, fmt.Errorf("read the certificates of the credentials: %w", err)
	}
	cfg.CAFile, cfg.CertFile, cfg.KeyFile = "", "", ""
	if cfg.BearerTokenFile != "" {
		token, err := os.ReadFile(cfg.BearerTokenFile)
		if err != nil {
			return nil, fmt.Errorf("read the token of the credentials: %w", err)
		}
		if cfg.BearerToken = strings.TrimSpace(string(token)); cfg.BearerToken == "" {
			return nil, fmt.Errorf("read the token of the credentials: %s is empty", cfg.BearerTokenFile)
		}
		cfg.BearerTokenFile = ""
	}
	return cfg, nil
}

// A fingerprint identifies credentials.
type fingerprint [sha256.Size]byte

// fingerprintOf returns the fingerprint of credentials whose files have been read.
func fingerprintOf(cfg *rest.Config) fingerprint {
	proxy := ""
	if cfg.Proxy != nil {
		if r, err := http.NewRequest(http.MethodGet, cfg.Host, nil); err == nil {
			u, err := cfg.Proxy(r)
			proxy = fmt.Sprint(u, err)
		}
	}
	text, err := json.Marshal([]any{
		cfg.Host, cfg.APIPath, cfg.Username, cfg.Password, cfg.BearerToken, cfg.Impersonate, cfg.ServerName, cfg.Insecure,
		cfg.CAData, cfg.CertData, cfg.KeyData, cfg.DisableCompression, proxy, cfg.ExecProvider, cfg.AuthProvider,
	})
	if err != nil {
		text = []byte(err.Error()) // a program renews its credentials itself
	}
	return sha256.Sum256(text)
}

// A rotation is the result of a check for new credentials.
type rotation struct {
	// replaced are connections with credentials that were replaced.
	replaced []*conn
	// another is why the session cannot go on with the new credentials; nil if it can.
	another error
}

// renew switches to new credentials if they were replaced. Those that do not work are not used:
// failure says why, and the old ones are kept.
func (s *session) renew(ctx context.Context) (r rotation) {
	err := s.tryRenewal(ctx, &r)
	s.probing.unrenewed = ""
	switch {
	case err == nil:
		s.probing.kept = retry.LogLimiter{}
	case ctx.Err() == nil:
		s.probing.unrenewed = plain(err).Error()
		if s.probing.kept.Due(withoutPort(err)) {
			s.cfg.Log.Warn("new credentials cannot be used; keeping the old ones", "cluster", s.cfg.Name, "err", plain(err))
		}
	}
	return r
}

func (s *session) tryRenewal(ctx context.Context, r *rotation) error {
	ctx, cancel := context.WithTimeout(ctx, min(s.cfg.Timeout, observedWithin))
	defer cancel()
	cfg, err := s.credentials(ctx)
	if err != nil {
		return err
	}
	if fingerprintOf(cfg) == s.conn().credentials {
		return nil
	}
	c, err := s.dial(cfg)
	if err != nil {
		return err
	}
	uid, err := c.identify(ctx)
	switch {
	case err != nil:
		c.close()
		return err
	case uid == "" || uid != s.probing.uid:
		c.close()
		r.another = errors.New("the credentials were replaced, and may be of another cluster")
		return nil
	}
	s.cfg.Log.Info("credentials renewed", "cluster", s.cfg.Name)
	r.replaced = append(r.replaced, s.link.Swap(c))
	return nil
}

// identify returns the UID of the kube-system namespace of a cluster that is ready; empty if it
// may not be read.
func (c *conn) identify(ctx context.Context) (string, error) {
	if err := c.ready(ctx); err != nil {
		return "", err
	}
	raw, err := answer(c.rest.Get().AbsPath("api/v1/namespaces/"+metav1.NamespaceSystem).SetHeader("Accept", acceptMetadata).Do(ctx))
	if answered(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var m metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &m); err != nil {
		return "", fmt.Errorf("read namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(m.UID), nil
}

// moveOn makes watches resume over the connection with the new credentials, and closes the
// other connections.
func (s *session) moveOn(replaced []*conn) {
	for _, k := range s.watch {
		k.reconnect()
	}
	for _, c := range replaced {
		c.close()
	}
}

// sleepUntilRenewed waits for d, or until the credentials have changed or ctx is done.
func (a *Agent) sleepUntilRenewed(ctx context.Context, d time.Duration) {
	state := func() (fingerprint, string) {
		cfg, err := a.credentials(ctx)
		if err != nil {
			return fingerprint{}, err.Error()
		}
		return fingerprintOf(cfg), ""
	}
	if d <= credentialsPoll {
		retry.Sleep(ctx, d)
		return
	}
	was, failed := state()
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; {
		retry.Sleep(ctx, min(credentialsPoll, time.Until(end)))
		if is, fails := state(); is != was || fails != failed {
			return
		}
	}
}
