package member

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/decide"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/hooks"
	"github.com/gitfleet/gitfleet/reconciler/member/immutable"
	removing "github.com/gitfleet/gitfleet/reconciler/member/removal"
)

// An Effect says what would happen to an object.
type Effect string

// The effects.
const (
	// Adds: it does not exist, and would be created.
	Adds Effect = "add"
	// Changes: fields of it would be set or removed, or it would be taken over.
	Changes Effect = "change"
	// Recreates: it would be deleted and created again, since an immutable field changes.
	Recreates Effect = "recreate"
	// Deletes: it would be removed, or released and left on the cluster.
	Deletes  Effect = "delete"
	Releases Effect = "release"
	// Differs: it differs and would not be changed, because the strategy only reports
	// differences or gitfleet may not write it; Message has the reason.
	Differs Effect = "differ"
	// Fails: the API server would refuse it; Message has the reason.
	Fails Effect = "fail"
	// Unknown: the effect cannot be determined; Message has the reason. Only Try returns it.
	Unknown Effect = "unknown"
	// Alters: an apply would not change it, but the API server or an admission webhook stores
	// other values than those that are applied.
	Alters Effect = "alter"
)

// A Change is the effect of a sync on one object.
type Change struct {
	ID        api.ID
	Placement api.PlacementKey
	// Manifest is the desired object; nil for one that would be removed.
	Manifest *work.Manifest
	Effect   Effect
	// TakesOver says that gitfleet does not own the object yet.
	TakesOver bool
	// Refused says that gitfleet would not take the object over; Message has the reason.
	Refused bool
	// Message has additional information, without secrets.
	Message string
	// Diffs are the differences between the object that would result and the present one.
	// Values of Secrets are masked.
	Diffs []api.Difference
	// serverError says that the reason is a server error (5xx), such as a webhook that is down.
	serverError bool
}

func newChange(t apply.Task) *Change {
	return &Change{ID: t.Manifest.ID, Placement: t.Placement, Manifest: t.Manifest}
}

// fails makes a change one that the API server refuses.
func (c *Change) fails(t apply.Task, live *unstructured.Unstructured, err error) *Change {
	c.Effect, c.Message, c.serverError = Fails, t.Mask(live, err).Error(), apply.IsServerError(err)
	return c
}

// A Preview reads the state of a cluster, and determines what an agent would do there. Nothing
// can be written through its connection.
type Preview struct{ s *session }

func (p *Preview) task(key api.PlacementKey, m *work.Manifest) apply.Task {
	return p.s.applier.withInputs(p.s.applier.newTask(desired.Object{Placement: key, Manifest: m}))
}

func (p *Preview) executor() *apply.Executor { return p.s.applier.executor() }

// changeOf returns the change of one object; nil if there is none.
func (p *Preview) changeOf(ctx context.Context, t apply.Task) (*Change, error) {
	c, gvk := newChange(t), t.GVK()
	if t.Res == (connection.Resource{}) {
		if c.Effect = Adds; definitionOf(gvk, p.s.Wanted()) == nil {
			c.Effect, c.Message = Fails, p.s.kinds.Why(gvk).Error()
		}
		return c, nil
	}
	live, known, decided, err := p.read(ctx, t)
	if decided || err != nil {
		return known, err
	}
	if live == nil {
		if c.Effect = Adds; p.s.Works().OnlyCompares(t.Placement) {
			c.Effect, c.Message = Differs, "it is only reported"
		}
		return c, nil
	}
	return p.compare(ctx, t, c, live)
}

// read reads the object of a task whose kind is served, as an agent would that knows nothing of it. decided says that its change is
// known already: the object would not be applied, whatever is there, or nothing would be done about it.
func (p *Preview) read(ctx context.Context, t apply.Task) (live *unstructured.Unstructured, known *Change, decided bool, err error) {
	f := decide.Facts{Exists: true}
	if f.Hook, _ = p.s.owned.MayApply(t.Object); f.Hook == hooks.Waits {
		f.Hook = hooks.Ready // it is applied in its turn
	}
	if t.Res.Namespaced && t.Manifest.ID.Namespace == "" {
		f.NoNamespace = t.Manifest.ID.Kind
	}
	if c := t.Manifest.Encrypted; c != nil {
		f.Encrypted = c.Message()
	}
	switch step, refusal := decide.Apply(f); step {
	case decide.Refuse:
		known = newChange(t)
		known.Effect, known.Message = Fails, refusal.Error()
		return nil, known, true, nil
	case decide.Finish:
		return nil, nil, true, nil
	}
	if live, err = p.s.conn.Read(ctx, t.Res, t.Manifest.ID); err != nil {
		return nil, nil, false, err
	}
	f.Exists, f.HasRun = live != nil, live == nil && p.s.progress.HasRun(t.Manifest, t.Item)
	step, _ := decide.Apply(f)
	return live, nil, step == decide.Finish, nil
}

