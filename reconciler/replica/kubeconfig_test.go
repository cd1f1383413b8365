package replica

import (
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A kubeconfig with a token is read again when it is replaced. One that is invalid, or names
// another server, changes nothing.
func TestKubeconfigIsReadAgain(t *testing.T) {
	var token atomic.Pointer[string]
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("Authorization")
		token.Store(&got)
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1"}`))
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(host, token string) {
		t.Helper()
		config := clientcmdapi.NewConfig()
		config.Clusters["c"] = &clientcmdapi.Cluster{Server: host, CertificateAuthorityData: authority}
		config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
		config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
		config.CurrentContext = "x"
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			t.Fatal(err)
		}
	}
	write(server.URL, "one")
	config, err := clusterConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	file, err := openKubeconfig(path, config.Host, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	var clients []*coordination.CoordinationV1Client
	for _, of := range []*rest.Config{config, leaseConfig(config)} {
		if of, err = file.client(of); err != nil {
			t.Fatal(err)
		}
		client, err := coordination.NewForConfig(of)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, client)
	}
	check := func(want string) {
		t.Helper()
		file.mu.Lock()
		file.read = time.Now().Add(-rereadPeriod)
		file.mu.Unlock()
		for _, client := range clients {
			if _, err := client.Leases("default").Get(t.Context(), "gitfleet", metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := *token.Load(); got != "Bearer "+want {
				t.Errorf("sent %q, want %q", got, want)
			}
		}
	}
	check("one")
	write(server.URL, "two")
	check("two")
	write("https://other.example", "three")
	check("two")
	if !strings.Contains(log.String(), "its server is https://other.example and was "+server.URL) {
		t.Errorf("logged:\n%s", log.String())
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("two")
	write(server.URL, "four")
	check("four")
}

// An empty kubeconfig, such as one that is just being written, is an error. In a pod, the
// credentials of the pod are not used instead.
func TestEmptyKubeconfigIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if config, err := clusterConfig(path); err == nil || !strings.HasSuffix(err.Error(), path+" is empty") {
		t.Errorf("%+v, %v", config, err)
	}
}
