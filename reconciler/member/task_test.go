package member

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// An object needs a task only if something has to be done about it, as far as the inventory and
// the watch show.
func TestWhichObjectsNeedATask(t *testing.T) {
	applied := inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "one", Hash: "h", Managed: "m"}
	announced, older := applied, applied
	announced.Hash, older.Hash = "", "old"
	ours := observed.Object{Fleet: "prod", Managed: "m"}
	edited, unlabelled, terminating, owned := ours, ours, ours, ours
	edited.Managed, unlabelled.Fleet, terminating.Terminating, owned.Others = "other", "", true, 1
	tests := map[string]struct {
		work  work.Work
		item  *inventory.Item  // nil if the inventory does not list it
		live  *observed.Object // nil if the watch does not report it
		fails *progress.Failure
		need  bool
		drift bool
	}{
		"new":                               {need: true},
		"announced and not applied":         {item: &announced, need: true},
		"as it was applied":                 {item: &applied, live: &ours},
		"new content":                       {item: &older, live: &ours, need: true},
		"edited":                            {item: &applied, live: &edited, need: true, drift: true},
		"without its label":                 {item: &applied, live: &unlabelled, need: true, drift: true},
		"deleted":                           {item: &applied, need: true, drift: true},
		"fields of others":                  {item: &applied, live: &owned},
		"terminating":                       {item: &applied, live: &terminating, need: true},
		"terminating and not applied":       {item: &announced, live: &terminating},
		"failed, and the retry is due":      {item: &applied, live: &ours, fails: &progress.Failure{Hash: "h"}, need: true},
		"failed, and the retry is not due":  {item: &applied, live: &edited, fails: &progress.Failure{Hash: "h", Next: time.Now().Add(time.Hour)}},
		"failed with other content":         {item: &older, live: &ours, fails: &progress.Failure{Hash: "old", Next: time.Now().Add(time.Hour)}, need: true},
		"suspended and as it was applied":   {work: work.Work{Suspended: "by hand"}, item: &applied, live: &ours},
		"suspended and edited":              {work: work.Work{Suspended: "by hand"}, item: &applied, live: &edited, need: true},
		"suspended and new":                 {work: work.Work{Suspended: "by hand"}, need: true},
		"only reported":                     {work: work.Work{Strategy: api.ApplyStrategy{Type: api.ReportDiff}}, live: &ours, need: true},
		"edited, and drift is left":         {work: work.Work{Drift: "report"}, item: &applied, live: &edited, need: true, drift: true},
		"compared in full and not verified": {work: work.Work{Strategy: api.ApplyStrategy{ComparisonOption: api.FullComparison, WhenToApply: api.ApplyIfNotDrifted}}, item: &applied, live: &ours, need: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			m := oneManifest()
			m.Hash = "h"
			test.work.Placement, test.work.Manifests = web, []*work.Manifest{m}
			s.setWorks([]*work.Work{&test.work})
			watchConfigMaps(t, s)
			if test.item != nil {
				s.inventories.owned.Inventory(web).Items.Put(*test.item)
			}
			if test.live != nil {
				s.record.objects.Put(m.ID, test.live)
			}
			if test.fails != nil {
				s.record.progress.Fail(m.ID, *test.fails)
			}
			got, need := s.applier.task(m.ID, desired.Object{Placement: web, Manifest: m})
			if need != test.need || need && got.Drift != test.drift {
				t.Errorf("needs a task: %t (drift: %t), want %t (%t)", need, got.Drift, test.need, test.drift)
			}
		})
	}
}