// compare uses the same decision table as an agent.
func (p *Preview) compare(ctx context.Context, t apply.Task, c *Change, live *unstructured.Unstructured) (*Change, error) {
	t = t.Beside(live)
	rivals := autoscaler.Rivals(ctx, p.s.conn, t.Manifest.Object.Content, live, t.Scaler)
	facts := p.executor().Facts(t, live)
	var found apply.Comparison
	for {
		switch do, why := diff.Decide(facts); do {
		case diff.NeedRead:
			var err error
			if found, err = p.executor().Compare(ctx, t, live, rivals); err != nil {
				return nil, err
			}
			facts.Compared, facts.Diffs = true, len(found.Diffs)
		case diff.Nothing:
			if found, err := p.values(ctx, t, c, live, rivals); err != nil || found != nil {
				return found, err
			}
			return p.left(t, c, live), nil
		case diff.Report, diff.Refuse:
			if do == diff.Report && len(found.Diffs) == 0 {
				return nil, nil
			}
			c.Effect, c.Diffs, c.Message = Differs, found.Diffs, "it is only reported"
			if do == diff.Refuse {
				c.Refused = diff.OwnerOf(live, p.s.cfg.Fleet, t.Placement, p.s.Works().MarkerStale) != diff.Ours
				c.Message = diff.Refused(why, diff.Owners(live, p.s.cfg.Fleet, t.Placement), found.Degraded).Message()
			}
			return c, nil
		default:
			return p.applied(ctx, t, c, live, rivals)
		}
	}
}

// values returns the change of an object whose metadata shows no change or drift, since its
// values may still differ.
func (p *Preview) values(ctx context.Context, t apply.Task, c *Change, live *unstructured.Unstructured, rivals []autoscaler.Rival) (*Change, error) {
	if diff.CompareAfter(p.s.Works().Of(t.Placement).Strategy) || len(rivals) > 0 {
		return nil, nil
	}
	switch found := p.executor().CompareValues(ctx, t, live); {
	case found.Answer == drift.Unknown:
		return nil, fmt.Errorf("its values cannot be compared, as the API server does not answer to a dry run or it is just being changed; try again")
	case found.Answer == drift.Drifted && p.s.Works().Protects(t.Placement):
		c.Effect, c.Message = Differs, diff.Refused(diff.Drifts, "", false).Message()
	case found.Answer == drift.Drifted:
		return p.applied(ctx, t, c, live, rivals)
	case len(found.Altered) > 0:
		c.Effect, c.Message, c.Diffs = Alters, alteredMessage, diff.Differences(nil, api.FieldManager, found.Altered)
	default:
		return nil, nil
	}
	return c, nil
}

// left returns the change of an object that still has fields that Git has removed; nil if it has none.
func (p *Preview) left(t apply.Task, c *Change, live *unstructured.Unstructured) *Change {
	var o apply.Outcome
	if o.Task = t; t.Item == nil || t.Item.Left == "" {
		return nil
	}
	if p.executor().RecordLeft(&o, t.Item.Left, live); *o.Left == "" {
		return nil
	}
	c.Effect, c.Message, c.Diffs = Differs, o.Cond.Message(), o.Diffs
	return c
}

