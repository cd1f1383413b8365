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

// rereadPeriod is how often a kubeconfig that is in use is read.
const rereadPeriod = 5 * time.Second

// A kubeconfigFile has the credentials of requests to the management cluster, and is read
// again while it is used. A file that cannot be used, or that names another server, is
// reported, and the credentials from before are kept: another server may be another cluster,
// with a Lease of its own.
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
	protos  []string // that are offered to the server; nil for the default
	current http.RoundTripper
}

// openKubeconfig reads the file for the first time. host is its server.
func openKubeconfig(path, host string, log *slog.Logger) (*kubeconfigFile, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the management cluster: %w", err)
	}
	return &kubeconfigFile{path: path, host: host, log: log, read: time.Now(), content: content}, nil
}

// loadKubeconfig returns the config of a client with the file's credentials. An empty file, as
// one that is just being written, is an error: clientcmd.BuildConfigFromFlags would take the
// cluster that gitfleet runs in.
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

// client returns the config of a client that uses the file, in place of one with the
// credentials that the file has now.
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

// newest returns what a transport uses, after the file was read again if that is due.
func (f *kubeconfigFile) newest(t *kubeconfigTransport) http.RoundTripper {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.read) < rereadPeriod {
		return t.current
	}
	f.read = time.Now()
	content, err := os.ReadFile(f.path)
	if err != nil || bytes.Equal(content, f.content) {
		return t.current // a file that is just being replaced is there again soon
	}
	f.content = content // whose problem is reported once
	if err := f.replace(); err != nil {
		f.log.Warn("kubeconfig of the management cluster cannot be used; the credentials from before are kept", "file", f.path, "err", err)
	} else {
		f.log.Info("kubeconfig of the management cluster read again", "file", f.path)
	}
	return t.current
}

// replace has all transports use what the file has now, or none if that cannot be used.
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
