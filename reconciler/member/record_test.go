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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/owned"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// Each deleted object is logged. The next report counts the objects for each cause and
// names the first ones; later reports do not repeat them.
func TestDeletionsAreLoggedAndReportedOnce(t *testing.T) {
	var log bytes.Buffer
	s, key := sessionAt(t, apiserver.NewConfigMaps()), api.PlacementKey{Name: "web"}
	s.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	var reported []string
	s.cfg.Report = func(o protocol.Observation) {
		seen := o.(protocol.WorkSeen)
		for _, d := range seen.Unusual().Deletions {
			reported = append(reported, fmt.Sprintf("%d by %s, %s: %v", d.Total, d.Commit, d.Why, d.Objects))
		}
	}
	s.holding(oneManifest(), key)
	for _, c := range []work.Cause{{Commit: "c1", Why: "no longer wanted"}, {Commit: "c2", Why: "the placement was deleted"}} {
		s.replaceWorks([]*work.Work{{Placement: key, Cause: c}})
		for i := range 7 {
			s.history.addRemoval(key, api.ID{Kind: "ConfigMap", Namespace: "web", Name: fmt.Sprint(i)}, history.Deleted, c, nil, false)
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
			s.replaceWorks([]*work.Work{{Placement: key, Remove: true, AllowDelete: true}})
			var events []history.Event
			s.cfg.Record = func(all ...history.Entry) {
				for _, e := range all {
					events = append(events, e.Event)
				}
			}
			st := owned.Stale{Inventory: s.inventory(key).View(), Item: s.inventory(key).Items.Of(oneManifest().ID)}
			o := s.pruner.remove(t.Context(), st)
			if s.record.removal(o, map[api.PlacementKey]bool{}); o.gone != test.removed {
				t.Errorf("removed: %t, want %t", o.gone, test.removed)
			}
			if !slices.Equal(events, test.events) {
				t.Errorf("events: %v, want %v", events, test.events)
			}
			if n := len(s.history.deletions.Take(key)); (n == 1) != slices.Contains(test.events, history.Deleted) {
				t.Errorf("%d deletions are reported", n)
			}
		})
	}
}

// Our apply created an object if our fields are as old as the object; times are in whole seconds.
func TestMade(t *testing.T) {
	created := time.Unix(1000, 0)
	object := &metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}
	ours := func(at time.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: api.FieldManager, Operation: metav1.ManagedFieldsOperationApply, Time: &metav1.Time{Time: at}}
	}
	theirs := metav1.ManagedFieldsEntry{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: created}}
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"created by us":            {[]metav1.ManagedFieldsEntry{ours(created)}, true},
		"and then edited":          {[]metav1.ManagedFieldsEntry{theirs, ours(created.Add(time.Second))}, true},
		"created by others before": {[]metav1.ManagedFieldsEntry{theirs, ours(created.Add(2 * time.Second))}, false},
		"no time":                  {[]metav1.ManagedFieldsEntry{{Manager: api.FieldManager, Operation: metav1.ManagedFieldsOperationApply}}, true},
		"no fields":                {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			object.ManagedFields = test.entries
			if got := apply.Made(object); got != test.want {
				t.Errorf("made: %t", got)
			}
		})
	}
}

