package member

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// A log is told when something begins, when it is another thing, and then once an
// hour.
func TestGrumble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g grumble
		told := 0
		for range 6 * 60 * 2 {
			if g.due("one") {
				told++
			}
			time.Sleep(10 * time.Second)
		}
		if told != 2 || !g.due("two") || g.due("two") || !g.due("one") {
			t.Errorf("told %d times in two hours", told)
		}
	})
}

// What cannot be done now is tried again, and the log is not told each time.
func TestRetriesAreLoggedOnce(t *testing.T) {
	var logged strings.Builder
	s := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"})
	s.cfg.Log = slog.New(slog.NewTextHandler(&logged, nil))
	s.kinds, s.unseen, s.retry = newKinds(s.conn.discovery), map[api.ID]bool{}, time.NewTimer(time.Hour)
	web := api.PlacementKey{Name: "web"}
	s.works = map[api.PlacementKey]work.Work{web: {Placement: web}}
	s.inventory(web).items.put(item{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "one"})
	for range 3 {
		if s.prepared(t.Context(), map[api.ID]bool{cm("x"): true}) {
			t.Error("the kinds are known")
		}
		s.settle(t.Context(), map[api.PlacementKey]bool{web: true})
	}
	if text := logged.String(); strings.Count(text, "kinds not known") != 1 || strings.Count(text, "inventory not written") != 1 {
		t.Errorf("logged:\n%s", text)
	}
}
