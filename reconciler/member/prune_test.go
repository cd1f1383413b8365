package member

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// The report says why an object still exists that should be deleted. A refused deletion is
// shown at once, a failure that may pass only if it does not, and a server without a response
// not at all.
func TestReportSaysWhyAnObjectIsNotDeleted(t *testing.T) {
	denied := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
	}
	web, m := api.PlacementKey{Name: "web"}, oneManifest()
	tests := map[string]struct {
		err   error
		tries int
		want  string
	}{
		"forbidden":          {denied(http.StatusForbidden, metav1.StatusReasonForbidden, "cannot delete resource"), 1, "cannot delete resource"},
		"denied by webhook":  {denied(http.StatusBadRequest, "", "admission webhook denied the request"), 1, "admission webhook denied the request"},
		"failing":            {denied(http.StatusInternalServerError, "", "failed calling webhook"), 1, ""},
		"failing repeatedly": {denied(http.StatusInternalServerError, "", "failed calling webhook"), passingFailures, "failed calling webhook"},
		"unreachable":        {connection.Unreachable(errors.New("refused")), passingFailures, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			s.holding(m, web)
			s.works[web] = work.Work{Placement: web}
			var told ledger.WorkSeen
			s.cfg.Report = func(o ledger.Observation) { told = o.(ledger.WorkSeen) }
			for range test.tries {
				if s.pruner.succeeded(t.Context(), stale{inv: s.inv[web], item: s.inv[web].Items.Of(m.ID)}, test.err) {
					t.Fatal("a removal that failed counts as done")
				}
			}
			s.reporter.report(t.Context(), web)
			var got []string
			for _, f := range told.DeletionErrors {
				got = append(got, f.ID.Name+": "+f.Message)
			}
			text := strings.Join(got, "\n")
			if test.want == "" && text != "" || test.want != "" && (len(got) != 1 || !strings.HasPrefix(text, "one: ") || !strings.Contains(text, test.want)) {
				t.Errorf("the report says %q, not %q", text, test.want)
			}
		})
	}
}
