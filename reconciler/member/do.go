package member

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
)

var (
	errSilent = errors.New("the API server has stopped answering; trying again once it does")
)

// do sees to one object. It may run beside others, and only reads what the
// session knows.
func (s *session) do(ctx context.Context, t task) outcome {
	start := time.Now()
	o := s.attempt(ctx, t)
	result := "ok"
	if o.err != nil {
		result = "error"
	}
	if o.written != nil || o.err != nil {
		s.cfg.Metrics.Applies.WithLabelValues(s.cfg.Name, string(o.do), result).Inc()
		s.cfg.Metrics.Seconds.WithLabelValues(s.cfg.Name).Observe(time.Since(start).Seconds())
	}
	if t.drift && o.written != nil {
		s.cfg.Metrics.Repairs.WithLabelValues(s.cfg.Name).Inc()
		s.cfg.Log.Info("put back what somebody changed", "cluster", s.cfg.Name,
			"placement", t.placement.String(), "object", t.manifest.ID.String())
	}
	return o
}

func (s *session) attempt(ctx context.Context, t task) outcome {
	if t.spared != "" {
		return s.lookOn(ctx, t)
	}
	if o, ok := s.shortcut(ctx, t); ok {
		return o
	}
	return s.careful(ctx, t)
}

// shortcut answers the cases in which nothing needs to be read first: what is
// ours is applied, and so is what may be taken over whatever it is.
func (s *session) shortcut(ctx context.Context, t task) (outcome, bool) {
	strategy := s.works[t.placement].Strategy
	l := s.live.of(t.manifest.ID)
	switch {
	case strategy.Type == api.ReportDiff || diff.CompareAfter(strategy) || leavesFields(t.manifest):
		return outcome{}, false
	case l != nil && l.fleet != s.cfg.Fleet && l.fleet != "":
		return outcome{}, false
	case t.item.Hash == "" && strategy.WhenToTakeOver != api.TakeOverAlways:
		return outcome{}, false
	case strategy.WhenToApply == api.ApplyIfNotDrifted && t.item.Hash == t.manifest.Hash && l != nil:
		return outcome{}, false
	}
	do := diff.Apply
	if l == nil {
		do = diff.Create
	}
	return s.write(ctx, t, do, nil), true
}

// leavesFields reports whether an object has fields that others may change.
func leavesFields(m *work.Manifest) bool {
	return m.Object.Object.GetAnnotations()[api.IgnoreFieldsAnnotation] != ""
}

// careful reads the live object, compares it where the strategy asks for it,
// and does what the table says.
func (s *session) careful(ctx context.Context, t task) outcome {
	o := outcome{task: t, do: diff.NeedRead}
	found, err := s.read(ctx, t.res, t.manifest.ID)
	if err != nil {
		return s.unread(o, diff.ReadFailed(err), err)
	}
	c := s.facts(t, found)
	var degraded bool
	for {
		do, why := diff.Decide(c)
		if do == diff.NeedRead {
			o.diffs, degraded, err = s.compare(ctx, t, found)
			if err != nil {
				return s.unread(o, s.compareFailed(t, c, err), err)
			}
			c.Compared, c.Diffs = true, len(o.diffs)
			continue
		}
		return s.carryOut(ctx, t, found, do, why, o.diffs, degraded)
	}
}

// unread is the outcome when the live object could not be looked at.
func (s *session) unread(o outcome, cond metav1.Condition, err error) outcome {
	o.cond, o.err = cond, err
	if s.works[o.placement].Strategy.Type == api.ReportDiff {
		o.cond = diff.ReportFailed(err)
	}
	return o
}

func (s *session) compareFailed(t task, c diff.Case, err error) metav1.Condition {
	if c.Owner == diff.Ours {
		return diff.DriftCompareFailed(err)
	}
	return diff.TakeOverCompareFailed(err)
}

// facts are what Decide wants to know.
func (s *session) facts(t task, found *unstructured.Unstructured) diff.Case {
	c := diff.Case{Live: diff.Absent, Strategy: s.works[t.placement].Strategy}
	if found == nil {
		return c
	}
	c.Live = diff.Present
	c.Owner = diff.OwnerOf(found, s.cfg.Fleet, t.placement, s.gone)
	c.CoOwned = len(found.GetOwnerReferences()) > 0
	c.Changed = t.item == nil || t.item.Hash != t.manifest.Hash
	c.Drifted = t.item != nil && t.item.Hash != "" &&
		diff.ApplyHash(found.GetManagedFields(), api.FieldManager) != t.item.Managed
	return c
}

