package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/tools/clientcmd"
)

// A line of a token file is a token, optionally with a user; a token without a user is named after
// its line. Comments and empty lines are ignored, and an error does not contain the token.
func TestTokenFiles(t *testing.T) {
	const first, second = "0123456789abcdef", "fedcba9876543210"
	for name, test := range map[string]struct {
		content string
		users   map[string]string
		err     string
	}{
		"with and without a user":  {first + ",alice\n" + second + "\n", map[string]string{first: "alice", second: "token-2"}, ""},
		"comments and empty lines": {"# team\n\n  " + first + ", alice \n", map[string]string{first: "alice"}, ""},
		"an empty user":            {first + ",\n", map[string]string{first: "token-1"}, ""},
		"a comma in the name":      {first + ",alice,bob\n", map[string]string{first: "alice,bob"}, ""},
		"the last of equal tokens": {first + ",alice\n" + first + ",bob\n", map[string]string{first: "bob"}, ""},
		"15 characters":            {first[:15] + ",alice\n", nil, "line 1: a token needs 16 characters or more"},
		"none":                     {"# nobody\n", nil, "has no token; write one in each line, TOKEN or TOKEN,USER"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseTokens([][]byte{[]byte(test.content)})
			if test.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.err) || strings.Contains(err.Error(), first[:15]) {
					t.Errorf("%v, want %s", err, test.err)
				}
				return
			}
			if err != nil || len(got) != len(test.users) {
				t.Fatalf("%v, %v", got, err)
			}
			for token, name := range test.users {
				if u := got[sha256.Sum256([]byte(token))]; u == nil || u.Name != name {
					t.Errorf("%s is %v, want %s", token, u, name)
				}
			}
		})
	}
}

// Authenticated users need an authorization for each path, except those of the Kubernetes API,
// which authorizes its requests itself. An error of the authorizer denies the request.
func TestAuthorization(t *testing.T) {
	may := authorizer.AuthorizerFunc(func(_ context.Context, of authorizer.Attributes) (authorizer.Decision, string, error) {
		switch {
		case of.GetPath() == "/broken":
			return authorizer.DecisionAllow, "", errors.New("no answer")
		case of.GetPath() == "/report" && of.GetVerb() == "get" && of.GetUser().GetName() == "alice":
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	who := func(name string, err error) authenticator.Request {
		return authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
			return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, name != "", err
		})
	}
	kubernetes := func(path string) bool { return strings.HasPrefix(path, "/api/") }
	for name, test := range map[string]struct {
		who          authenticator.Request
		may          authorizer.Authorizer
		method, path string
		code         int
		text         string
	}{
		"allowed":                {who("alice", nil), may, "GET", "/report", 200, "alice"},
		"another method":         {who("alice", nil), may, "POST", "/report", 403, "alice may not post /report"},
		"another user":           {who("bob", nil), may, "GET", "/report", 403, "bob may not get /report"},
		"the authorizer fails":   {who("alice", nil), may, "GET", "/broken", 403, "alice may not get /broken"},
		"the Kubernetes API":     {who("bob", nil), may, "GET", "/api/v1", 200, "bob"},
		"without an authorizer":  {who("bob", nil), nil, "POST", "/report", 200, "bob"},
		"not authenticated":      {who("", nil), may, "GET", "/report", 401, "authentication required: send a token or a client certificate"},
		"not for the API either": {who("", nil), may, "GET", "/api/v1", 401, "authentication required: send a token or a client certificate"},
		"authentication fails":   {who("alice", errors.New("expired")), may, "GET", "/report", 401, "authentication required: send a token or a client certificate"},
		"health":                 {who("", nil), may, "GET", "/healthz", 200, ""},
		"metrics are not open":   {who("", nil), may, "GET", "/metrics", 401, "authentication required: send a token or a client certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &Guard{who: test.who, may: test.may, site: http.NewCrossOriginProtection()}
			w := httptest.NewRecorder()
			g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if u, known := request.UserFrom(req.Context()); known {
					w.Write([]byte(u.GetName()))
				}
			}), kubernetes).ServeHTTP(w, httptest.NewRequest(test.method, test.path, nil))
			if w.Code != test.code || strings.TrimSpace(w.Body.String()) != test.text {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, test.code, test.text)
			}
		})
	}
}

// The kubeconfig of a client refers to its files by absolute paths and contains no secret.
func TestClientKubeconfig(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"ca.crt", "token"} {
		if err := os.WriteFile(name, []byte("secret-content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := Client{Server: "https://fleet.example.com", CAFile: "ca.crt", TokenFile: "token"}.Kubeconfig("fleet")
	if err != nil || strings.Contains(string(raw), "secret-content") {
		t.Fatalf("%s, %v", raw, err)
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		t.Fatal(err)
	}
	if c, u := config.Clusters["fleet"], config.AuthInfos["fleet"]; config.CurrentContext != "fleet" || c.Server != "https://fleet.example.com" ||
		c.CertificateAuthority != filepath.Join(dir, "ca.crt") || u.TokenFile != filepath.Join(dir, "token") || u.ClientCertificate != "" {
		t.Errorf("%s", raw)
	}
	if _, err := (Client{Server: "x", CertFile: "missing.crt"}).Kubeconfig("fleet"); err == nil || !strings.Contains(err.Error(), "missing.crt") {
		t.Errorf("of a file that does not exist: %v", err)
	}
}
