// Package access authenticates and authorizes requests to the daemon.
//
// On an address that only this machine can reach, all requests are allowed. On others, clients
// need a token or a certificate, over TLS. In a management cluster, the API server
// authenticates and authorizes them.
package access

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Config configures the access. The zero value is for a local address.
type Config struct {
	// Listen is the address that the daemon listens on.
	Listen string
	// CertFile and KeyFile are for TLS. Like the other files they are read again when they
	// change.
	CertFile, KeyFile string
	// TokenFile has one token per line, optionally followed by a comma and a user name.
	TokenFile string
	// ClientCAFile has the CA certificates of client certificates.
	ClientCAFile string
	// Unauthenticated allows all requests on any address.
	Unauthenticated bool
	// OpenMetrics allows everybody to read /metrics.
	OpenMetrics bool
	// Delegated delegates authentication and authorization to a cluster: that of Kubeconfig, or
	// the one in which gitfleet runs.
	Delegated  bool
	Kubeconfig string
}

// authenticates reports whether there is any authentication.
func (c Config) authenticates() bool {
	return c.TokenFile != "" || c.ClientCAFile != "" || c.Delegated
}

// A FieldError says what is wrong with a setting. Field is its key in the configuration file.
type FieldError struct{ Field, Message string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

// Validate returns the first contradiction between settings; nil if there is none.
func (c Config) Validate() *FieldError {
	switch {
	case (c.CertFile == "") != (c.KeyFile == ""):
		return &FieldError{"server.certFile", "goes together with server.keyFile: set both, or neither"}
	case c.authenticates() && c.CertFile == "":
		return &FieldError{"server.certFile", "missing; authentication needs TLS, so set it and server.keyFile"}
	case c.Kubeconfig != "" && !c.Delegated:
		return &FieldError{"server.kubeconfig", "is of use with server.delegated only; set that too, or remove it"}
	case c.authenticates() && c.Unauthenticated:
		return &FieldError{"server.allowUnauthenticated", "cannot be combined with authentication; remove it, or the authentication settings"}
	case !c.authenticates() && !c.Unauthenticated && !local(c.Listen):
		return &FieldError{"listen", c.Listen + " can be reached from other machines without authentication; " +
			"set server.certFile and server.keyFile with server.tokenFile or server.clientCAFile, or listen on 127.0.0.1, or set server.allowUnauthenticated"}
	}
	return nil
}

// local reports whether an address is reachable from this machine only.
func local(listen string) bool {
	_, _, err := net.SplitHostPort(listen)
	return err == nil && IsLocalHost(listen)
}

// IsLocalHost reports whether a host, with or without a port, is localhost or a loopback address.
// It looks up no names. Of the Host header of a request it says whether a client on this machine
// sent it, and not a web page whose name resolves to this machine.
func IsLocalHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// A Guard protects a server.
type Guard struct {
	cfg  Config
	tls  *tls.Config
	who  authenticator.Request
	may  authorizer.Authorizer
	site *http.CrossOriginProtection
}

// New returns a guard, and reads all files. It watches the cluster until ctx is done.
func New(ctx context.Context, cfg Config) (*Guard, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := &Guard{cfg: cfg, site: http.NewCrossOriginProtection()}
	if cfg.CertFile != "" {
		pair := newReloader(parsePair, cfg.CertFile, cfg.KeyFile)
		if _, err := pair.get(); err != nil {
			return nil, fmt.Errorf("server.certFile: %w", err)
		}
		get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.get() }
		g.tls = &tls.Config{GetCertificate: get, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	var ways []authenticator.Request
	if cfg.ClientCAFile != "" {
		pool := newReloader(parsePool, cfg.ClientCAFile)
		if _, err := pool.get(); err != nil {
			return nil, fmt.Errorf("server.clientCAFile: %w", err)
		}
		ways = append(ways, x509.NewDynamic(verifying(pool), x509.CommonNameUserConversion))
	}
	if cfg.TokenFile != "" {
		tokens := newReloader(parseTokens, cfg.TokenFile)
		if _, err := tokens.get(); err != nil {
			return nil, fmt.Errorf("server.tokenFile: %w", err)
		}
		ways = append(ways, bearertoken.New(tokenReader{tokens}))
	}
	if cfg.Delegated {
		delegated, may, err := delegate(ctx, cfg.Kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("server.delegated: %w", err)
		}
		ways, g.may = append(ways, delegated), may
	}
	if len(ways) > 0 {
		g.who = group.NewAuthenticatedGroupAdder(union.New(ways...))
		g.tls.ClientAuth = tls.RequestClientCert
	}
	return g, nil
}

// TLS is the TLS configuration of the listener; nil for none.
func (g *Guard) TLS() *tls.Config { return g.tls }

// Authorizer authorizes authenticated users; nil if all are allowed.
func (g *Guard) Authorizer() authorizer.Authorizer { return g.may }
