package e2e

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// A gateway is a proxy for the API server of member-1, with its own certificate authority,
// which accepts one client certificate.
type gateway struct {
	t      *testing.T
	server *httptest.Server

	mu          sync.Mutex
	certificate tls.Certificate
	client      string // prefix of the common name
	writes      int    // accepted since the last rotation
}

// newGateway returns a gateway that accepts no client before rotate is called.
func newGateway(t *testing.T) *gateway {
	t.Helper()
	members := fleet.Shared(t).Members()
	member := members[slices.IndexFunc(members, func(m fleet.Member) bool { return m.Name == "member-1" })]
	backend, err := url.Parse(member.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(member.Config)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(backend) }, Transport: transport, FlushInterval: -1,
	}
	g.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		admitted := strings.HasPrefix(r.TLS.PeerCertificates[0].Subject.CommonName, g.client)
		if admitted && r.Method == http.MethodPatch {
			g.writes++
		}
		g.mu.Unlock()
		if !admitted {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	g.server.EnableHTTP2 = true
	g.server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		return &tls.Config{Certificates: []tls.Certificate{g.certificate}, ClientAuth: tls.RequireAnyClientCert, NextProtos: []string{"h2", "http/1.1"}}, nil
	}}
	g.server.StartTLS()
	t.Cleanup(g.server.Close)
	return g
}

// rotate gives the gateway another certificate authority and makes it accept another client
// only. It returns what a kubeconfig needs for that.
func (g *gateway) rotate(client string) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {
	g.t.Helper()
	authority, serverKey, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(authority, serverKey)
	if err != nil {
		g.t.Fatal(err)
	}
	certificate, key, err := certutil.GenerateSelfSignedCertKey(client, nil, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	g.mu.Lock()
	g.certificate, g.client, g.writes = pair, client+"@", 0
	g.mu.Unlock()
	g.server.CloseClientConnections()
	return &clientcmdapi.Cluster{Server: g.server.URL, CertificateAuthorityData: authority},
		&clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
}

func (g *gateway) written() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.writes
}

// replaceKubeconfig replaces the kubeconfig of member-1 that the daemon reads.
func (d *daemon) replaceKubeconfig(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
	d.t.Helper()
	path := filepath.Join(d.args[slices.Index(d.args, "--kubeconfig-dir")+1], "member-1.kubeconfig")
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	for name := range config.Clusters {
		config.Clusters[name] = cluster
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = user
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		d.t.Fatal(err)
	}
}

// A running daemon uses replaced credentials in a kubeconfig: another certificate authority and
// client certificate, another address, another token. Each time the old ones are no longer
// valid, so that the next commit can only be applied with the new ones.
func TestReplacedCredentialsAreUsedWithoutARestart(t *testing.T) {
	t.Parallel()
	d, g := newDaemon(t), newGateway(t)
	var direct *clientcmdapi.Cluster
	d.kubeconfigs(func(c *clientcmdapi.Config) {
		for _, cluster := range c.Clusters {
			direct = cluster.DeepCopy()
		}
	})
	d.replaceKubeconfig(g.rotate("one"))
	commit := func(value string) string {
		return d.repo.Commit(t, "main", map[string]string{
			"apps/one.yaml": yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", value),
			"web.yaml":      yamlPlacement(d.name, d.name, ""),
		})
	}
	applied := func(what, value string, change func()) {
		t.Helper()
		began := time.Now()
		change()
		d.applied(commit(value))
		t.Logf("%s: used after %s", what, time.Since(began).Round(100*time.Millisecond))
		if got := d.configMap("member-1", "one")["value"]; got != value {
			t.Errorf("%s: member-1 has %q", what, got)
		}
	}
	d.startAt(commit("a"))
	if g.written() == 0 {
		t.Error("nothing was written with the first client certificate")
	}
	applied("certificate authority and client certificate", "b", func() { d.replaceKubeconfig(g.rotate("two")) })
	if g.written() == 0 {
		t.Error("nothing was written with the second client certificate")
	}

	rules := []rbac.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"namespaces", "configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
	}}
	first, second := d.account("first", rules), d.account("second", rules)
	applied("address and token", "c", func() {
		d.replaceKubeconfig(direct, &clientcmdapi.AuthInfo{Token: first})
		g.server.Listener.Close()
		g.server.CloseClientConnections()
	})
	applied("token", "d", func() {
		d.grant("first", nil)
		d.replaceKubeconfig(direct, &clientcmdapi.AuthInfo{Token: second})
	})
}
