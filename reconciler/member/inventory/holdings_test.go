package inventory

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// Holdings returns the objects that each fleet has on the cluster.
func TestHoldings(t *testing.T) {
	server := apiserver.NewConfigMaps()
	s := storeAt(t, server)
	inv := held(3)
	save(t, s, inv)
	srv := httptest.NewServer(server)
	defer srv.Close()
	got, err := Holdings(t.Context(), &rest.Config{Host: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Fleet != "prod" || got[0].Placement != inv.Placement().String() || len(got[0].Objects) != 3 || got[0].Damaged != "" {
		t.Errorf("got %+v", got)
	}
	announce(t, s, addition(inv.Placement(), "new"), addition(api.PlacementKey{Name: "shop"}, "one"))
	if got, err = Holdings(t.Context(), &rest.Config{Host: srv.URL}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Placement != "crp/shop" || len(got[0].Objects) != 1 || len(got[1].Objects) != 4 {
		t.Errorf("with what is announced: %+v", got)
	}
}

// An answer without end is not read to the end.
func TestHoldingsAreBounded(t *testing.T) {
	cfg := &rest.Config{Host: "https://server.example", Transport: apiserver.Answer(func(r *http.Request) *http.Response {
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
			Body: io.NopCloser(io.MultiReader(strings.NewReader(`"`), apiserver.Repeat('x'))),
		}
	})}
	if _, err := Holdings(t.Context(), cfg); !connection.IsExceeded(err) {
		t.Error(err)
	}
}
