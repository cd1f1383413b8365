package member

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
	"weak"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/gatejob"
	"github.com/gitfleet/gitfleet/reconciler/member/permission"
	"github.com/gitfleet/gitfleet/reconciler/member/rbac"
)

// refusal returns the error of a session that could not be opened. If that is Forbidden, it
// reviews all permissions and returns a *ForbiddenError that lists the missing ones.
func (s *session) refusal(ctx context.Context, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	select {
	case s.lastWorks = <-s.newWorks: // the works determine the needed permissions
	default:
	}
	s.kinds.Resolve(ctx, kindsOf(s.lastWorks)) // nolint:errcheck // kinds that cannot be resolved are left out
	s.access.RecordRefusal(err)
	s.review(ctx)
	if missing := s.access.Forbidden(); len(missing) > 0 {
		return &ForbiddenError{err, missing}
	}
	return err
}

// review reviews all permissions that the work needs and reports the missing ones. It does
// nothing unless the cluster has refused a request, and does not repeat a recent review.
func (s *session) review(ctx context.Context) {
	if !s.access.Refused() || ctx.Err() != nil || s.store.ClaimedByOther() || s.observingOnly {
		return
	}
	reviewed, changed := s.access.Review(ctx, s.conn, s.permissionBasis(), func() []rbac.Permission {
		needs, _ := s.needs()
		return needs
	})
	s.reportAccess(changed)
	if reviewed && s.introduced {
		s.reschedule()
	}
}

// permissionBasis returns the state that the result of needs is derived from.
func (s *session) permissionBasis() permission.Basis {
	b := permission.Basis{Count: len(s.lastWorks), Kinds: s.kinds.Count(), Leaving: s.leaving}
	if jobs := s.Jobs.Namespaces(); len(jobs) > 0 {
		b.Jobs = strings.Join(slices.Sorted(maps.Keys(jobs)), ",")
	}
	if b.Count > 0 {
		b.Works = weak.Make(&s.lastWorks[0])
	}
	return b
}

// reviewMissing reviews the missing permissions again when the next review is due, except for
// those that are not needed any more. Once all are granted, failed objects are retried at once.
func (s *session) reviewMissing(ctx context.Context) {
	missing := s.access.Missing()
	if len(missing) == 0 || time.Now().Before(s.access.NextRetry()) {
		return
	}
	if needs, complete := s.needs(); complete && s.introduced && s.lastWorks != nil {
		missing = slices.DeleteFunc(slices.Clone(missing), func(p rbac.Permission) bool { return !slices.Contains(needs, p) })
	}
	s.reportAccess(s.access.Update(ctx, s.conn, missing))
	if len(s.access.Missing()) == 0 {
		s.record.progress.RetryAll()
		s.store.ForgetNamespace()
	}
}

// reportAccess reports the missing permissions if they have changed.
func (s *session) reportAccess(changed bool) {
	if changed && s.introduced {
		s.reportCluster()
	}
}

// needs returns the permissions that the work needs, sorted. complete says that all kinds could
// be resolved.
func (s *session) needs() (needs []rbac.Permission, complete bool) {
	content := rbac.Content{Releases: s.leaving, HasNamespace: slices.Contains(s.health.Namespaces, api.Namespace)}
	complete = true
	add := func(gvk schema.GroupVersionKind, namespace string) (known bool) {
		res, known := s.kinds.Of(gvk)
		if known {
			content.Add(res.GroupResource(), namespace)
		}
		complete = complete && known
		return known
	}
	for _, w := range s.lastWorks {
		content.Releases = content.Releases || w.Abandon
		for _, m := range w.Manifests {
			add(m.Object.Content.GroupVersionKind(), m.ID.Namespace)
		}
	}
	for inv := range s.owned.All() {
		for it := range inv.All() {
			known := add(it.GroupVersionKind(), it.Namespace)
			content.Unserved = content.Unserved || !known && strings.Contains(it.Group, ".")
		}
	}
	for namespace := range s.Jobs.Namespaces() {
		content.Add(gatejob.Jobs.GroupResource(), namespace)
	}
	return content.Required(), complete
}

// kindsOf returns the kinds of all objects of works.
func kindsOf(works []*work.Work) map[schema.GroupVersionKind]bool {
	gvks := map[schema.GroupVersionKind]bool{}
	for _, w := range works {
		for _, m := range w.Manifests {
			gvks[m.Object.Content.GroupVersionKind()] = true
		}
	}
	return gvks
}
