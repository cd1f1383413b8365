package member

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/owned"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// An object that waits for a namespace is retried as soon as we have created the namespace,
// before its next retry is due. The watch event that follows adds nothing.
func TestCreatedNamespaceRetriesItsObjects(t *testing.T) {
	namespaces := connection.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Namespaced: false}
	app := api.ID{Kind: "Namespace", Name: "app"}
	web := api.PlacementKey{Name: "web"}
	m := &work.Manifest{Object: &api.Object{ID: app, Hash: "hash", Content: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "app"},
	}}}}
	for code, revived := range map[int]bool{http.StatusCreated: true, http.StatusOK: false} {
		made := &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: "app", UID: "1", ResourceVersion: "7", Labels: map[string]string{api.ManagedByLabel: "prod"}},
		}
		s := sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			json.NewEncoder(w).Encode(made) //nolint:errcheck // the test would see it
		}))
		s.cfg.Encoder, s.record.fresh = apply.NewEncoder("prod", ""), map[string]bool{}
		s.replaceWorks([]*work.Work{{Placement: web, Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverAlways}}})
		later := time.Now().Add(5 * time.Minute)
		there, elsewhere := cm("there"), api.ID{Kind: "ConfigMap", Namespace: "other", Name: "elsewhere"}
		s.record.progress.Fail(there, progress.Failure{Next: later})
		s.record.progress.Fail(elsewhere, progress.Failure{Next: later})
		it := inventory.Item{Version: "v1", Kind: "Namespace", Name: "app"}
		s.inventories.owned.Inventory(web).Items.Put(it)
		s.applier.apply(t.Context(), []apply.Task{{Object: desired.Object{Placement: web, Manifest: m}, Res: namespaces, Item: &it, Found: &apply.Finding{}}}, map[api.PlacementKey]bool{})
		if s.live.Of(app) == nil {
			t.Fatalf("%d: the namespace is not made: %+v", code, s.failure(app))
		}
		if next := s.failure(there).Next; next.Before(later) != revived || !s.failure(elsewhere).Next.Equal(later) {
			t.Errorf("answered %d, what is in it is tried at %s, and not at %s; elsewhere at %s", code, next, later, s.failure(elsewhere).Next)
		}
	}
}

// An object that is to be retried at once is retried even if nothing else has to be done for
// it.
func TestHurrySchedulesARetry(t *testing.T) {
	s := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"})
	s.record.progress.Fail(cm("x"), progress.Failure{Next: time.Now().Add(time.Hour)})
	s.record.progress.RetryNamespace("app")
	s.reschedule()
	select {
	case <-s.retry.C:
	case <-time.After(10 * time.Second):
		t.Error("nobody looks at it again")
	}
}

// A failure is retried, but not logged each time.
func TestRetriesAreLoggedOnce(t *testing.T) {
	var logged strings.Builder
	s := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"})
	s.cfg.Log = slog.New(slog.NewTextHandler(&logged, nil))
	s.kinds, s.retry = discovery.New(s.conn.Discovery), time.NewTimer(time.Hour)
	web := api.PlacementKey{Name: "web"}
	s.replaceWorks([]*work.Work{{Placement: web}})
	s.inventories.owned.Inventory(web).Items.Put(inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "one"})
	for range 3 {
		if s.prepared(t.Context(), map[api.ID]bool{cm("x"): true}) {
			t.Error("the kinds are known")
		}
		s.inventories.save(t.Context(), map[api.PlacementKey]bool{web: true})
	}
	if text := logged.String(); strings.Count(text, "kinds not known") != 1 || strings.Count(text, "inventory not written") != 1 {
		t.Errorf("logged:\n%s", text)
	}
}

// Another error about an object is logged, also if it has the same reason. The same error that
// only differs in a number is not.
func TestAnotherErrorIsLogged(t *testing.T) {
	denied := func(code int32, reason metav1.StatusReason, message string, fields ...string) error {
		err := &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{}}}
		for _, f := range fields {
			err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: f})
		}
		return err
	}
	fails := []struct {
		err error
		log bool
	}{
		{denied(http.StatusForbidden, metav1.StatusReasonForbidden, "exceeded quota: used 9"), true},
		{denied(http.StatusForbidden, metav1.StatusReasonForbidden, "exceeded quota: used 10"), false},
		{denied(http.StatusBadRequest, "", "admission webhook denied the request"), true},
		{denied(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "field is immutable", "spec.selector"), true},
		{denied(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "must be positive", "spec.replicas"), true},
		{denied(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "must be positive", "spec.replicas"), false},
		{connection.Plain(context.DeadlineExceeded), true},
		{errors.New("connection refused"), false},
	}
	var logged strings.Builder
	s := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"})
	s.cfg.Log = slog.New(slog.NewTextHandler(&logged, nil))
	web := api.PlacementKey{Name: "web"}
	inv := s.inventories.owned.Inventory(web)
	for name, again := range map[string]func(error){
		"object not applied": func(err error) {
			s.record.failure(apply.Outcome{Task: apply.Task{Object: desired.Object{Placement: web, Manifest: oneManifest()}}, Do: diff.Apply, Err: err, Cond: diff.ApplyFailed(diff.Apply, err)})
		},
		"object not removed": func(err error) {
			st := owned.Stale{Inventory: inv.View(), Item: &inventory.Item{Version: "v1", Kind: "ConfigMap", Name: "x"}}
			s.record.removal(s.pruner.result(t.Context(), st, "", err), map[api.PlacementKey]bool{})
		},
	} {
		s.record.progress.StartOver(nil)
		for i, f := range fails {
			logged.Reset()
			if again(f.err); strings.Contains(logged.String(), name) != f.log {
				t.Errorf("%s, %d: %v: logged %q", name, i, f.err, logged.String())
			}
		}
	}
}

// A pass that could not be made is tried again soon, whatever else is processed meanwhile.
func TestBlockedPassKeepsItsRetry(t *testing.T) {
	s := sessionAt(t, apiserver.NewConfigMaps())
	s.postponed = true
	s.schedule(time.Minute)
	s.reschedule()
	if !s.retry.Stop() {
		t.Error("the retry was cancelled")
	}
}