// applied returns the change that applying an object would make; nil if there is none.
func (p *Preview) applied(ctx context.Context, t apply.Task, c *Change, live *unstructured.Unstructured, rivals []autoscaler.Rival) (*Change, error) {
	c.Effect, c.TakesOver = Changes, diff.OwnerOf(live, p.s.cfg.Fleet, t.Placement, p.s.Works().MarkerStale) != diff.Ours
	opt := diff.Options{Ignore: autoscaler.Paths(rivals)}
	read := apply.Snapshot{Live: live, Rivals: rivals}
	removal := p.executor().Removal(t, read)
	desired, err := p.executor().Merged(ctx, t, read)
	if removing.Refused(err) && !immutable.ByAdmission(err) {
		if more := p.executor().Contradicting(ctx, t, read, err); !more.Empty() {
			desired, err, removal = t.Manifest.Object.Content, nil, removal.Union(more)
			opt.Structural = true
		}
	}
	isImmutable, unread := p.executor().IsImmutable(ctx, t, err)
	recreates := isImmutable && apply.AsksForRecreation(t.Manifest) && p.s.applier.notRecreated(t, live) == ""
	if recreates {
		if refusal := p.s.applier.tryRecreation(ctx, t, live); refusal != nil && connection.Answered(refusal) {
			return c.fails(t, live, refusal), nil
		} else if refusal != nil {
			recreates, err = false, refusal
		}
	}
	switch {
	case recreates:
		opt.Structural = true
		c.Effect, c.Diffs = Recreates, t.Attribute(live, diff.Compare(t.Manifest.Object.Content, live, opt))
		return c, nil
	case apply.RefusesDryRun(err) && !apply.KnowsNoDryRun(err):
		c.fails(t, live, err)
		c.Message = apply.ExplainRecreation(c.Message, t.Manifest, c.TakesOver, err, isImmutable, unread)
		return c, nil
	case apply.RefusesDryRun(err):
		desired, opt.Structural = t.Manifest.Object.Content, true
		c.Message = apply.WithoutDryRun(t.Mask(live, err))
	case err != nil:
		return nil, t.Mask(live, err)
	}
	c.Diffs = t.Attribute(live, diff.Compare(removal.Without(desired), live, opt))
	if opt.Structural && !removal.Empty() { // fields that the manifest does not have are no difference then
		c.Diffs = append(c.Diffs, t.Attribute(live, diff.Compare(removal.Without(live), live, diff.Options{}))...)
	}
	if len(c.Diffs) == 0 && !c.TakesOver && c.Message == "" {
		return nil, nil
	}
	return c, nil
}

// try determines the change of one object. If the object does not exist, the server creates it
// in a dry run.
func (p *Preview) try(ctx context.Context, t apply.Task) (*Change, error) {
	c, err := p.changeOf(ctx, t)
	if err == nil && c != nil && c.Effect == Adds && t.Res != (connection.Resource{}) {
		_, err = p.executor().Merged(ctx, t, apply.Snapshot{})
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		c = p.untried(t, err)
	}
	if c != nil {
		p.markUnknown(t, c)
	}
	return c, nil
}

// markUnknown makes a change Unknown if the response of the server says nothing about the object: the
// server does not have what it needs to decide, or not the definition of the kind as it will
// be.
func (p *Preview) markUnknown(t apply.Task, c *Change) {
	gvk := t.GVK()
	unserved := t.Res == (connection.Resource{})
	by := definitionOf(gvk, p.s.Wanted())
	switch {
	case by != nil && (unserved || c.Effect == Fails && !p.applies(*by)):
		c.Effect, c.Message = Unknown, "the cluster does not have its CustomResourceDefinition "+by.Manifest.ID.Name+" as the plan has it"
	case unserved && p.s.kinds.Failure(gvk.GroupVersion()) != nil, c.Effect == Fails && c.serverError:
		c.Effect = Unknown
	}
}

// applies reports whether an object was applied with its desired content.
func (p *Preview) applies(w desired.Object) bool {
	t := p.task(w.Placement, w.Manifest)
	return t.Item != nil && t.Item.Hash == t.Manifest.Hash
}

// untried returns the change of an object whose dry run failed with an error.
func (p *Preview) untried(t apply.Task, err error) *Change {
	c := newChange(t)
	c.Effect, c.Message = Unknown, t.Mask(nil, err).Error()
	namespace, comes := p.s.Wanted().Of(api.ID{Kind: "Namespace", Name: t.Manifest.ID.Namespace})
	switch {
	case connection.IsUnreachable(err):
		c.Message = "the API server does not answer"
	case apierrors.IsNotFound(err) && comes:
		c.Effect, c.Message = Adds, namespace.Manifest.ID.String()+" is not there yet"
	case apierrors.IsNotFound(err) || apply.RefusesDryRun(err) && !apply.KnowsNoDryRun(err) && !apply.IsServerError(err):
		c.Effect = Fails
	}
	return c
}
