package member

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
)

// A failure is retried, but not logged each time.
func TestRetriesAreLoggedOnce(t *testing.T) {
	var logged strings.Builder
	s := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"})
	s.cfg.Log = slog.New(slog.NewTextHandler(&logged, nil))
	s.kinds, s.unseen, s.retry = discovery.New(s.conn.Discovery), map[api.ID]bool{}, time.NewTimer(time.Hour)
	web := api.PlacementKey{Name: "web"}
	s.works = map[api.PlacementKey]work.Work{web: {Placement: web}}
	s.inventory(web).Items.Put(inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "one"})
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
	inv := s.inventory(web)
	for name, again := range map[string]func(error){
		"object not applied": func(err error) {
			s.applier.fail(outcome{task: task{wanted: wanted{web, oneManifest()}}, do: diff.Apply, err: err, cond: diff.ApplyFailed(diff.Apply, err)})
		},
		"object not removed": func(err error) {
			s.pruner.succeeded(t.Context(), stale{inv: inv, item: &inventory.Item{Version: "v1", Kind: "ConfigMap", Name: "x"}}, err)
		},
	} {
		clear(s.trouble)
		for i, f := range fails {
			logged.Reset()
			if again(f.err); strings.Contains(logged.String(), name) != f.log {
				t.Errorf("%s, %d: %v: logged %q", name, i, f.err, logged.String())
			}
		}
	}
}
