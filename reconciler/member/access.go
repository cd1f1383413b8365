package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/rbac"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// access records the permissions that the cluster does not grant. Only the goroutine of the
// session reviews them, after the cluster has refused a request.
type access struct {
	// denied says that the cluster has refused a request since the last review.
	denied atomic.Bool
	// asked are the permissions of the last review, and reviewed is the state that they were
	// derived from. The same permissions are not reviewed again before next.
	asked    []rbac.Permission
	reviewed reviewKey
	next     time.Time
	missing  []rbac.Permission
	// told are the missing permissions as reports and errors show them.
	told   atomic.Pointer[[]string]
	logged retry.LogLimiter
}

// A reviewKey changes when other permissions may be needed.
type reviewKey struct {
	works          *work.Work // address of the first work
	count, kinds   int
	leaving, known bool
}

func (s *session) reviewKey() reviewKey {
	k := reviewKey{count: len(s.last), kinds: s.kinds.Count(), leaving: s.leaving, known: true}
	if k.count > 0 {
		k.works = &s.last[0]
	}
	return k
}

const (
	// accessRetry is the time between two reviews of permissions that were missing.
	accessRetry = time.Minute
	// accessPause is the time between two reviews of the same permissions if none was missing:
	// admission webhooks and quotas refuse requests as well.
	accessPause = 5 * time.Minute
	// mostReviews is the maximum number of requests of one review, enough for forty kinds.
	mostReviews = 256
)

// forbidden returns the missing permissions as text.
func (a *access) forbidden() []string {
	if told := a.told.Load(); told != nil {
		return *told
	}
	return nil
}

// A ForbiddenError says that a member cannot be used because permissions are missing.
type ForbiddenError struct {
	err     error
	missing []string
}

// Error implements error.
func (f *ForbiddenError) Error() string {
	return "permissions are missing: " + strings.Join(f.missing, "; ")
}

// Unwrap returns the refusal of the API server.
func (f *ForbiddenError) Unwrap() error { return f.err }

// refused records that the cluster has refused a request, if the error is Forbidden.
func (a *access) refused(err error) {
	if apierrors.IsForbidden(err) {
		a.denied.Store(true)
	}
}

// refusal returns the error of a session that could not be opened. If that is Forbidden, it
// reviews all permissions and returns a *ForbiddenError that lists the missing ones.
func (s *session) refusal(ctx context.Context, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	select {
	case s.last = <-s.Agent.works: // the works determine the needed permissions
	default:
	}
	gvks := map[schema.GroupVersionKind]bool{}
	for _, w := range s.last {
		for _, m := range w.Manifests {
			gvks[m.Object.Object.GroupVersionKind()] = true
		}
	}
	s.kinds.Resolve(ctx, gvks) // nolint:errcheck // kinds that cannot be resolved are left out
	s.access.denied.Store(true)
	s.review(ctx)
	if missing := s.access.forbidden(); len(missing) > 0 {
		return &ForbiddenError{err, missing}
	}
	return err
}

// review reviews all permissions that the work needs and reports the missing ones. It does
// nothing unless the cluster has refused a request, and does not repeat a recent review.
func (s *session) review(ctx context.Context) {
	if !s.access.denied.Load() || ctx.Err() != nil || s.foreign() || s.observingOnly {
		return
	}
	early, key := time.Now().Before(s.access.next), s.reviewKey()
	if early && key == s.access.reviewed {
		return
	}
	s.access.reviewed = key
	needs, _ := s.needs()
	if early && slices.Equal(needs, s.access.asked) {
		return
	}
	s.access.denied.Store(false)
	s.access.asked = needs
	if s.ask(ctx, needs); s.introduced && !s.blocked {
		s.reschedule()
	}
}

// reviewMissing reviews the missing permissions again when the next review is due, except for
// those that are not needed any more. Once all are granted, failed objects are retried at once.
func (s *session) reviewMissing(ctx context.Context) {
	if len(s.access.missing) == 0 || time.Now().Before(s.access.next) {
		return
	}
	missing := s.access.missing
	if needs, complete := s.needs(); complete && s.introduced && s.last != nil {
		missing = slices.DeleteFunc(slices.Clone(missing), func(p rbac.Permission) bool { return !slices.Contains(needs, p) })
	}
	if s.ask(ctx, missing); len(s.access.missing) == 0 {
		for _, t := range s.trouble {
			t.next = time.Time{}
		}
		s.housed = false
	}
}

