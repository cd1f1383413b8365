package member

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// Each deleted object is logged. The next report counts the objects for each cause and
// names the first ones; later reports do not repeat them.
func TestDeletionsAreLoggedAndReportedOnce(t *testing.T) {
	var log bytes.Buffer
	s, key := sessionAt(t, apiserver.NewConfigMaps()), api.PlacementKey{Name: "web"}
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
			s.history.addRemoval(stale{inv: s.inv[key], item: &inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: fmt.Sprint(i)}}, history.Deleted, c, nil)
		}
	}
	s.reporter.report(t.Context(), key)
	s.reporter.report(t.Context(), key)
	const first = "[ConfigMap/web/0 ConfigMap/web/1 ConfigMap/web/2 ConfigMap/web/3 ConfigMap/web/4]"
	if want := []string{"7 by c1, no longer wanted: " + first, "7 by c2, the placement was deleted: " + first}; !slices.Equal(reported, want) {
		t.Errorf("reported %q, want %q", reported, want)
	}
	const line = `msg="object deleted" cluster=east placement=crp/web object=ConfigMap/web/6 commit=c2 why="the placement was deleted"`
	if n := strings.Count(log.String(), "object deleted"); n != 14 || !strings.Contains(log.String(), line) {
		t.Errorf("%d lines in the log, want 14, and one with %s:\n%s", n, line, &log)
	}
}

// An object that somebody else has deleted or replaced is not reported as deleted by gitfleet.
// A refused deletion with the same status code is not mistaken for that.
func TestOnlyOurDeletionsAreRecorded(t *testing.T) {
	const uid = "1"
	tests := map[string]struct {
		code    int // the response to DELETE
		uid     string
		removed bool
		events  []history.Event
	}{
		"deleted by us":             {http.StatusOK, uid, true, []history.Event{history.Deleted}},
		"gone already":              {http.StatusNotFound, uid, true, nil},
		"replaced":                  {http.StatusConflict, "2", true, nil},
		"denied with the same code": {http.StatusConflict, uid, false, []history.Event{history.Failed}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			asked := false
			s := sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.Method == http.MethodGet:
					o := metav1.PartialObjectMetadata{
						TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
						ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "one", UID: uid, Labels: map[string]string{api.ManagedByLabel: "prod"}},
					}
					if asked {
						o.UID = types.UID(test.uid)
					}
					json.NewEncoder(w).Encode(o)
				case test.code == http.StatusOK:
					json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
				case test.code == http.StatusConflict:
					asked = true
					w.WriteHeader(http.StatusConflict)
					json.NewEncoder(w).Encode(apierrors.NewConflict(inventory.ConfigMaps.GroupResource(), "one", errors.New("no")).Status())
				default:
					apiserver.Refuse(w, test.code, "no")
				}
			}))
			s.kinds.Add(inventory.ConfigMaps.GroupVersion().WithKind("ConfigMap"), inventory.ConfigMaps)
			key := api.PlacementKey{Name: "web"}
			s.holding(oneManifest(), key)
			s.works[key] = work.Work{Placement: key, Remove: true, AllowDelete: true}
			var events []history.Event
			s.cfg.Record = func(all ...history.Entry) {
				for _, e := range all {
					events = append(events, e.Event)
				}
			}
			st := stale{inv: s.inv[key], item: s.inv[key].Items.Of(oneManifest().ID)}
			if removed := s.pruner.removed(t.Context(), st); removed != test.removed {
				t.Errorf("removed: %t, want %t", removed, test.removed)
			}
			if !slices.Equal(events, test.events) {
				t.Errorf("events: %v, want %v", events, test.events)
			}
			if n := len(s.history.deletions.take(key)); (n == 1) != slices.Contains(test.events, history.Deleted) {
				t.Errorf("%d deletions are reported", n)
			}
		})
	}
}