// An object that is encrypted in Git is neither applied nor removed, and its failure says why.
func TestEncryptedObjectsAreLeftAlone(t *testing.T) {
	for _, strategy := range []api.ApplyStrategyType{api.ServerSideApply, api.ReportDiff} {
		s := sessionAt(t, apiserver.NewConfigMaps())
		m := oneManifest()
		m.Encrypted = &api.Ciphertext{Tool: "SOPS", Path: []string{"data", "key"}}
		s.setWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{m}, Strategy: api.ApplyStrategy{Type: strategy}}})
		watchConfigMaps(t, s)
		s.inventories.owned.Inventory(web).Items.Put(inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: m.ID.Namespace, Name: m.ID.Name, Hash: "plain", Managed: "m"})
		s.record.objects.Put(m.ID, &observed.Object{Fleet: "prod", Managed: "m"})
		if tasks, stale := s.applier.findTasks(map[api.ID]bool{m.ID: true}, 0); len(tasks)+len(stale) > 0 {
			t.Errorf("%s: %d tasks and %d deletions", strategy, len(tasks), len(stale))
		}
		if bad := s.failure(m.ID); bad.Cond.Status != metav1.ConditionFalse || !strings.Contains(bad.Cond.Message(), "data.key is encrypted with SOPS") {
			t.Errorf("%s: the failure is %+v", strategy, bad)
		}
	}
}

// watchConfigMaps makes a session watch ConfigMaps until the test ends.
func watchConfigMaps(t *testing.T, s *session) {
	t.Helper()
	gvk := inventory.ConfigMaps.GroupVersion().WithKind("ConfigMap")
	s.kinds.Add(gvk, inventory.ConfigMaps)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(s.watch.Wait)
	t.Cleanup(cancel)
	if err := s.observer.prepareKinds(ctx, map[api.ID]bool{oneManifest().ID: true}); err != nil || !s.watch.Of(gvk).Complete() {
		t.Fatalf("ConfigMaps are not watched: %v", err)
	}
}

// Drift is held if its mode says so, until a user decides to revert it.
func TestWhichDriftIsHeld(t *testing.T) {
	edited := &observed.Object{Fleet: "prod"}
	tests := map[string]struct {
		work    work.Work
		live    *observed.Object // nil if the object was deleted
		putBack bool
		want    bool
	}{
		"reverted":                    {work.Work{}, edited, false, false},
		"proposed":                    {work.Work{Drift: "propose"}, edited, false, true},
		"reported":                    {work.Work{Drift: "report"}, edited, false, true},
		"a deletion, proposed":        {work.Work{Drift: "propose"}, nil, false, true},
		"a deletion, reported":        {work.Work{Drift: "report"}, nil, false, false},
		"a lost label":                {work.Work{Drift: "propose"}, &observed.Object{}, false, false},
		"to be reverted":              {work.Work{Drift: "propose"}, edited, true, false},
		"not reverted in any case":    {work.Work{Drift: "propose", Strategy: api.ApplyStrategy{WhenToApply: api.ApplyIfNotDrifted}}, edited, false, false},
		"compared in full afterwards": {work.Work{Drift: "propose", Strategy: api.ApplyStrategy{ComparisonOption: api.FullComparison}}, edited, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, m := sessionAt(t, apiserver.NewConfigMaps()), oneManifest()
			test.work.Placement, test.work.Manifests = web, []*work.Manifest{m}
			s.setWorks([]*work.Work{&test.work})
			if test.putBack {
				s.drifts.state.Loaded(web, protocol.Drift{ID: m.ID, State: api.DriftHeld})
				s.drifts.state.Decided(protocol.DriftDecisions{{Placement: web, ID: m.ID}: {PutBack: true, Fingerprint: protocol.Fingerprint(nil, "")}})
			}
			if got := s.drifts.holds(apply.Task{Object: desired.Object{Placement: web, Manifest: m}}, test.live); got != test.want {
				t.Errorf("held: %t, want %t", got, test.want)
			}
		})
	}
}

