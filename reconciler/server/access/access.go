// Package access decides who may ask the daemon anything.
//
// On an address that only this machine reaches, everybody on it may. Anywhere
// else whoever asks has to say who they are, with a token or a certificate, over
// TLS. In a management cluster it is the cluster that knows them.
package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Config says how the daemon is protected. The zero value is for an address of
// this machine.
type Config struct {
	// Listen is the address that the daemon listens on.
	Listen string
	// CertFile and KeyFile are for TLS. They are read again when they change, as
	// are the others.
	CertFile, KeyFile string
	// TokenFile has a token in each line, and may have a comma and the name of a
	// user after it.
	TokenFile string
	// ClientCAFile has the certificates that vouch for those of clients.
	ClientCAFile string
	// Unauthenticated allows everybody, on whatever address.
	Unauthenticated bool
	// OpenMetrics lets everybody read /metrics.
	OpenMetrics bool
	// Delegated asks a cluster who somebody is and whether they may: that of
	// Kubeconfig, or else the one that gitfleet runs in.
	Delegated  bool
	Kubeconfig string
}

// authenticates reports whether there is a way to say who one is.
func (c Config) authenticates() bool {
	return c.TokenFile != "" || c.ClientCAFile != "" || c.Delegated
}

// Validate finds what does not go together. The message names the settings.
func (c Config) Validate() error {
	switch {
	case (c.CertFile == "") != (c.KeyFile == ""):
		return errors.New("server.certFile and server.keyFile go together")
	case c.authenticates() && c.CertFile == "":
		return errors.New("server.certFile: missing; who asks can only be told over TLS, so set it and server.keyFile")
	case c.Kubeconfig != "" && !c.Delegated:
		return errors.New("server.kubeconfig: is of use with server.delegated only; set that too, or remove it")
	case c.authenticates() && c.Unauthenticated:
		return errors.New("server.allowUnauthenticated: goes with no other way to say who asks; remove it, or them")
	case !c.authenticates() && !c.Unauthenticated && !local(c.Listen):
		return fmt.Errorf("listen: %s can be reached from elsewhere, and nobody would be asked who they are; "+
			"set server.certFile and server.keyFile with server.tokenFile or server.clientCAFile, or listen on 127.0.0.1, or set server.allowUnauthenticated", c.Listen)
	}
	return nil
}

// local reports whether only this machine reaches an address.
func local(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	return localHost(host)
}

func localHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// A Guard stands before a server.
type Guard struct {
	cfg  Config
	tls  *tls.Config
	who  authenticator.Request
	may  authorizer.Authorizer
	site *http.CrossOriginProtection
}

// New returns a guard, with all its files read. What it has to follow in a
// cluster it follows until ctx is done.
func New(ctx context.Context, cfg Config) (*Guard, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := &Guard{cfg: cfg, site: http.NewCrossOriginProtection()}
	if cfg.CertFile != "" {
		pair := &keyPair{cert: cfg.CertFile, key: cfg.KeyFile}
		if _, err := pair.get(nil); err != nil {
			return nil, err
		}
		g.tls = &tls.Config{GetCertificate: pair.get, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	var ways []authenticator.Request
	if cfg.ClientCAFile != "" {
		pool := newFile(cfg.ClientCAFile, parsePool)
		if _, err := pool.get(); err != nil {
			return nil, fmt.Errorf("server.clientCAFile: %w", err)
		}
		ways = append(ways, x509.NewDynamic(verifying(pool), x509.CommonNameUserConversion))
	}
	if cfg.TokenFile != "" {
		tokens := newFile(cfg.TokenFile, parseTokens)
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

// TLS is how to listen; nil for not encrypted.
func (g *Guard) TLS() *tls.Config { return g.tls }

// Authorizer says whether somebody who was let in may; nil if everybody may.
func (g *Guard) Authorizer() authorizer.Authorizer { return g.may }
