package reading

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// A management cluster is a cluster with which gitfleet's API is registered.
type management struct {
	t      *testing.T
	member fleet.Member
	client kubernetes.Interface
}

func newManagement(t *testing.T) *management {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server")
	}
	f, err := fleet.Start(t.Context(), fleet.Options{Clusters: 1, Output: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	m := &management{t: t, member: f.Members()[0]}
	if m.client, err = kubernetes.NewForConfig(m.member.Config); err != nil {
		t.Fatal(err)
	}
	return m
}

// account creates a service account, and returns a kubeconfig with a token of it.
func (m *management) account(namespace, name string) string {
	m.t.Helper()
	ctx := m.t.Context()
	_, err := m.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		m.t.Fatal(err)
	}
	accounts := m.client.CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		m.t.Fatal(err)
	}
	token, err := accounts.CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(m.member.Kubeconfig)
	if err != nil {
		m.t.Fatal(err)
	}
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	path := filepath.Join(m.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		m.t.Fatal(err)
	}
	return path
}

// register registers the server at an address as the manifests in deploy do. No pods run here:
// the Service refers to this machine.
func (m *management) register(address string, authority []byte) {
	m.t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		m.t.Fatal(err)
	}
	number, _ := strconv.ParseInt(port, 10, 64)
	client, err := dynamic.NewForConfig(m.member.Config)
	if err != nil {
		m.t.Fatal(err)
	}
	text, err := os.ReadFile("../../deploy/aggregated-api.yaml")
	if err != nil {
		m.t.Fatal(err)
	}
	for in := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := in.Decode(&o.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			m.t.Fatal(err)
		}
		switch o.GetKind() {
		case "Service":
			o.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
		case "APIService":
			spec := o.Object["spec"].(map[string]any)
			spec["caBundle"] = base64.StdEncoding.EncodeToString(authority)
			spec["service"].(map[string]any)["port"] = number
		}
		gvr, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		if _, err := client.Resource(gvr).Namespace(o.GetNamespace()).Create(m.t.Context(), o, metav1.CreateOptions{}); err != nil {
			m.t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// servingPair writes a self-signed serving certificate for a Service.
func servingPair(t *testing.T, name string) (certFile, keyFile string, authority []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := errors.Join(
		os.WriteFile(certFile, authority, 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile, authority
}

// kubectl runs a command line with a kubeconfig, and returns its output.
func (m *management) kubectl(kubeconfig, line string) string {
	m.t.Helper()
	terminal := openAt(m.t, kubeconfig) // builds kubectl, which may take longer
	ctx, cancel := context.WithTimeout(m.t.Context(), 30*time.Second)
	defer cancel()
	out, _ := terminal.command(ctx, line).CombinedOutput()
	return string(out)
}

// The built daemon is registered with a kube-apiserver by the manifests of deploy. kubectl reads
// through the aggregation layer, which authenticates the user, and whose RBAC authorizes the
// request.
func TestAggregatedAPI(t *testing.T) {
	m := newManagement(t)
	p := newProgram(t)
	certFile, keyFile, authority := servingPair(t, "gitfleet.gitfleet.svc")
	daemon := m.account("gitfleet", "gitfleet")
	reader, stranger := m.account("people", "reader"), m.account("people", "stranger")
	m.register(p.address, authority)
	if out := m.kubectl(m.member.Kubeconfig, "kubectl create clusterrolebinding reader --clusterrole=gitfleet-reader --serviceaccount=people:reader"); !strings.Contains(out, "created") {
		t.Fatal(out)
	}
	p.repo.Commit(t, "main", map[string]string{
		"web.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n",
		"placements/web.yaml": "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacement\nmetadata: {name: web}\nspec:\n" +
			"  resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: web}]\n",
	})
	p.args = append(p.args, "--set", "server.certFile="+certFile, "--set", "server.keyFile="+keyFile, "--set", "server.delegated=true", "--set", "server.kubeconfig="+daemon)
	p.start()
	p.eventually("registered", func() bool {
		return strings.HasPrefix(m.kubectl(reader, "kubectl get crp web -o name"), "clusterresourceplacement")
	})
	// The API server fetches the OpenAPI definitions a while later.
	p.eventually("explained", func() bool {
		return strings.Contains(m.kubectl(reader, "kubectl explain crp.spec.strategy --api-version placement.kubernetes-fleet.io/v1beta1"), "rollingUpdate")
	})
	for line, want := range map[string]string{
		"kubectl get crp -o name":  "clusterresourceplacement.placement.kubernetes-fleet.io/web\n",
		"kubectl describe crp web": "SchedulingPolicyFulfilled",
		"kubectl get apiservice v1beta1.placement.kubernetes-fleet.io --kubeconfig " + m.member.Kubeconfig: "True",
		"kubectl delete crp web --wait=false": "Forbidden",
	} {
		if out := m.kubectl(reader, line); !strings.Contains(out, want) {
			t.Errorf("$ %s\n%s\nwant %s", line, out, want)
		}
	}
	for _, line := range []string{"kubectl get crp", "kubectl get crp web", "kubectl get memberclusters"} {
		if out := m.kubectl(stranger, line); !strings.Contains(out, "Forbidden") || !strings.Contains(out, "system:serviceaccount:people:stranger") {
			t.Errorf("$ %s\n%s\nwithout permission", line, out)
		}
	}
	// At its own address the daemon authenticates and authorizes with TokenReviews and
	// SubjectAccessReviews of the cluster.
	for kubeconfig, want := range map[string]string{reader: "clusterresourceplacement.placement.kubernetes-fleet.io/web\n", stranger: "Forbidden"} {
		direct := " --server https://" + p.address + " --tls-server-name gitfleet.gitfleet.svc --certificate-authority " + certFile
		if out := m.kubectl(kubeconfig, "kubectl get crp -o name"+direct); !strings.Contains(out, want) {
			t.Errorf("at its own address: %s\nwant %s", out, want)
		}
	}
	// A user with all permissions gets the file to change.
	if out := m.kubectl(m.member.Kubeconfig, "kubectl delete crp web --wait=false"); !strings.Contains(out, "placements/web.yaml:1") {
		t.Errorf("a deletion: %s", out)
	}
}
