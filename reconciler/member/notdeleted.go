package member

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// succeeded records the result of a removal, and reports whether it succeeded. A failed one is
// retried with backoff, and the report says why the object still exists.
func (s *session) succeeded(ctx context.Context, st stale, err error) bool {
	s.cfg.Metrics.done(s.cfg.Name, "Delete", err)
	if err == nil {
		return true
	}
	id := st.item.ID()
	t := s.trouble[id]
	if t == nil {
		t = &trouble{since: time.Now()}
		s.trouble[id] = t
	}
	t.next = time.Now().Add(max(t.failures.Next(firstRetry, lastRetry), connection.RetryAfter(err)))
	shown := s.scrubRemoval(ctx, st, err)
	if lasts(err) || t.failures >= passingFailures && !connection.IsUnreachable(err) {
		t.notDeleted = connection.Cut(shown.Error())
	}
	if t.logged.Due("not removed" + connection.RefusalReason(err)) {
		s.cfg.Log.Warn("object not removed", "cluster", s.cfg.Name, "placement", st.inv.Placement.String(), "object", id.String(), "err", shown)
	}
	return false
}

// passingFailures is the number of consecutive failures of a deletion before the report shows a
// reason that often passes by itself, such as a conflict. A server that does not answer is
// shown in the status of its cluster instead.
const passingFailures = 3

// lasts reports whether a removal failed for a reason that will not pass by itself.
func lasts(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	code := answer.Status().Code
	return code >= 400 && code < 500 && code != http.StatusConflict && code != http.StatusTooManyRequests
}

// scrubRemoval removes values of Secrets from an error: an admission webhook sees the object
// whose deletion it denies.
func (s *session) scrubRemoval(ctx context.Context, st stale, err error) error {
	if !connection.Answered(err) {
		return err
	}
	id := st.item.ID()
	if res, ok := s.kinds.Of(st.item.GroupVersionKind()); ok && id.Group == "" && id.Kind == "Secret" {
		if found, readErr := s.conn.Read(ctx, res, id); readErr == nil && found != nil {
			err = diff.SecretsOf(found).Error(err)
		}
	}
	return s.secrets().Error(err)
}
