package member

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// Each deleted object is logged. The next report counts the objects for each cause and
// names the first ones; later reports do not repeat them.
func TestDeletionsAreLoggedAndReportedOnce(t *testing.T) {
	var log bytes.Buffer
	s, key := sessionAt(t, newShelf()), api.PlacementKey{Name: "web"}
	s.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	var reported []string
	s.cfg.Report = func(o ledger.Observation) {
		for _, d := range o.(ledger.WorkSeen).Deletions {
			reported = append(reported, fmt.Sprintf("%d by %s, %s: %v", d.Total, d.Commit, d.Why, d.Objects))
		}
	}
	s.holding(oneManifest(), key)
	for _, c := range []work.Cause{{Commit: "c1", Why: "no longer wanted"}, {Commit: "c2", Why: "the placement was deleted"}} {
		s.works[key] = work.Work{Placement: key, Cause: c}
		for i := range 7 {
			s.recordDeletion(stale{inv: s.inv[key], item: &item{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: fmt.Sprint(i)}})
		}
	}
	s.report(t.Context(), key)
	s.report(t.Context(), key)
	const first = "[ConfigMap/web/0 ConfigMap/web/1 ConfigMap/web/2 ConfigMap/web/3 ConfigMap/web/4]"
	if want := []string{"7 by c1, no longer wanted: " + first, "7 by c2, the placement was deleted: " + first}; !slices.Equal(reported, want) {
		t.Errorf("reported %q, want %q", reported, want)
	}
	const line = `msg="object deleted" cluster=east placement=crp/web object=ConfigMap/web/6 commit=c2 why="the placement was deleted"`
	if n := strings.Count(log.String(), "object deleted"); n != 14 || !strings.Contains(log.String(), line) {
		t.Errorf("%d lines in the log, want 14, and one with %s:\n%s", n, line, &log)
	}
}