// gone reports whether a placement named in a marker does not exist here any
// more, so that the marker is stale.
func (s *session) gone(placement string) bool {
	for p := range s.works {
		if p.String() == placement {
			return false
		}
	}
	return true
}

// carryOut does what was decided.
func (s *session) carryOut(ctx context.Context, t task, found *unstructured.Unstructured, do diff.Operation, why diff.Refusal, diffs []api.Difference, degraded bool) outcome {
	o := outcome{task: t, do: do, diffs: diffs}
	if found != nil {
		o.gen = found.GetGeneration()
	}
	switch do {
	case diff.Create, diff.Apply, diff.TakeOver:
		o = s.write(ctx, t, do, found)
		if o.written != nil && diff.CompareAfter(s.works[t.placement].Strategy) {
			s.compareAfter(ctx, &o)
		}
	case diff.Nothing:
		o.cond = diff.Applied()
	case diff.Report:
		o.cond = diff.Reported(len(diffs), degraded)
	case diff.Refuse:
		o.cond = diff.Refused(why, diff.Owners(found, s.cfg.Fleet, t.placement), degraded)
	}
	return o
}

// write applies an object. found is the live one, as far as it was read.
func (s *session) write(ctx context.Context, t task, do diff.Operation, found *unstructured.Unstructured) outcome {
	o := outcome{task: t, do: do}
	commit := s.works[t.placement].Revision.Commit
	if t.item.Hash == t.manifest.Hash {
		commit = t.item.Commit
	}
	body, err := s.body(t, commit, found)
	if err == nil {
		o.written, err = s.patch(ctx, t.res, t.manifest.ID, body, diff.Force(s.works[t.placement].Strategy))
	}
	if err == nil && t.item.Hash == "" {
		o.written, err = s.adopt(ctx, t, body, o.written)
	}
	if err != nil {
		o.err = err
		o.written = nil
		o.cond = diff.ApplyFailed(do, scrub(t.manifest, err))
		return o
	}
	o.gen = o.written.Generation
	o.cond = diff.Applied()
	return o
}

// compareAfter looks for differences that applying did not mend. They are
// drifts of an object that is applied all the same.
func (s *session) compareAfter(ctx context.Context, o *outcome) {
	found, err := s.read(ctx, o.res, o.manifest.ID)
	if err == nil && found == nil {
		err = errors.New("it is gone")
	}
	if err == nil {
		o.diffs, _, err = s.compare(ctx, o.task, found)
	}
	if err != nil {
		o.cond = diff.AppliedUnverified()
	}
}

// compare lists how the wanted object and the live one differ, and who made it
// so. A partial comparison asks the server what the object would be; if it
// holds the object to be invalid, the comparison is a full one, and degraded
// says so.
func (s *session) compare(ctx context.Context, t task, found *unstructured.Unstructured) (diffs []api.Difference, degraded bool, err error) {
	details, degraded, err := s.details(ctx, t, found)
	return diff.Differences(found, api.FieldManager, details), degraded, err
}

func (s *session) details(ctx context.Context, t task, found *unstructured.Unstructured) (details []api.PatchDetail, degraded bool, err error) {
	wanted := t.manifest.Object.Object
	if found == nil {
		return diff.Compare(wanted, nil, diff.Options{}), false, nil
	}
	if s.works[t.placement].Strategy.ComparisonOption == api.FullComparison {
		return diff.Compare(wanted, found, diff.Options{}), false, nil
	}
	body, err := s.cfg.Encoder.encode(t.manifest, t.placement, "")
	if err != nil {
		return nil, false, err
	}
	merged, err := s.dryRun(ctx, t.res, t.manifest.ID, body)
	if apierrors.IsInvalid(err) {
		return diff.Compare(wanted, found, diff.Options{}), true, nil
	}
	if err != nil {
		return nil, false, scrub(t.manifest, err)
	}
	return diff.Compare(merged, found, diff.Options{}), false, nil
}