// A failed object is retried when its retry is due. One that was left because of its state is
// also retried after any write of others, but not more than once a second: `kubectl scale` twice
// changes the values of the object, and leaves the ownership of its fields as it was.
func TestWhenFailedObjectsAreRetried(t *testing.T) {
	const due, later, before = -time.Minute, time.Hour, -time.Minute
	m, scaledManifest := oneManifest(), oneManifest()
	id := m.ID
	left := observed.Object{UID: "1", Generation: 2, Others: 7, Managed: "m"}
	edited, scaledAgain := left, left
	edited.Others, scaledAgain.Generation = 8, 3
	scaledAgain.Scaled = true
	scaledManifest.Object.Content.Object["spec"] = map[string]any{"replicas": int64(2)}
	tests := map[string]struct {
		next, last time.Duration // of the failure, from now
		refused    bool          // it was left because of its state
		live       observed.Object
		suspect    bool // others have written it
		manifest   *work.Manifest
		waits      time.Duration // until the retry is due at the latest; zero if it does not wait
	}{
		"the retry is due":                        {next: due, live: left},
		"not due":                                 {next: later, last: before, live: left, waits: later},
		"an error, and others have written it":    {next: later, last: before, live: edited, suspect: true, waits: later},
		"left as it was":                          {next: later, last: before, refused: true, live: left, waits: later},
		"left, and edited":                        {next: later, last: before, refused: true, live: edited},
		"left, and the same fields are written":   {next: later, last: before, refused: true, live: scaledAgain, suspect: true},
		"left, and an autoscaler scales it":       {next: later, last: before, refused: true, live: scaledAgain, suspect: true, manifest: scaledManifest, waits: later},
		"left a moment ago, and written again":    {next: later, refused: true, live: scaledAgain, suspect: true, waits: progress.FirstRetry},
		"left a moment ago, and edited by others": {next: later, refused: true, live: edited, waits: progress.FirstRetry},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"})
			synctest.Test(t, func(t *testing.T) {
				s.record.objects.Put(id, &left)
				now := time.Now()
				f := progress.Failure{Next: now.Add(test.next), LastSeen: now.Add(test.last)}
				if state := s.live.OwnershipState(id); test.refused {
					f.Refused = &state
				}
				s.record.objects.Put(id, &test.live)
				if test.suspect {
					s.record.progress.Suspect(id)
				}
				s.record.progress.Fail(id, f)
				if got := s.applier.retryNotDue(f, cmp.Or(test.manifest, m)); got != (test.waits > 0) {
					t.Errorf("waits: %t", got)
				}
				if next := s.failure(id).Next; test.waits > 0 && next.After(now.Add(test.waits)) {
					t.Errorf("the retry is due in %s, want %s", next.Sub(now), test.waits)
				}
			})
		})
	}
}

// The next retry of an object depends on why it was not applied.
func TestNextRetry(t *testing.T) {
	m := oneManifest()
	refused := diff.Refused(diff.Drifts, "", false)
	failed := func(err error) apply.Outcome {
		return apply.Outcome{Do: diff.Apply, Err: err, Cond: diff.ApplyFailed(diff.Apply, err)}
	}
	missing := apiserver.Refusal(http.StatusNotFound, `namespaces "web" not found`)
	slow := apierrors.NewTooManyRequests("slow down", 90)
	tests := map[string]struct {
		work     work.Work
		outcome  apply.Outcome
		watched  bool
		failures retry.Backoff // before
		again    bool          // the object was left in the same state before
		from, to time.Duration
	}{
		"an error":                           {outcome: failed(errors.New("no")), from: progress.FirstRetry, to: progress.FirstRetry},
		"an error again and again":           {outcome: failed(errors.New("no")), failures: 20, from: progress.LastRetry, to: progress.LastRetry},
		"its namespace is missing":           {outcome: failed(missing), from: 100 * time.Millisecond, to: 100 * time.Millisecond},
		"the server asks to wait":            {outcome: failed(slow), from: 90 * time.Second, to: 90 * time.Second},
		"left, not watched":                  {outcome: apply.Outcome{Cond: refused}, from: progress.FirstRetry, to: progress.FirstRetry},
		"left, watched":                      {outcome: apply.Outcome{Cond: refused}, watched: true, from: 2 * time.Second, to: 2 * time.Second},
		"left, watched and confirmed":        {outcome: apply.Outcome{Cond: refused}, watched: true, again: true, from: 6 * time.Hour, to: 6 * time.Hour},
		"suspended, not watched":             {work: work.Work{Suspended: "by hand"}, outcome: apply.Outcome{Task: apply.Task{SuspendedReason: "by hand"}, Cond: refused}, from: progress.CompareInterval, to: progress.CompareInterval},
		"only compared":                      {work: work.Work{Strategy: api.ApplyStrategy{Type: api.ReportDiff}}, outcome: apply.Outcome{Cond: diff.Reported(1, false)}, from: progress.CompareInterval, to: progress.CompareInterval},
		"only compared, and that has failed": {work: work.Work{Strategy: api.ApplyStrategy{Type: api.ReportDiff}}, outcome: failed(errors.New("no")), from: progress.FirstRetry, to: progress.FirstRetry},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			test.work.Placement, test.work.Manifests = web, []*work.Manifest{m}
			s.setWorks([]*work.Work{&test.work})
			if test.watched {
				watchConfigMaps(t, s)
				s.record.objects.Put(m.ID, &observed.Object{UID: "1"})
			}
			if test.failures > 0 {
				s.record.progress.Fail(m.ID, progress.Failure{Hash: m.Hash, Backoff: test.failures})
			}
			o := test.outcome
			o.Object = desired.Object{Placement: web, Manifest: m}
			if test.again {
				s.record.failure(o)
			}
			began := time.Now()
			s.record.progress.Compared(began)
			s.record.failure(o)
			next := s.failure(m.ID).Next // the backoff is shorter by up to a quarter
			if next.Before(began.Add(test.from*3/4)) || next.After(time.Now().Add(test.to)) {
				t.Errorf("retried after %s, want %s to %s", next.Sub(began), test.from, test.to)
			}
		})
	}
}

