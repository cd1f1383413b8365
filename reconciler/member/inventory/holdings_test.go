package inventory

import (
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/test/apiserver"
)

// Holdings returns the objects that each fleet has on the cluster.
func TestHoldings(t *testing.T) {
	shelf := apiserver.NewConfigMaps()
	s := storeAt(t, shelf)
	inv := held(3)
	save(t, s, inv)
	srv := httptest.NewServer(shelf)
	defer srv.Close()
	got, err := Holdings(t.Context(), &rest.Config{Host: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Fleet != "prod" || got[0].Placement != inv.Placement.String() || len(got[0].Objects) != 3 || got[0].Damaged != "" {
		t.Errorf("got %+v", got)
	}
}
