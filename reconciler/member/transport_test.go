package member

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

// What is small and what is large go over connections of their own, both of
// HTTP/2, and with the credentials of the cluster.
func TestClustersAreAskedOverTwoConnections(t *testing.T) {
	asked := make(chan *http.Request, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		w.Write([]byte("{}"))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	c, err := newConn(&rest.Config{
		Host: server.URL, BearerToken: "secret",
		TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
	}, func(why excuse) { t.Errorf("asked ordinarily: %s", why) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	from := map[string]int{}
	for _, client := range []*rest.RESTClient{c.rest, c.bulk, c.rest, c.bulk} {
		if err := client.Get().AbsPath("api").Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
		r := <-asked
		from[r.RemoteAddr]++
		if r.ProtoMajor != 2 || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("asked by %s with %q", r.Proto, r.Header.Get("Authorization"))
		}
	}
	if len(from) != 2 {
		t.Errorf("over %d connections: %v", len(from), from)
	}
}