// The report calls a failure pending if it passes by itself: something that is placed here too
// is on its way, or a server or webhook does not respond now.
func TestPendingFailures(t *testing.T) {
	namespace := &work.Manifest{Object: &api.Object{ID: api.ID{Kind: "Namespace", Name: "web"}, Content: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}}}
	const noNamespace = `namespaces "web" not found`
	bySchema := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "RefusedBySchema"}}}}}
	definition := &work.Manifest{Object: &api.Object{ID: api.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "configmaps"}, Content: &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"group": "", "names": map[string]any{"kind": "ConfigMap"}, "versions": []any{map[string]any{"name": "v1", "served": true}}},
	}}}}
	terminating := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "NamespaceTerminating"}}}}}
	tests := map[string]struct {
		err    error
		others []*work.Manifest
		want   bool
	}{
		"differs":                                 {nil, nil, false},
		"its definition is being established":     {&pendingDefinition{errors.New("not yet")}, nil, true},
		"its namespace is being deleted":          {terminating, nil, true},
		"its namespace is missing":                {apiserver.Refusal(http.StatusNotFound, noNamespace), nil, false},
		"its namespace is missing, and is placed": {apiserver.Refusal(http.StatusNotFound, noNamespace), []*work.Manifest{namespace}, true},
		"no response":                             {connection.Unreachable(errors.New("refused")), nil, true},
		"too many requests":                       {apiserver.Refusal(http.StatusTooManyRequests, "slow down"), nil, true},
		"an internal error":                       {apiserver.Refusal(http.StatusInternalServerError, "etcd"), nil, true},
		"not available":                           {apiserver.Refusal(http.StatusServiceUnavailable, "starting"), nil, true},
		"a timeout":                               {apiserver.Refusal(http.StatusGatewayTimeout, "late"), nil, true},
		"forbidden":                               {apiserver.Refusal(http.StatusForbidden, "not for you"), nil, false},
		"invalid":                                 {apiserver.Refusal(http.StatusUnprocessableEntity, "must be positive"), nil, false},
		"another schema":                          {bySchema, nil, false},
		"another schema, which is placed":         {bySchema, []*work.Manifest{definition}, true},
		"another error":                           {errors.New("no"), nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, m := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"}), oneManifest()
			s.setWorks([]*work.Work{{Placement: web, Manifests: append(test.others, m)}})
			if got := s.record.isTransient(apply.Outcome{Task: apply.Task{Object: desired.Object{Placement: web, Manifest: m}}, Err: test.err}); got != test.want {
				t.Errorf("pending: %t, want %t", got, test.want)
			}
		})
	}
}
