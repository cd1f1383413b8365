package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestKubeconfigHasAContextPerCluster(t *testing.T) {
	east, err := newCluster("east", 1, "")
	if err != nil {
		t.Fatal(err)
	}
	west, err := newCluster("west", 2, "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sub", "kubeconfig")
	if err := writeKubeconfig(path, east, west); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a file with a private key has mode %v: %v", info.Mode(), err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got kubeconfig
	if err := yaml.UnmarshalStrict(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.CurrentContext != "east" || len(got.Contexts) != 2 || got.Contexts[1].Name != "west" || got.Clusters[1].Cluster.Server != "https://127.0.0.1:2" {
		t.Errorf("wrote\n%s", data)
	}
	if _, err := tls.X509KeyPair(got.Users[1].User.Certificate, got.Users[1].User.Key); err != nil {
		t.Error(err)
	}
}

// Client and server of one cluster authenticate each other; the client of another cluster is
// rejected, and does not trust the server either.
func TestCredentialsAreOfOneCluster(t *testing.T) {
	east, err := newCluster("east", 1, "")
	if err != nil {
		t.Fatal(err)
	}
	west, err := newCluster("west", 2, "")
	if err != nil {
		t.Fatal(err)
	}
	serving, err := tls.X509KeyPair(east.serving.cert, east.serving.key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(east.authority)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{serving}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	defer server.Close()

	response, err := east.client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response, err := west.client.Get(server.URL); err == nil {
		response.Body.Close()
		t.Error("east and west share credentials")
	}
}
