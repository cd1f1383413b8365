package replica

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// rereadPeriod is the minimum time between two reads of a kubeconfig that is in use.
const rereadPeriod = 5 * time.Second

// A kubeconfigTransport sends requests with the credentials of a kubeconfig. The file is read
// again while the transport is in use. If it cannot be used, or names another server, that is
// logged and the old credentials are kept, since another server may be another cluster with its
// own Lease.
type kubeconfigTransport struct {
	path, host string
	protos     []string // protocols that are offered to the server; nil for the default
	log        *slog.Logger

	mu      sync.Mutex
	read    time.Time // when the file was last read
	content []byte
	current http.RoundTripper
}

// reloading returns a client configuration that always uses the current credentials of a
// kubeconfig. config was read from it.
func reloading(config *rest.Config, path string, log *slog.Logger) (*rest.Config, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	t := &kubeconfigTransport{path: path, host: config.Host, protos: config.NextProtos, log: log, read: time.Now()}
	if t.content, err = os.ReadFile(path); err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the management cluster: %w", err)
	}
	if t.current, err = t.load(); err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: base.String(), Transport: t, Timeout: config.Timeout,
		UserAgent: config.UserAgent, QPS: config.QPS, ContentConfig: config.ContentConfig,
	}, nil
}

// loadKubeconfig returns the client configuration with the file's credentials. An empty file,
// such as one that is just being written, is an error: clientcmd.BuildConfigFromFlags would use
// the cluster in which gitfleet runs.
func loadKubeconfig(path string) (*rest.Config, error) {
	config, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}).Load()
	switch {
	case err != nil:
		return nil, err
	case clientcmdapi.IsConfigEmpty(config):
		return nil, fmt.Errorf("%s is empty", path)
	}
	return clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
}

// load returns a transport with the credentials of the file.
func (t *kubeconfigTransport) load() (http.RoundTripper, error) {
	config, err := loadKubeconfig(t.path)
	if err != nil {
		return nil, err
	}
	if config.Host != t.host {
		return nil, fmt.Errorf("its server is %s and was %s: restart all replicas to change the cluster", config.Host, t.host)
	}
	config.NextProtos = t.protos
	return rest.TransportFor(config)
}

// RoundTrip implements http.RoundTripper.
func (t *kubeconfigTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.newest().RoundTrip(req)
}

// newest returns the transport to use, after reading the file again if that is due.
func (t *kubeconfigTransport) newest() http.RoundTripper {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.read) < rereadPeriod {
		return t.current
	}
	t.read = time.Now()
	content, err := os.ReadFile(t.path)
	if err != nil || bytes.Equal(content, t.content) {
		return t.current // a file that is being replaced will soon exist again
	}
	t.content = content // its problem is logged only once
	next, err := t.load()
	if err != nil {
		t.log.Warn("kubeconfig of the management cluster cannot be used; the credentials from before are kept", "file", t.path, "err", err)
		return t.current
	}
	t.log.Info("kubeconfig of the management cluster read again", "file", t.path)
	utilnet.CloseIdleConnectionsFor(t.current)
	t.current = next
	return next
}