// ask reviews permissions and reports the missing ones.
func (s *session) ask(ctx context.Context, needs []rbac.Permission) {
	s.access.next = time.Now().Add(accessPause)
	missing, err := s.lacks(ctx, needs)
	if err != nil {
		if s.access.logged.Due(connection.WithoutPort(err)) {
			s.cfg.Log.Warn("permissions cannot be reviewed", "cluster", s.cfg.Name, "err", err)
		}
		return
	}
	s.access.missing = missing
	if len(missing) > 0 {
		s.access.next = time.Now().Add(accessRetry)
	}
	told, before := rbac.Describe(missing), s.access.forbidden()
	if slices.Equal(told, before) {
		return
	}
	s.access.told.Store(&told)
	if len(told) == 0 {
		s.cfg.Log.Info("no permissions are missing any more", "cluster", s.cfg.Name)
	} else {
		s.cfg.Log.Warn("permissions are missing", "cluster", s.cfg.Name, "permissions", strings.Join(told, "; "))
	}
	if s.introduced {
		seen := s.clusterReport()
		seen.Holds = nil
		s.cfg.Report(seen)
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
	for _, w := range s.last {
		content.Releases = content.Releases || w.Abandon
		for _, m := range w.Manifests {
			add(m.Object.Object.GroupVersionKind(), m.ID.Namespace)
		}
	}
	for _, inv := range s.inv {
		for it := range inv.items.all() {
			known := add(it.gvk(), it.Namespace)
			content.Unserved = content.Unserved || !known && strings.Contains(it.Group, ".")
		}
	}
	return content.Required(), complete
}

// lacks returns the permissions that the cluster does not grant. It reviews a permission in
// single namespaces only if it is not granted in all of them.
func (s *session) lacks(ctx context.Context, needs []rbac.Permission) ([]rbac.Permission, error) {
	var everywhere []rbac.Permission
	for _, p := range needs {
		p.Namespace = ""
		everywhere = append(everywhere, p)
	}
	slices.SortFunc(everywhere, rbac.Compare)
	lacking, err := s.reviewAll(ctx, slices.Compact(everywhere))
	if err != nil {
		return nil, err
	}
	var missing, inNamespace []rbac.Permission
	for _, p := range needs {
		general := p
		general.Namespace = ""
		switch {
		case !lacking[general]:
		case p.Namespace == "":
			missing = append(missing, p)
		default:
			inNamespace = append(inNamespace, p)
		}
	}
	lacking, err = s.reviewAll(ctx, inNamespace)
	for _, p := range inNamespace {
		if lacking[p] {
			missing = append(missing, p)
		}
	}
	return missing, err
}

// reviewAll returns the permissions that the cluster does not grant, among the first
// mostReviews.
func (s *session) reviewAll(ctx context.Context, all []rbac.Permission) (map[rbac.Permission]bool, error) {
	all = all[:min(len(all), mostReviews)]
	granted, errs := make([]bool, len(all)), make([]error, len(all))
	slots := make(chan struct{}, s.cfg.Concurrency)
	var wg sync.WaitGroup
	for i, p := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			granted[i], errs[i] = s.may(ctx, p)
		})
	}
	wg.Wait()
	lacking := map[rbac.Permission]bool{}
	for i, p := range all {
		if !granted[i] {
			lacking[p] = true
		}
	}
	return lacking, errors.Join(errs...)
}

// may asks the cluster whether it grants a permission.
func (s *session) may(ctx context.Context, p rbac.Permission) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	review := authorization.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
	}
	if p.Path != "" {
		review.Spec.NonResourceAttributes = &authorization.NonResourceAttributes{Path: p.Path, Verb: p.Verb}
	} else {
		review.Spec.ResourceAttributes = &authorization.ResourceAttributes{Verb: p.Verb, Group: p.Group, Resource: p.Resource, Namespace: p.Namespace}
	}
	body, err := json.Marshal(review)
	if err != nil {
		return false, err
	}
	raw, err := connection.Answer(s.conn.REST().Post().AbsPath(connection.AccessReviews).
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx))
	if err != nil {
		return false, fmt.Errorf("review a permission: %w", err)
	}
	var reviewed authorization.SelfSubjectAccessReview
	if json.Unmarshal(raw, &reviewed) != nil || reviewed.Kind != review.Kind {
		return false, connection.ErrNotObject
	}
	return reviewed.Status.Allowed, nil
}
