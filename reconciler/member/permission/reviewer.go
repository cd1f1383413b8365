package permission

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"weak"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/rbac"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

const (
	// Retry is the time between two reviews of permissions that were missing.
	Retry = time.Minute
	// pause is the time between two reviews of the same permissions if none was missing:
	// admission webhooks and quotas refuse requests as well.
	pause = 5 * time.Minute
)

// Config configures a reviewer. All fields must be set.
type Config struct {
	// Cluster is the name of the cluster in log lines.
	Cluster string
	// Concurrency bounds the concurrent requests.
	Concurrency int
	Log         *slog.Logger
}

// A Reviewer reviews the permissions on one cluster. One goroutine uses it, except that any may
// call RecordRefusal and Forbidden.
type Reviewer struct {
	cfg Config
	// refused says that the cluster has refused a request since the last review.
	refused atomic.Bool
	// asked are the permissions of the last review, which were needed for basis. They are not
	// reviewed again before next.
	asked   []rbac.Permission
	basis   Basis
	next    time.Time
	missing []rbac.Permission
	// forbidden are the missing permissions as reports and errors show them.
	forbidden atomic.Pointer[[]string]
	logged    retry.LogLimiter
}

// A Basis is the state that the needed permissions are derived from. It changes when other
// permissions may be needed.
type Basis struct {
	// Works points to the first work, and Count is the number of works.
	Works weak.Pointer[*work.Work]
	Count int
	// Kinds is the number of kinds of which it is known how the cluster serves them.
	Kinds int
	// Jobs are the namespaces in which gates run Jobs, sorted and joined.
	Jobs    string
	Leaving bool
}

// New returns a reviewer that knows of no refused request.
func New(cfg Config) *Reviewer { return &Reviewer{cfg: cfg} }

// RecordRefusal records that the cluster has refused a request, if the error is Forbidden. A
// terminating namespace refuses what is created in it, whoever asks: that is not recorded.
func (r *Reviewer) RecordRefusal(err error) {
	if apierrors.IsForbidden(err) && !connection.ForbiddenByNamespace(err) {
		r.refused.Store(true)
	}
}

// Forbidden returns the missing permissions as text.
func (r *Reviewer) Forbidden() []string {
	if told := r.forbidden.Load(); told != nil {
		return *told
	}
	return nil
}

// Missing returns the missing permissions. The caller does not change them.
func (r *Reviewer) Missing() []rbac.Permission { return r.missing }

// NextRetry returns when the missing permissions are to be reviewed again; zero if none are
// missing.
func (r *Reviewer) NextRetry() time.Time {
	if len(r.missing) == 0 {
		return time.Time{}
	}
	return r.next
}

// Expire makes the missing permissions due for a review.
func (r *Reviewer) Expire() { r.next = time.Time{} }

// Refused reports whether the cluster has refused a request since the last review.
func (r *Reviewer) Refused() bool { return r.refused.Load() }

// Review reviews the permissions that are needed, unless the same ones were reviewed a short
// while ago. It calls needs, which returns them, only if the basis has changed or a review is
// due. reviewed says that it did, changed that others are missing than before.
func (r *Reviewer) Review(ctx context.Context, conn *connection.Conn, basis Basis, needs func() []rbac.Permission) (reviewed, changed bool) {
	recent := time.Now().Before(r.next)
	if recent && basis == r.basis {
		return false, false
	}
	r.basis = basis
	needed := needs()
	if recent && slices.Equal(needed, r.asked) {
		return false, false
	}
	r.refused.Store(false)
	r.asked = needed
	return true, r.Update(ctx, conn, needed)
}

// Update reviews some permissions; all others count as granted. It reports whether others are
// missing than before.
func (r *Reviewer) Update(ctx context.Context, conn *connection.Conn, needs []rbac.Permission) (changed bool) {
	r.next = time.Now().Add(pause)
	missing, err := Lacking(ctx, conn, r.cfg.Concurrency, needs)
	if err != nil {
		if r.logged.Due(connection.WithoutPort(err)) {
			r.cfg.Log.Warn("permissions cannot be reviewed", "cluster", r.cfg.Cluster, "err", err)
		}
		return false
	}
	r.missing = missing
	if len(missing) > 0 {
		r.next = time.Now().Add(Retry)
	}
	now := rbac.Describe(missing)
	if slices.Equal(now, r.Forbidden()) {
		return false
	}
	r.forbidden.Store(&now)
	if len(now) == 0 {
		r.cfg.Log.Info("no permissions are missing any more", "cluster", r.cfg.Cluster)
	} else {
		r.cfg.Log.Warn("permissions are missing", "cluster", r.cfg.Cluster, "permissions", strings.Join(now, "; "))
	}
	return true
}
