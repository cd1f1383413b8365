package member

import (
	"context"
	"errors"
	"fmt"
	"iter"
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
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	removing "github.com/gitfleet/gitfleet/reconciler/member/removal"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A comparison has the differences between the desired and the live object.
type comparison struct {
	diffs []api.Difference
	// degraded says that the server rejected the desired object as invalid, so that the
	// comparison is a full one.
	degraded bool
	// note says how the comparison was made if that was not the usual way; empty otherwise.
	note string
}

// compare returns the differences between the desired and the live object, and who made each of
// them. Fields of rivals are left out. A partial comparison uses a server-side dry run; if the
// server refuses it, the comparison is made without one.
func (x *executor) compare(ctx context.Context, t task, live *unstructured.Unstructured, rivals []autoscaler.Rival) (comparison, error) {
	t = t.beside(live)
	desired, opt := t.Manifest.Object.Content, diff.Options{Ignore: autoscaler.Paths(rivals)}
	var c comparison
	if live != nil && x.works.Of(t.Placement).Strategy.ComparisonOption != api.FullComparison {
		merged, err := x.merged(ctx, t, snapshot{live, rivals})
		switch {
		case err == nil:
			desired = merged
		case apierrors.IsInvalid(err):
			c.degraded = true
		case refusesDryRun(err):
			opt.Structural = true
			c.note = "; " + withoutDryRun(t.mask(live, err))
		default:
			return c, t.mask(live, err)
		}
	}
	c.diffs = diff.Exact(desired, live, opt, t.attribute(live, diff.Compare(desired, live, opt)))
	return c, nil
}

// additionsOf is additions for a live object that was only read.
func (x *executor) additionsOf(t task, live *unstructured.Unstructured) *[]api.Difference {
	if live == nil {
		return nil
	}
	return x.additions(t, live, live.GetManagedFields(), t.left())
}

// left returns the fields that Git has removed and that were still there when the object was last applied.
func (t *task) left() diff.Left {
	if t.item == nil {
		return ""
	}
	return t.item.Left
}

// additions returns what others have added to an object beside what the manifest sets; nil if that is not
// looked at. entries are its managedFields, and left is what Git has removed and is still there. What was
// there when gitfleet first applied the object is no addition. Of what was added before the last
// apply, only what is known or was made after the apply before counts.
func (x *executor) additions(t task, live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry, left diff.Left) *[]api.Difference {
	if !x.additionsMode.Looks() || !x.works.SeesAdditions(t.Placement) {
		return nil
	}
	found := diff.Additions(x.extended(t, live, entries, left))
	return &found
}

// extended returns an object to which others may have added something.
func (x *executor) extended(t task, live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry, left diff.Left) diff.Extended {
	since := diff.AppliedAt(entries, api.FieldManager)
	switch {
	case t.item == nil || t.item.Hash == "":
		since = since.Add(time.Second) // times are in whole seconds
	case t.known != nil && t.known.Applied > 0 && t.known.Applied < since.Unix():
		since = time.Unix(t.known.Applied, 0)
	}
	return diff.Extended{
		Manifest: t.beside(live).Manifest.Object.Content, Live: live, Entries: entries, Manager: api.FieldManager,
		Since: since, Known: t.addedBy, Left: left,
	}
}

// attribute sets who made each difference of a live object. If the desired content has not
// changed, differences under our own field manager were also made by somebody else.
func (t *task) attribute(live *unstructured.Unstructured, details []api.PatchDetail) []api.Difference {
	list := diff.Differences(live, api.FieldManager, details)
	if t.item != nil && t.item.Hash == t.Manifest.Hash {
		list = diff.UnderOwnName(live, api.FieldManager, list)
	}
	return list
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

// withoutDryRun returns a note that objects were compared without a dry run, and why.
func withoutDryRun(err error) string {
	if isNotTried(err) || isUnclear(err) {
		return "compared without a dry run: " + err.Error()
	}
	return "compared without a dry run, which the API server refused: " + err.Error()
}

// merged returns the object that an apply would produce of the live object, as it was read.
func (x *executor) merged(ctx context.Context, t task, saw snapshot) (*unstructured.Unstructured, error) {
	if why := x.untried[t.GVK()]; why != "" {
		return nil, &notTriedError{why}
	}
	body, err := x.dryRunBody(t, saw)
	if err != nil {
		return nil, err
	}
	return x.conn.DryRun(ctx, t.res, t.Manifest.ID, body)
}

// refusesDryRun reports whether a server refused a dry run because of a webhook that does not
// support dry runs, denies the request, or is down, or none was requested.
func refusesDryRun(err error) bool {
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

// knowsNoDryRun reports whether the refusal of a dry run says nothing about the object: the
// server cannot do a dry run, and might accept an apply.
func knowsNoDryRun(err error) bool {
	return isNotTried(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsUnsupportedMediaType(err) || strings.Contains(err.Error(), "does not support dry run")
}

// isServerError reports whether the response is a server error (5xx), which says nothing about
// the object.
func isServerError(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}

// compareAfter finds differences that the apply did not remove. They are drift of an object
// that is still applied.
func (x *executor) compareAfter(ctx context.Context, o *outcome) {
	live, err := x.conn.Read(ctx, o.res, o.Manifest.ID)
	if err == nil && live == nil {
		err = errors.New("it is gone")
	}
	var c comparison
	if err == nil {
		c, err = x.compare(ctx, o.task, live, o.rivals)
	}
	if err != nil {
		o.cond = diff.AppliedUnverified()
	}
	o.diffs = c.diffs
}

// dryRunBody returns the body of the request for a dry run. It needs no resourceVersion, since
// nothing is stored.
func (x *executor) dryRunBody(t task, saw snapshot) ([]byte, error) {
	o, err := x.toSend(t, saw)
	if err != nil {
		return nil, err
	}
	if o.GetResourceVersion() != "" {
		o.SetResourceVersion("") // a copy, as it has live values
	}
	return x.encoder.encodeAs(o, t.Manifest, t.Placement, "")
}

// creationBody returns the body of the request for a dry run that creates the object under another
// name, while the live one is still there.
func (x *executor) creationBody(t task, saw snapshot, live *unstructured.Unstructured) ([]byte, error) {
	body, err := x.dryRunBody(t, saw)
	if err != nil || t.Manifest.ID.GroupKind() != (api.GroupKind{Kind: "Service"}) {
		return body, err
	}
	return withoutAllocated(body, live)
}

// before returns what others have changed on an object that is about to be applied again, which
// cannot be determined afterwards. It sends no request, and may miss changes.
func (x *executor) before(t task, live *unstructured.Unstructured, rivals []autoscaler.Rival) protocol.Drift {
	if live == nil {
		return protocol.Drift{Deleted: true}
	}
	d := protocol.Drift{Generation: live.GetGeneration()}
	applied := t.applied(x.fleet)
	applied.Ignore = autoscaler.Paths(rivals)
	opt := diff.Options{Structural: true, Ignore: applied.Ignore}
	d.Paths = diff.Exact(applied.Manifest, live, opt, t.attribute(live, drift.Of(applied, drift.Read(live)).Fields))
	if d.By = diff.Actors(d.Paths); len(d.Paths) == 0 {
		d.By = diff.Since(live, api.FieldManager)
	}
	return d
}

// differences are details without an actor.
func differences(details []api.PatchDetail) []api.Difference {
	return diff.Differences(nil, api.FieldManager, details)
}

// request describes the apply of a task to a live object.
func (x *executor) request(t task, saw snapshot) diff.Request {
	ignored, _ := diff.IgnoredFields(t.Manifest.Object.Content) // body reports malformed ones
	var before *unstructured.Unstructured
	if t.lastApplied != nil {
		before = t.lastApplied.Object.Content
	} else if t.item != nil && t.item.Hash != t.Manifest.Hash && saw.live != nil {
		before = diff.Recorded(saw.live, t.changed)
	}
	return diff.Request{
		Before: before, Desired: x.encoder.object(diff.Normalize(t.Manifest.Object.Content), t.Manifest, t.Placement, ""), Live: saw.live, Manager: api.FieldManager,
		Ignored: leftFields(t, saw, ignored), Force: diff.Force(x.works.Of(t.Placement).Strategy),
		KeepShared: t.rule.Mode != "" && t.rule.Mode != api.DriftRevert,
	}
}

func (x *executor) target(t task) removing.Target {
	return removing.Target{Conn: x.conn, Resource: t.res, ID: t.Manifest.ID}
}

// removal returns what has to go from the live object with an apply, and would not by itself. What
// others own too is only reported if the drift of the object is not reverted.
func (x *executor) removal(t task, saw snapshot) diff.Removal {
	if saw.live == nil || t.item == nil {
		return diff.Removal{}
	}
	return diff.Removed(x.request(t, saw), diff.LastApply{
		Drifted:    t.item.Hash != "" && drift.Of(t.applied(x.fleet), drift.Marked(saw.live)).Answer == drift.Drifted,
		Superseded: t.item.Hash != t.Manifest.Hash, Managed: t.item.Managed, Left: t.item.Left,
	})
}

// contradicting returns what contradicts the desired object on the member, after the server has refused it.
func (x *executor) contradicting(ctx context.Context, t task, saw snapshot, refusal error) diff.Removal {
	body, err := x.creationBody(t, saw, saw.live)
	if err != nil {
		return diff.Removal{}
	}
	return x.target(t).Contradicting(ctx, x.request(t, saw), body, refusal)
}

// applyWithout applies an object that the server has refused, after it has taken ownership of what contradicts
// it. If there is nothing, it returns the refusal. If the server refuses the object again, the former owners of that get it
// back, so that a later apply does not remove it.
func (x *executor) applyWithout(ctx context.Context, t task, commit string, saw *snapshot, removal diff.Removal, refusal error) (*connection.Applied, diff.Removal, error) {
	live, err := x.conn.Read(ctx, t.res, t.Manifest.ID)
	if err != nil || live == nil {
		return nil, removal, refusal
	}
	var before *unstructured.Unstructured
	more, live, err := x.target(t).TakeOwnership(ctx, live, func(live *unstructured.Unstructured) diff.Removal {
		before = live
		return x.contradicting(ctx, t, snapshot{live: live, rivals: saw.rivals}, refusal)
	})
	switch {
	case err != nil:
		return nil, removal, err
	case more.Empty():
		return nil, removal, refusal
	}
	saw.live = live
	stored, _, err := x.send(ctx, t, commit, saw)
	if removing.Refused(err) {
		x.target(t).GiveBack(ctx, live, before.GetManagedFields())
	}
	return stored, removal.Union(more), err
}

// applyRest applies an object once more, after a commit has changed it, if the answer still has something
// that the commit has removed. Ownership of that is taken first.
func (x *executor) applyRest(ctx context.Context, t task, commit string, saw snapshot, stored *connection.Applied) (*connection.Applied, error) {
	rest, live, err := x.target(t).TakeOwnership(ctx, stored.Whole(), func(live *unstructured.Unstructured) diff.Removal {
		return diff.RemovedFrom(x.request(t, snapshot{live: live, rivals: saw.rivals}), nil)
	})
	if err != nil || rest.Empty() {
		return stored, err
	}
	saw.live = live
	stored, _, err = x.send(ctx, t, commit, &saw)
	return stored, err
}

// recordLeft sets the condition of an applied object, and records which of the fields that should
// have gone are still there.
func (x *executor) recordLeft(o *outcome, fields diff.Left, live *unstructured.Unstructured) {
	o.cond, o.left = diff.Applied(), new(diff.Left)
	if fields == "" {
		return
	}
	if *o.left = fields.In(live, x.request(o.task, snapshot{live: live}).Desired); *o.left != "" {
		o.diffs = append(o.diffs, o.left.Differences(live, api.FieldManager)...)
		o.cond.Cause = "applied, but " + stillThere(o.diffs)
	}
}

// stillThere says that fields are there which Git has removed, and who owns them.
func stillThere(fields []api.Difference) string {
	return "what Git has removed is still there: " + drift.Paths(fields) + ", owned by " + drift.By(diff.Actors(fields))
}

// withoutAllocated returns the body of a Service without the cluster IPs and node ports of the live
// Service: they stay allocated until the live Service is deleted.
func withoutAllocated(body []byte, live *unstructured.Unstructured) ([]byte, error) {
	service := &unstructured.Unstructured{}
	if err := service.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for fields, name := range allocations(live) {
		taken[fmt.Sprint(fields[name])] = true
	}
	delete(taken, "None") // a headless Service has no address
	for fields, name := range allocations(service) {
		if taken[fmt.Sprint(fields[name])] {
			delete(fields, name)
		}
	}
	return service.MarshalJSON()
}

// allocations yields the fields of a Service that the server allocates: the map that has the
// field, and its name.
func allocations(service *unstructured.Unstructured) iter.Seq2[map[string]any, string] {
	return func(yield func(map[string]any, string) bool) {
		spec, _ := service.Object["spec"].(map[string]any)
		for _, name := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
			if !yield(spec, name) {
				return
			}
		}
		ports, _ := spec["ports"].([]any)
		for _, p := range ports {
			if port, ok := p.(map[string]any); ok && !yield(port, "nodePort") {
				return
			}
		}
	}
}
