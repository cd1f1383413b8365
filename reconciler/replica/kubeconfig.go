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

// A kubeconfigFile has the credentials for the management cluster. The file is read again while
// it is in use. If it cannot be used, or names another server, that is logged and the old
// credentials are kept, since another server may be another cluster with its own Lease.
type kubeconfigFile struct {
	path, host string
	log        *slog.Logger

	mu         sync.Mutex
	read       time.Time // when the file was last read
	content    []byte
	transports []*kubeconfigTransport
}

// A kubeconfigTransport sends requests with the credentials of the file. The file's lock guards
// current.
type kubeconfigTransport struct {
	file    *kubeconfigFile
	protos  []string // protocols that are offered to the server; nil for the default
	current http.RoundTripper
}

// openKubeconfig reads the file for the first time. host is the server in it.
func openKubeconfig(path, host string, log *slog.Logger) (*kubeconfigFile, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the management cluster: %w", err)
	}
	return &kubeconfigFile{path: path, host: host, log: log, read: time.Now(), content: content}, nil
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

// client returns a client configuration that always uses the current credentials of the file.
func (f *kubeconfigFile) client(config *rest.Config) (*rest.Config, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	t := &kubeconfigTransport{file: f, protos: config.NextProtos}
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.current, err = f.load(t.protos); err != nil {
		return nil, err
	}
	f.transports = append(f.transports, t)
	return &rest.Config{
		Host: base.String(), Transport: t, Timeout: config.Timeout,
		UserAgent: config.UserAgent, QPS: config.QPS, ContentConfig: config.ContentConfig,
	}, nil
}

// load returns a transport with the credentials of the file.
func (f *kubeconfigFile) load(protos []string) (http.RoundTripper, error) {
	config, err := loadKubeconfig(f.path)
	if err != nil {
		return nil, err
	}
	if config.Host != f.host {
		return nil, fmt.Errorf("its server is %s and was %s: restart all replicas to change the cluster", config.Host, f.host)
	}
	config.NextProtos = protos
	return rest.TransportFor(config)
}

// RoundTrip implements http.RoundTripper.
func (t *kubeconfigTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.file.newest(t).RoundTrip(req)
}

// newest returns the transport to use, after reading the file again if that is due.
func (f *kubeconfigFile) newest(t *kubeconfigTransport) http.RoundTripper {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.read) < rereadPeriod {
		return t.current
	}
	f.read = time.Now()
	content, err := os.ReadFile(f.path)
	if err != nil || bytes.Equal(content, f.content) {
		return t.current // a file that is being replaced will soon exist again
	}
	f.content = content // its problem is logged only once
	if err := f.replace(); err != nil {
		f.log.Warn("kubeconfig of the management cluster cannot be used; the credentials from before are kept", "file", f.path, "err", err)
	} else {
		f.log.Info("kubeconfig of the management cluster read again", "file", f.path)
	}
	return t.current
}

// replace makes all transports use the current content of the file. If that is unusable, none
// of them changes.
func (f *kubeconfigFile) replace() error {
	replaced := make([]http.RoundTripper, len(f.transports))
	for i, t := range f.transports {
		var err error
		if replaced[i], err = f.load(t.protos); err != nil {
			return err
		}
	}
	for i, t := range f.transports {
		utilnet.CloseIdleConnectionsFor(t.current)
		t.current = replaced[i]
	}
	return nil
}
