package connection

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/test/apiserver"
)

// If a server or a proxy echoes a request, the credentials in it are not shown. Of a web page,
// only the title is shown.
func TestAnswersDoNotTellCredentials(t *testing.T) {
	const token = "canary-token-0123456789"
	echo := func(r *http.Request) string { return r.Header.Get("Authorization") }
	tests := map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"text": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "denied: "+echo(r), http.StatusForbidden)
		}, "denied: "},
		"a Status": {func(w http.ResponseWriter, r *http.Request) {
			apiserver.Refuse(w, http.StatusForbidden, "not for "+echo(r)+" of all")
		}, "not for "},
		"a page": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusBadGateway)
			io.WriteString(w, "<html><title>502 Bad Gateway</title><pre>"+echo(r)+"</pre>") //nolint:errcheck // the test would see it
		}, "(\"a web page: 502 Bad Gateway\")"},
		"a page that says all is well": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			io.WriteString(w, "<html><title>Log in, "+echo(r)+"</title>") //nolint:errcheck // the test would see it
		}, "an API server was expected"},
		"in base64": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, base64.StdEncoding.EncodeToString([]byte(token))+" denied", http.StatusTeapot)
		}, "418"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https://elsewhere.example/?token="+token)
			w.WriteHeader(http.StatusFound)
			io.WriteString(w, "go to https://elsewhere.example/?token="+token) //nolint:errcheck // the test would see it
		}, "302"},
		"in a header": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", echo(r))
			w.Header().Set("Warning", `299 - "`+echo(r)+`"`)
			apiserver.Refuse(w, http.StatusUnauthorized, "Unauthorized")
		}, "Unauthorized"},
	}
	for name, test := range tests {
		for credentials, set := range map[string]func(*rest.Config){
			"token":    func(cfg *rest.Config) { cfg.BearerToken = token },
			"password": func(cfg *rest.Config) { cfg.Username, cfg.Password = "admin", token },
		} {
			t.Run(name+", "+credentials, func(t *testing.T) {
				server := httptest.NewUnstartedServer(test.answer)
				server.EnableHTTP2 = true
				server.StartTLS()
				t.Cleanup(server.Close)
				cfg := apiserver.Config(server)
				set(cfg)
				c, err := newClients(cfg, nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(c.Close)
				for _, client := range []*rest.RESTClient{c.rest, c.bulk} {
					_, err := Answer(client.Get().AbsPath("readyz").MaxRetries(0).Do(t.Context()))
					if err == nil {
						t.Fatal("it is taken for an answer")
					}
					text := err.Error()
					if strings.Contains(text, token) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("admin:"+token))) {
						t.Errorf("it tells the credential: %s", text)
					}
					if !strings.Contains(text, test.want) || strings.Contains(text, "<pre>") {
						t.Errorf("it says %q, want %q", text, test.want)
					}
				}
			})
		}
	}
}
