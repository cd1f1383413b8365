package access

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// A daemon starts even if the cluster that authenticates its clients cannot be reached. Until
// then it refuses the clients that the cluster would authenticate.
func TestUnreachableClusterDoesNotPreventTheStart(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close() // the port is closed now
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: 'http://" + address + "'}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {token: t}}]}"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cert, key := newAuthority(t, "server").issue("gitfleet")
	g, err := New(t.Context(), Config{Listen: "0.0.0.0:8443", CertFile: cert, KeyFile: key, Delegated: true, Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	handler := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("answered") }), func(string) bool { return false })
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/report", nil))
	if w.Code < 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// An empty kubeconfig, such as one that is just being written, is an error. In a pod, the
// credentials of the pod are not used instead.
func TestEmptyKubeconfigIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if config, err := cluster(path); err == nil || err.Error() != path+" is empty" {
		t.Errorf("%+v, %v", config, err)
	}
}
