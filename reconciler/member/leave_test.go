package member

import (
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A cluster is left even if there is other work to do.
func TestLeavingIsNotDelayed(t *testing.T) {
	s := sessionAt(t, apiserver.NewConfigMaps())
	if err := s.handle(t.Context(), byLeave); err != nil {
		t.Fatal(err)
	}
	s.reschedule() // as after every change that a watch reports
	select {
	case <-s.retry.C:
	case <-time.After(10 * time.Second):
		t.Error("nobody is woken to leave")
	}
}
