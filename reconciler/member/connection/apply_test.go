package connection

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// An apply is the request that client-go would send, which sends it again if the server asks for that.
func TestApplyIsSentAsByClientGo(t *testing.T) {
	for name, test := range map[string]struct {
		id   api.ID
		base string
	}{
		"a namespaced object":      {api.ID{Kind: "ConfigMap", Namespace: "app", Name: "settings"}, ""},
		"a name with a colon":      {api.ID{Kind: "ConfigMap", Namespace: "app", Name: "system:a b%2F"}, ""},
		"a server below some path": {api.ID{Kind: "ConfigMap", Namespace: "app", Name: "settings"}, "/k8s/clusters/east/"},
	} {
		for _, whole := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				var sent []string
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					text := r.Method + " " + r.RequestURI + " " + string(body)
					for _, name := range []string{"Accept", "Authorization", "Content-Type", "Content-Length", "User-Agent"} {
						text += "\n" + name + ": " + r.Header.Get(name)
					}
					if sent = append(sent, text); len(sent) == 1 {
						w.Header().Set("Retry-After", "0")
						apiserver.Refuse(w, http.StatusTooManyRequests, "too many requests")
						return
					}
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusCreated)
					io.WriteString(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+test.id.Name+`","namespace":"app","uid":"1"}}`) //nolint:errcheck // the test would see it
				}))
				t.Cleanup(server.Close)
				c := connOf(t, &rest.Config{Host: server.URL + test.base, BearerToken: "secret"})
				var err error
				created := true
				if whole {
					_, created, err = c.ApplyWhole(t.Context(), configMapKind, test.id, []byte(`{"a":"é`+"\u2028"+`"}`), true)
				} else {
					_, err = c.Patch(t.Context(), configMapKind, test.id, []byte(`{"a":"é`+"\u2028"+`"}`), false)
				}
				if err != nil || !created || len(sent) != 2 {
					t.Fatalf("%d requests, created: %t, %v", len(sent), created, err)
				}
				if sent[0] != sent[1] {
					t.Errorf("sent\n%s\nand client-go\n%s", sent[0], sent[1])
				}
			})
		}
	}
}

// What a server refuses is an error with its status.
func TestRefusedApplyIsStatus(t *testing.T) {
	requests := 0
	c := connAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		apiserver.Refuse(w, http.StatusConflict, "conflict with other managers")
	}))
	_, _, err := c.ApplyWhole(t.Context(), configMapKind, api.ID{Kind: "ConfigMap", Namespace: "app", Name: "a"}, []byte("{}"), true)
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Code != http.StatusConflict || err.Error() != "conflict with other managers" || requests != 1 {
		t.Errorf("%d requests, %v", requests, err)
	}
}

// A copiedObject counts its copies.
type copiedObject struct {
	runtime.Unknown
	copies *int
}

func (o *copiedObject) DeepCopyObject() runtime.Object {
	*o.copies++
	return o
}

// Copying the configuration of a credential plugin writes to it, so that requests, which are sent concurrently, do not do so.
func TestRequestsDoNotCopyTheCredentialPlugin(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		apiserver.Refuse(w, http.StatusConflict, "conflict with "+r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	copies := 0
	c := connOf(t, &rest.Config{Host: server.URL, ExecProvider: &clientcmdapi.ExecConfig{
		Command: "sh", Args: []string{"-c", `echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"plugin"}}'`},
		APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode, Config: &copiedObject{copies: &copies},
	}})
	opened := copies
	_, _, err := c.ApplyWhole(t.Context(), configMapKind, api.ID{Kind: "ConfigMap", Namespace: "app", Name: "a"}, []byte("{}"), true)
	if err == nil || err.Error() != "conflict with ***" {
		t.Fatal(err)
	}
	if _, err := c.Metadata(); err != nil {
		t.Fatal(err)
	}
	if copies != opened {
		t.Errorf("copied %d times", copies-opened)
	}
}

// A credential plugin is asked for another token when its token has expired, although all applies have the same headers.
func TestAppliesHaveTheTokenThatACredentialPluginHasNow(t *testing.T) {
	var tokens []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("Authorization"))
		if len(tokens) == 2 {
			apiserver.Refuse(w, http.StatusUnauthorized, "the token has expired")
			return
		}
		apiserver.Refuse(w, http.StatusConflict, "a conflict")
	}))
	t.Cleanup(server.Close)
	script := `echo x >> "$0"; echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"'$(wc -l < "$0" | tr -d ' ')'"}}'`
	c := connOf(t, &rest.Config{Host: server.URL, ExecProvider: &clientcmdapi.ExecConfig{
		Command: "sh", Args: []string{"-c", script, filepath.Join(t.TempDir(), "calls")},
		APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}})
	for range 3 {
		c.ApplyWhole(t.Context(), configMapKind, api.ID{Kind: "ConfigMap", Namespace: "app", Name: "a"}, []byte("{}"), true) //nolint:errcheck // all are refused
	}
	if want := []string{"Bearer 1", "Bearer 1", "Bearer 2"}; !slices.Equal(tokens, want) {
		t.Errorf("the tokens are %q, want %q", tokens, want)
	}
}
