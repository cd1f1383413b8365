package settings

import (
	"net"

	"github.com/gitfleet/gitfleet/reconciler/server/access"
)

// ServerConfig configures access to the daemon.
type ServerConfig struct {
	CertFile        string `json:"certFile,omitempty"`
	KeyFile         string `json:"keyFile,omitempty"`
	TokenFile       string `json:"tokenFile,omitempty"`
	ClientCAFile    string `json:"clientCAFile,omitempty"`
	Unauthenticated bool   `json:"allowUnauthenticated,omitempty"`
	OpenMetrics     bool   `json:"openMetrics,omitempty"`
	// Delegated delegates authentication and authorization to the cluster of Kubeconfig, or to
	// the cluster in which gitfleet runs if Kubeconfig is empty.
	Delegated  bool   `json:"delegated,omitempty"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
}

func (s *ServerConfig) settings() []setting {
	return []setting{
		{"server.certFile", &s.CertFile, "file with the certificate to answer with over TLS"},
		{"server.keyFile", &s.KeyFile, "file with the key of that certificate"},
		{"server.tokenFile", &s.TokenFile, "file with the tokens of those who may ask: in each line one, or TOKEN,USER"},
		{"server.clientCAFile", &s.ClientCAFile, "file with the certificates that vouch for those of clients who may ask"},
		{"server.allowUnauthenticated", &s.Unauthenticated, "let everybody ask who reaches the address, and not this machine only"},
		{"server.openMetrics", &s.OpenMetrics, "let everybody read /metrics"},
		{"server.delegated", &s.Delegated, "let a Kubernetes cluster authenticate and authorize requests, such as the one gitfleet runs in"},
		{"server.kubeconfig", &s.Kubeconfig, "kubeconfig of the cluster to ask, if it is another"},
	}
}

// AccessConfig returns the configuration of the access to the daemon.
func (c Config) AccessConfig() access.Config {
	return access.Config{
		Listen: c.Listen, CertFile: c.Server.CertFile, KeyFile: c.Server.KeyFile, TokenFile: c.Server.TokenFile,
		ClientCAFile: c.Server.ClientCAFile, Unauthenticated: c.Server.Unauthenticated, OpenMetrics: c.Server.OpenMetrics,
		Delegated: c.Server.Delegated, Kubeconfig: c.Server.Kubeconfig,
	}
}

// LocalAddress returns the address at which a daemon with this configuration can be reached
// from its own machine.
func (c Config) LocalAddress() string {
	scheme := "http"
	if c.Server.CertFile != "" {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return scheme + "://localhost:" + port
	}
	return scheme + "://" + c.Listen
}