// The history has one entry for each write and for each new failure, with its event. It has none
// for objects that were found as they should be.
func TestHistoryOfOutcomes(t *testing.T) {
	m, asking := oneManifest(), changedOne(true)
	applied := &inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "one", Hash: "old"}
	announced := &inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "one"}
	at := func(version uint64) *observed.Object { return &observed.Object{Version: version} }
	live := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}}
	failed := diff.ApplyFailed(diff.Apply, errors.New("denied"))
	tests := map[string]struct {
		outcome apply.Outcome
		known   *observed.Object // the object before, as the watch knows it
		before  progress.Failure // of the object before
		work    work.Work
		want    string // event, by and message
	}{
		"created":                       {outcome: apply.Outcome{Task: apply.Task{Item: announced}, Do: diff.Create, Written: at(8), Made: true}, want: "created"},
		"existed unnoticed":             {outcome: apply.Outcome{Task: apply.Task{Item: announced}, Do: diff.Create, Written: at(8)}, want: "takenOver"},
		"existed":                       {outcome: apply.Outcome{Task: apply.Task{Item: announced}, Do: diff.Apply, Written: at(8), Made: true}, known: &observed.Object{Version: 7}, want: "takenOver"},
		"taken over":                    {outcome: apply.Outcome{Task: apply.Task{Item: announced}, Do: diff.TakeOver, Written: at(8)}, want: "takenOver"},
		"changed":                       {outcome: apply.Outcome{Task: apply.Task{Item: applied}, Do: diff.Apply, Written: at(8)}, want: "changed"},
		"drift was reverted":            {outcome: apply.Outcome{Task: apply.Task{Item: applied, Drift: true}, Do: diff.Apply, Written: at(8), Snapshot: apply.Snapshot{Live: live}, Before: protocol.Drift{By: []api.Actor{{Manager: "kubectl", Operation: "Update"}}}}, want: "repaired by kubectl (Update)"},
		"a deletion was reverted":       {outcome: apply.Outcome{Task: apply.Task{Item: applied, Drift: true}, Do: diff.Create, Written: at(8), Before: protocol.Drift{Deleted: true}}, want: "repaired by a watch"},
		"there was no drift":            {outcome: apply.Outcome{Task: apply.Task{Item: applied, Drift: true}, Do: diff.Apply, Written: at(7), Snapshot: apply.Snapshot{Live: live}}},
		"as in Git":                     {outcome: apply.Outcome{Task: apply.Task{Item: applied}, Do: diff.Nothing, Cond: diff.Applied()}},
		"failed":                        {outcome: apply.Outcome{Task: apply.Task{Item: applied}, Do: diff.Apply, Cond: failed, Err: errors.New("denied")}, want: "failed: " + failed.Message()},
		"failed as before":              {outcome: apply.Outcome{Task: apply.Task{Item: applied}, Do: diff.Apply, Cond: failed, Err: errors.New("denied")}, before: progress.Failure{Hash: "hash", Cond: failed}},
		"failed for another reason":     {outcome: apply.Outcome{Task: apply.Task{Item: applied}, Do: diff.Apply, Cond: failed, Err: errors.New("denied")}, before: progress.Failure{Hash: "hash", Cond: diff.Refused(diff.Drifts, "", false)}, want: "failed: " + failed.Message()},
		"failed with other content":     {outcome: apply.Outcome{Task: apply.Task{Item: applied}, Do: diff.Apply, Cond: failed, Err: errors.New("denied")}, before: progress.Failure{Hash: "older", Cond: failed}, want: "failed: " + failed.Message()},
		"differs, and is only compared": {outcome: apply.Outcome{Task: apply.Task{Item: applied}, Do: diff.Report, Cond: diff.ReportFailed(errors.New("no"))}, work: work.Work{Strategy: api.ApplyStrategy{Type: api.ReportDiff}}},
		"to be recreated":               {outcome: apply.Outcome{Task: apply.Task{Item: applied, Object: desired.Object{Placement: web, Manifest: asking}}, Do: diff.Apply, Cond: failed, Err: errors.New("denied"), Immutable: true}},
		"immutable, and not recreated":  {outcome: apply.Outcome{Task: apply.Task{Item: applied}, Do: diff.Apply, Cond: failed, Err: errors.New("denied"), Immutable: true}, want: "failed: " + failed.Message()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"})
			test.work.Placement, test.work.Revision.Commit = web, "c1"
			s.replaceWorks([]*work.Work{&test.work})
			var got []string
			s.cfg.Record = func(all ...history.Entry) {
				for _, e := range all {
					text := string(e.Event)
					if e.By != "" {
						text += " by " + e.By
					}
					if e.Message != "" {
						text += ": " + e.Message
					}
					got = append(got, text)
					if e.Cluster != "east" || e.Placement != "crp/web" || e.Object != "ConfigMap/web/one" || e.Commit != "c1" || e.Kind != history.Object {
						t.Errorf("the entry is about %+v", e)
					}
				}
			}
			if test.known != nil {
				s.record.objects.Put(m.ID, test.known)
			}
			if test.outcome.Manifest == nil {
				test.outcome.Object = desired.Object{Placement: web, Manifest: m}
			}
			s.history.addOutcome(test.outcome, test.before, "a watch")
			if text := strings.Join(got, "; "); text != test.want {
				t.Errorf("recorded: %q, want %q", text, test.want)
			}
		})
	}
}

// A removal that fails is recorded once, with what was to be done.
func TestFailedRemovalsAreRecordedOnce(t *testing.T) {
	s := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"})
	var got []string
	s.cfg.Record = func(all ...history.Entry) {
		for _, e := range all {
			got = append(got, fmt.Sprintf("%s %s: %s", e.Event, e.Commit, e.Message))
		}
	}
	s.holding(oneManifest(), web)
	st := owned.Stale{Inventory: s.inventory(web).View(), Item: s.inventory(web).Items.Of(oneManifest().ID)}
	s.replaceWorks([]*work.Work{{Placement: web, Cause: work.Cause{Commit: "c2", Why: "no longer in Git"}}})
	for range 3 {
		s.record.removal(s.pruner.result(t.Context(), st, history.Deleted, errors.New("denied")), map[api.PlacementKey]bool{})
	}
	s.record.removal(s.pruner.result(t.Context(), st, history.Released, nil), map[api.PlacementKey]bool{})
	if want := []string{"failed c2: not removed: denied", "released c2: no longer in Git"}; !slices.Equal(got, want) {
		t.Errorf("recorded: %q, want %q", got, want)
	}
	if left := s.history.deletions.Take(web); left != nil {
		t.Errorf("reported as deleted: %+v", left)
	}
}
