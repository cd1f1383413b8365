package apply

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A Comparison has the differences between the desired and the live object.
type Comparison struct {
	Diffs []api.Difference
	// Degraded says that the server rejected the desired object as invalid, so that the
	// comparison is a full one.
	Degraded bool
	// note says how the comparison was made if that was not the usual way; empty otherwise.
	note string
}

// Compare returns the differences between the desired and the live object, and who made each of
// them. Fields of rivals are left out. A partial comparison uses a server-side dry run; if the
// server refuses it, the comparison is made without one.
func (x *Executor) Compare(ctx context.Context, t Task, live *unstructured.Unstructured, rivals []autoscaler.Rival) (Comparison, error) {
	t = t.Beside(live)
	desired, opt := t.Manifest.Object.Content, diff.Options{Ignore: autoscaler.Paths(rivals)}
	var c Comparison
	if live != nil && x.Works.Of(t.Placement).Strategy.ComparisonOption != api.FullComparison {
		merged, err := x.Merged(ctx, t, Snapshot{live, rivals})
		switch {
		case err == nil:
			desired = merged
		case apierrors.IsInvalid(err):
			c.Degraded = true
		case RefusesDryRun(err):
			opt.Structural = true
			c.note = "; " + WithoutDryRun(t.Mask(live, err))
		default:
			return c, t.Mask(live, err)
		}
	}
	c.Diffs = diff.Exact(desired, live, opt, t.Attribute(live, diff.Compare(desired, live, opt)))
	return c, nil
}

// Merged returns the object that an apply would produce of the live object, as it was read.
func (x *Executor) Merged(ctx context.Context, t Task, read Snapshot) (*unstructured.Unstructured, error) {
	if why := x.Untried[t.GVK()]; why != "" {
		return nil, &notTriedError{why}
	}
	body, err := x.DryRunBody(t, read)
	if err != nil {
		return nil, err
	}
	return x.Conn.DryRun(ctx, t.Res, t.Manifest.ID, body)
}

// A notTriedError says why an object was compared without requesting a dry run.
type notTriedError struct{ why string }

func (e *notTriedError) Error() string { return e.why }

func isNotTried(err error) bool {
	var notTried *notTriedError
	return errors.As(err, &notTried)
}

// isUnclear reports whether nothing was sent, since fields cannot be left to others.
func isUnclear(err error) bool {
	var unclear *diff.UnclearError
	return errors.As(err, &unclear)
}

// WithoutDryRun returns a note that objects were compared without a dry run, and why.
func WithoutDryRun(err error) string {
	if isNotTried(err) || isUnclear(err) {
		return "compared without a dry run: " + err.Error()
	}
	return "compared without a dry run, which the API server refused: " + err.Error()
}

// RefusesDryRun reports whether a server refused a dry run because of what is in the object, or of a
// webhook that does not support dry runs, denies the request, or is down, or none was requested.
func RefusesDryRun(err error) bool {
	var status apierrors.APIStatus
	if isNotTried(err) || isUnclear(err) {
		return true
	}
	if !errors.As(err, &status) {
		return false
	}
	code := int(status.Status().Code)
	return slices.Contains([]int{
		http.StatusBadRequest, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity,
	}, code) || code == http.StatusInternalServerError && strings.Contains(status.Status().Message, "webhook")
}

