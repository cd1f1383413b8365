package inventory

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// The claim costs one request: neither the next inventory nor the next store writes it again.
func TestClaimIsWrittenOnce(t *testing.T) {
	at := apiserver.NewConfigMaps()
	s := storeFor(t, here, at)
	save(t, s, held(3))
	other := addition(api.PlacementKey{Name: "other"}, "one", "two")
	save(t, s, other)
	s = storeFor(t, here, at)
	inv := load(t, s).Of(web)
	inv.Abandon = true
	save(t, s, inv)
	if n := len(slices.DeleteFunc(slices.Clone(at.Writes), func(done string) bool { return strings.Contains(done, "inventory-") })); n != 1 {
		t.Errorf("%d requests for the claim: %q", n, at.Writes)
	}
}

// If the connection breaks during the creation of the claim, the claim still counts as ours.
func TestClaimWithALostAnswer(t *testing.T) {
	at := apiserver.NewConfigMaps()
	var broken atomic.Bool
	broken.Store(true)
	s := storeFor(t, here, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && broken.CompareAndSwap(true, false) {
			at.ServeHTTP(discarded{http.Header{}}, r)
			panic(http.ErrAbortHandler)
		}
		at.ServeHTTP(w, r)
	}))
	inv := held(1)
	if err := s.Save(t.Context(), inv); err == nil {
		t.Error("the answer was not lost")
	}
	if err := s.Save(t.Context(), inv); err != nil || s.ClaimedByOther() {
		t.Errorf("the second time: %v, foreign: %v", err, s.ClaimedByOther())
	}
}

// The claim of an adopted fleet is taken over with the first inventory.
func TestClaimIsAdopted(t *testing.T) {
	at := apiserver.NewConfigMaps()
	save(t, storeFor(t, another, at), held(3))
	s := storeFor(t, here, at)
	s.membership.Adopted = []protocol.Adoption{{Cluster: "east", ID: "theirs", By: "sam"}}
	save(t, s, load(t, s).Of(web))
	late := storeFor(t, another, at)
	if load(t, late); !late.ClaimedByOther() || late.claim.owner.ID != "ours" {
		t.Errorf("the claim names %v, foreign to the other: %v", late.claim.owner, late.ClaimedByOther())
	}
}

// discarded is a response that is not sent.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(b []byte) (int, error) { return len(b), nil }
func (d discarded) WriteHeader(int)             {}
