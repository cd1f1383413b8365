package account

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/gitfleet/gitfleet/test/apiserver"
)

const personal = `apiVersion: v1
kind: Config
current-context: other
clusters:
- {name: c, cluster: {server: "https://paris.example:6443", certificate-authority: ca.crt, tls-server-name: paris}}
users:
- {name: admin, user: {token: personal-token}}
contexts:
- {name: paris-admin, context: {cluster: c, user: admin, namespace: mine}}
`

// The daemon's kubeconfig is for the same cluster, contains the certificates, and nothing of
// the user's credentials.
func TestKubeconfigOfAMember(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	for name, text := range map[string]string{"config": personal, "ca.crt": "certificate"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	target, err := Find([]string{file}, "paris-admin")
	if err != nil {
		t.Fatal(err)
	}
	if target.Config.BearerToken != "personal-token" {
		t.Errorf("asks the cluster as %+v", target.Config)
	}
	raw, err := target.Kubeconfig("paris", "new-token")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "personal-token") || strings.Contains(string(raw), dir) {
		t.Errorf("tells of the person:\n%s", raw)
	}
	c, err := clientcmd.Load(raw)
	if err != nil {
		t.Fatal(err)
	}
	if c.CurrentContext != "paris" || c.AuthInfos["paris"].Token != "new-token" || c.Clusters["paris"].Server != "https://paris.example:6443" ||
		string(c.Clusters["paris"].CertificateAuthorityData) != "certificate" || c.Clusters["paris"].TLSServerName != "paris" {
		t.Errorf("got\n%s", raw)
	}
	if _, err := Find([]string{file}, "none"); err == nil || !strings.Contains(err.Error(), `no context "none"; it has paris-admin`) {
		t.Errorf("an unknown context: %v", err)
	}
}

// A cluster cannot fill the memory of a command that uses a person's credentials.
func TestClientsOfACommandAreBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.Copy(w, io.MultiReader(strings.NewReader(`"`), apiserver.Repeat('x'))) //nolint:errcheck // the client stops reading
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(strings.ReplaceAll(personal, "https://paris.example:6443", server.URL), ", certificate-authority: ca.crt", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	target, err := Find([]string{file}, "paris-admin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Account{Name: "gitfleet"}).Apply(t.Context(), target.Config); err == nil || !strings.Contains(err.Error(), "more than 16 MiB") {
		t.Errorf("%v, want the answer to be given up", err)
	}
}