// KnowsNoDryRun reports whether the refusal of a dry run says nothing about the object: the
// server cannot do a dry run, and might accept an apply.
func KnowsNoDryRun(err error) bool {
	return isNotTried(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsUnsupportedMediaType(err) || strings.Contains(err.Error(), "does not support dry run")
}

// IsServerError reports whether the response is a server error (5xx), which says nothing about
// the object.
func IsServerError(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}

// Attribute sets who made each difference of a live object. If the desired content has not
// changed, differences under our own field manager were also made by somebody else.
func (t *Task) Attribute(live *unstructured.Unstructured, details []api.PatchDetail) []api.Difference {
	list := diff.Differences(live, api.FieldManager, details)
	if t.Item != nil && t.Item.Hash == t.Manifest.Hash {
		list = diff.UnderOwnName(live, api.FieldManager, list)
	}
	return list
}

// additionsOf is additions for a live object that was only read.
func (x *Executor) additionsOf(t Task, live *unstructured.Unstructured) *[]api.Difference {
	if live == nil {
		return nil
	}
	return x.additions(t, live, live.GetManagedFields(), t.left())
}

// additions returns what others have added to an object beside what the manifest sets; nil if that is not
// looked at. entries are its managedFields, and left is what Git has removed and is still there. What was
// there when gitfleet first applied the object is no addition. Of what was added before the last
// apply, only what is known or was made after the apply before counts.
func (x *Executor) additions(t Task, live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry, left diff.Left) *[]api.Difference {
	if !x.AdditionsMode.Looks() || !x.Works.SeesAdditions(t.Placement) {
		return nil
	}
	found := diff.Additions(x.extended(t, live, entries, left))
	return &found
}

// extended returns an object to which others may have added something.
func (x *Executor) extended(t Task, live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry, left diff.Left) diff.Extended {
	since := diff.AppliedAt(entries, api.FieldManager)
	switch {
	case t.Item == nil || t.Item.Hash == "":
		since = since.Add(time.Second) // times are in whole seconds
	case t.Known != nil && t.Known.Applied > 0 && t.Known.Applied < since.Unix():
		since = time.Unix(t.Known.Applied, 0)
	}
	return diff.Extended{
		Manifest: t.Beside(live).Manifest.Object.Content, Live: live, Entries: entries, Manager: api.FieldManager,
		Since: since, Known: t.AddedBy, Left: left,
	}
}

// IgnoredIn returns the differences in fields that an object leaves to others.
func IgnoredIn(t Task, live *unstructured.Unstructured) []api.Difference {
	left := diff.Ignored(t.Manifest.Object.Content, live)
	if t.inGit != nil {
		left = append(left, diff.Compare(t.inGit, t.Manifest.Object.Content, diff.Options{Structural: true})...)
	}
	return diff.Differences(live, api.FieldManager, left)
}

// before returns what others have changed on an object that is about to be applied again, which
// cannot be determined afterwards. It sends no request, and may miss changes.
func (x *Executor) driftBefore(t Task, live *unstructured.Unstructured, rivals []autoscaler.Rival) protocol.Drift {
	if live == nil {
		return protocol.Drift{Deleted: true}
	}
	d := protocol.Drift{Generation: live.GetGeneration()}
	applied := t.Applied(x.Fleet)
	applied.Ignore = autoscaler.Paths(rivals)
	opt := diff.Options{Structural: true, Ignore: applied.Ignore}
	d.Paths = diff.Exact(applied.Manifest, live, opt, t.Attribute(live, drift.Of(applied, drift.Read(live)).Fields))
	if d.By = diff.Actors(d.Paths); len(d.Paths) == 0 {
		d.By = diff.Since(live, api.FieldManager)
	}
	return d
}

// A ValueComparison is the result of comparing the values of an object; the zero value is one of values that could not be
// compared.
type ValueComparison struct {
	drift.Finding
	// Ignored are the differences in fields that the object leaves to others.
	Ignored []api.Difference
	// Additions are as in an outcome.
	Additions *[]api.Difference
}

// CompareValues compares the values of a live object with those that were applied. A difference
// that a structural comparison finds is confirmed by a server-side dry run, which includes
// admission webhooks.
func (x *Executor) CompareValues(ctx context.Context, t Task, live *unstructured.Unstructured) ValueComparison {
	t = t.Beside(live)
	c := ValueComparison{Additions: x.additionsOf(t, live)}
	if LeavesFields(t.Manifest) {
		c.Ignored = IgnoredIn(t, live)
	}
	applied, actual := t.Applied(x.Fleet), drift.Read(live)
	if c.Finding = drift.Of(applied, actual); c.Answer != drift.Unknown {
		return c
	}
	merged, err := x.Merged(ctx, t, Snapshot{Live: live})
	switch {
	case RefusesDryRun(err):
		actual.Refused = true
	case err != nil:
		return ValueComparison{}
	default:
		again, err := x.Conn.Read(ctx, t.Res, t.Manifest.ID)
		if err != nil || again == nil || again.GetResourceVersion() != live.GetResourceVersion() {
			return ValueComparison{} // the object is changing at the moment
		}
		actual.DryRun = merged
	}
	c.Finding = drift.Of(applied, actual)
	return c
}
