package member

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/decide"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A driftRecorder decides whether drift is reverted, held or contested, and records it.
//
// Drift whose mode is propose or report is held: the object stays as others changed it. It is
// applied again once it no longer differs, once Git has a new version of it, or once a
// DriftDecision says PutBack.
type driftRecorder struct {
	*cluster
	desired.View
	progress progress.View
	// state is what is recorded of drift, which other parts only read; see Agent.
	state *drift.State
	drift drift.View
}

// rule returns the rule that applies to the drift of an object.
func (dr *driftRecorder) rule(t apply.Task) api.DriftRule {
	return dr.rules(t, dr.cfg.DriftMode).At(time.Now())
}

// rules returns what is written about the drift of an object, with the mode of the fleet.
func (dr *driftRecorder) rules(t apply.Task, fleet api.DriftMode) api.DriftRules {
	w := dr.Works().Of(t.Placement)
	return api.DriftRules{
		Object: t.Manifest.Object.Content.GetAnnotations()[api.DriftAnnotation], Kind: dr.cfg.DriftKinds[t.Manifest.ID.GroupKind()],
		Placement: w.Drift, Cluster: w.ClusterDrift, Fleet: fleet,
	}
}

// additionsRule returns the rule by which additions to an object are offered; empty if they are only reported, as
// an annotation or the mode of a kind may ask.
func (dr *driftRecorder) additionsRule(t apply.Task) string {
	if dr.cfg.Additions != api.AdditionsPropose || dr.Works().Protects(t.Placement) || dr.rules(t, api.DriftPropose).At(time.Now()).Mode == api.DriftReport {
		return ""
	}
	return string(api.DriftPropose)
}

// holds reports whether the drift of an object is held: its mode is propose, or report and the
// object still exists, and no decision says PutBack. It is not if the object lost its label, since
// no edit of the manifest could express that, or if the strategy decides: IfNotDrifted or
// FullComparison. l is nil if the object was deleted.
func (dr *driftRecorder) holds(t apply.Task, l *observed.Object) bool {
	mode := dr.rule(t).Mode
	switch {
	case mode != api.DriftPropose && (mode != api.DriftReport || l == nil), l != nil && l.Fleet != dr.cfg.Fleet,
		dr.Works().Protects(t.Placement), diff.CompareAfter(dr.Works().Of(t.Placement).Strategy):
		return false
	}
	r, known := dr.drift.Decision(protocol.DriftKey{Placement: t.Placement, ID: t.Manifest.ID})
	return !known || !r.PutBack
}

// accepts reports whether Git may have adopted (merged) the drift of an object: its drift is held, or something that was
// added is offered, and there is a new version of it.
func (dr *driftRecorder) accepts(t apply.Task, l *observed.Object) bool {
	added := dr.drift.Addition(t.Placement, t.Manifest.ID)
	return l != nil && l.Fleet == dr.cfg.Fleet && t.Item != nil && t.Item.Hash != "" &&
		(dr.drift.Change(t.Placement, t.Manifest.ID).State == api.DriftHeld || added.State.AwaitsDecision(added.Rule))
}

// notReverted yields the objects whose drift is held, or to which others have added something. Their values have to be compared, since
// ownership does not show every change that was made before this connection.
func (dr *driftRecorder) notReverted() iter.Seq[api.ID] {
	return func(yield func(api.ID) bool) {
		for _, d := range dr.drift.Changes() {
			if d.State == api.DriftHeld && !yield(d.ID) {
				return
			}
		}
		for _, d := range dr.drift.Additions() {
			if d.State == api.DriftAdded && !yield(d.ID) {
				return
			}
		}
	}
}

// record records the observed drift of the object of a task. anew says that the object has
// drifted once more.
func (dr *driftRecorder) record(t apply.Task, state api.DriftState, now protocol.Drift, anew bool) {
	now.Message = connection.Cut(now.Message)
	dr.state.Observed(t.Placement, t.Manifest, state, now, anew)
}

// recordOutcome records the drift that the outcome of a task shows.
func (dr *driftRecorder) recordOutcome(o *apply.Outcome) {
	p, id := o.Placement, o.Manifest.ID
	was := dr.drift.Change(p, id).State
	ours := o.Item != nil && o.Item.Hash != "" && !dr.Works().OnlyCompares(p)
	contest := autoscaler.Contested(o.Rivals)
	reverted := o.Reverted()
	switch {
	case reverted:
		dr.recordRevert(o)
	case o.Drift && o.Written != nil && !o.Repairs() && !apply.LeavesFields(o.Manifest):
		dr.state.NotUndone(id)
	}
	switch {
	case o.Err != nil || !ours:
	case o.Gone:
		dr.recordHeldDeletion(o)
	case len(contest) > 0:
		o.Diffs = append(o.Diffs, contest...)
		dr.record(o.Task, api.DriftContested, protocol.Drift{
			Message: autoscaler.Message(o.Rivals), Generation: o.Gen, Paths: o.Diffs, By: diff.Actors(o.Diffs),
		}, was != api.DriftContested && !reverted)
		if was != api.DriftContested {
			dr.cfg.Log.Warn("object is contested: an autoscaler scales it, and the manifest does too; it is left to the autoscaler", "cluster", dr.cfg.Name,
				"placement", p.String(), "object", id.String(), "by", autoscaler.Message(o.Rivals))
		}
	case len(o.Diffs) > 0:
		state, rule := api.DriftStanding, ""
		if o.Step == decide.Hold {
			state, rule = api.DriftHeld, dr.rule(o.Task).String()
		}
		dr.record(o.Task, state, protocol.Drift{
			Rule: rule, Message: o.Cond.Message(), Generation: o.Gen, Paths: o.Diffs, By: diff.Actors(o.Diffs),
		}, was != state)
		if was != state {
			dr.warnLeft(o, "object differs from what was applied, and is left as it is",
				"by", drift.By(diff.Actors(o.Diffs)), "paths", drift.Paths(o.Diffs))
		}
	case o.Written != nil && o.Live != nil && apply.LeavesFields(o.Manifest):
		if left := apply.IgnoredIn(o.Task, o.Live); len(left) > 0 {
			dr.record(o.Task, api.DriftIgnored, ignoredDrift(o.Gen, left), was != api.DriftIgnored)
		} else if was == api.DriftIgnored {
			dr.state.Ended(p, dr.drift.Change(p, id))
		}
	}
	if o.Written != nil && len(contest)+len(o.Diffs) == 0 {
		dr.recordAltered(o.Task, o.Gen, o.Altered)
	}
	switch {
	case o.Removed != nil:
		dr.recordRemoved(o)
	case o.Additions != nil:
		dr.recordAdditions(o.Task, o.Gen, *o.Additions)
	}
}

// recordRevert records that drift was reverted.
func (dr *driftRecorder) recordRevert(o *apply.Outcome) {
	what, change := o.Before, "edited"
	if r, known := dr.drift.Decision(protocol.DriftKey{Placement: o.Placement, ID: o.Manifest.ID}); known {
		what.Message = r.Message
	}
	if what.Deleted {
		change = "deleted"
	} else if o.Live != nil && apply.LeavesFields(o.Manifest) { // it may have been deleted before it was sent again
		by := ""
		if len(what.By) > 0 {
			by = what.By[0].Manager
		}
		dr.countChange(o.Manifest.ID, o.Live.GetResourceVersion(), by, time.Now()) // see countUndone
	}
	// a held drift was counted when it was found
	dr.record(o.Task, api.DriftRepaired, what, dr.drift.Change(o.Placement, o.Manifest.ID).State != api.DriftHeld)
	dr.cfg.Metrics.Repairs.Inc(dr.cfg.Name, change)
	attrs := []any{"cluster", dr.cfg.Name, "placement", o.Placement.String(),
		"object", o.Manifest.ID.String(), "change", change, "by", drift.By(what.By), "paths", drift.Paths(what.Paths)}
	if what.Message != "" {
		attrs = append(attrs, "reason", what.Message)
	}
	dr.cfg.Log.Info("put back what somebody changed", attrs...)
}

// recordHeldDeletion records that an object is not created again for now.
func (dr *driftRecorder) recordHeldDeletion(o *apply.Outcome) {
	p, id := o.Placement, o.Manifest.ID
	anew := !dr.drift.IsLeftDeleted(p, id)
	dr.record(o.Task, api.DriftHeld, protocol.Drift{Rule: dr.rule(o.Task).String(), Message: o.Cond.Message(), Deleted: true}, anew)
	if anew {
		dr.warnLeft(o, "object was deleted, and is left so")
	}
}

// warnLeft counts and logs drift that was found now and is not reverted.
func (dr *driftRecorder) warnLeft(o *apply.Outcome, message string, attrs ...any) {
	dr.cfg.Metrics.Drifts.Inc(dr.cfg.Name)
	dr.cfg.Log.Warn(message, append([]any{"cluster", dr.cfg.Name, "placement", o.Placement.String(), "object", o.Manifest.ID.String()}, attrs...)...)
}

// countUndone counts that others have undone an apply. After repeated flips the object has to wait before it is applied again, and
// is contested, and why is its failure. l is nil if the object was deleted. Of an object that leaves fields to others, the ownership does not show
// whether they changed more than those: a change counts when it is reverted.
func (dr *driftRecorder) countUndone(t apply.Task, l *observed.Object) (why progress.Failure, contested bool) {
	id, now := t.Manifest.ID, time.Now()
	change, by := "uid "+string(t.Item.UID), ""
	if l != nil {
		change, by = strconv.FormatUint(l.Version, 10), l.Writer
		if t.Item.Managed == "" { // the change was found by comparing values
			by = "another client with the field manager " + api.FieldManager + " or an admission webhook"
		}
	}
	if l == nil || !apply.LeavesFields(t.Manifest) {
		dr.countChange(id, change, by, now)
	}
	f := dr.drift.Undone(id)
	if due := f.Due(); now.Before(due) {
		return dr.contest(t, l, f), true
	}
	return why, false
}

// countChange counts a change that undid an apply, unless it is the one that was counted last. change identifies it.
func (dr *driftRecorder) countChange(id api.ID, change, by string, now time.Time) {
	if dr.state.Undone(id, change, by, now) {
		dr.cfg.Metrics.Drifts.Inc(dr.cfg.Name)
	}
}

// contest records that the drift of an object is not reverted for a while, since reverting it
// again and again does not help, and returns that as its failure.
func (dr *driftRecorder) contest(t apply.Task, l *observed.Object, f diff.Flips) progress.Failure {
	id := t.Manifest.ID
	if old, failed := dr.progress.Failure(id); failed && old.Next.Equal(f.Due()) {
		return old
	}
	who, reverted := cmp.Or(f.By, "another writer"), f.Total-1
	if apply.LeavesFields(t.Manifest) {
		reverted = f.Total // the present change is not counted yet
	}
	if d := dr.drift.Change(t.Placement, id); len(d.By) > 0 && d.By[0].Manager == f.By {
		who = d.By[0].String()
	}
	dr.cfg.Log.Warn("object is contested: somebody keeps undoing what is applied; it is put back more slowly",
		"cluster", dr.cfg.Name, "placement", t.Placement.String(), "object", id.String(), "by", who, "times", f.Total)
	c := progress.Failure{
		Cond: diff.NotApplied(api.Contested, fmt.Sprintf("%s keeps undoing what the manifest sets: put back %d times so far, next at %s",
			who, reverted, f.Due().UTC().Format(time.RFC3339))),
		Since: time.Now(), Hash: t.Manifest.Hash, Next: f.Due(),
	}
	if l != nil {
		c.Generation = l.Generation
	}
	dr.record(t, api.DriftContested, protocol.Drift{Message: c.Cond.Message()}, false)
	return c
}

// ignoredMessage says why a difference is not reverted.
const ignoredMessage = "left alone, as " + api.IgnoreFieldsAnnotation + " asks or as a controller has extended them"

// ignoredDrift returns the record of differences in fields that an object leaves to others.
func ignoredDrift(generation int64, left []api.Difference) protocol.Drift {
	return protocol.Drift{Message: ignoredMessage, Generation: generation, Paths: left, By: diff.Actors(left)}
}

// endUnobserved records the end of drift that was not reverted here: it was still there when it
// was last seen, and is no longer observed.
func (dr *driftRecorder) endUnobserved(p api.PlacementKey) {
	if dr.progress.IsUntried(p) || dr.conn.CutOff() {
		return
	}
	for d := range dr.drift.ChangesOf(p) {
		w, isWanted := dr.Wanted().Of(d.ID)
		switch {
		case !isWanted || w.Placement != p || dr.progress.HasFailed(d.ID) || dr.live.Of(d.ID) == nil || dr.progress.IsSuspect(d.ID):
			continue
		case d.State == api.DriftIgnored && apply.LeavesFields(w.Manifest) || d.State == api.DriftAltered:
			continue
		case d.State.Present():
			dr.state.Ended(p, d)
		}
	}
	for d := range dr.drift.AdditionsOf(p) {
		w, isWanted := dr.Wanted().Of(d.ID)
		gone := isWanted && dr.live.Of(d.ID) == nil && dr.watch.Of(w.GVK()).Complete()
		if d.State.Present() && (gone || !dr.Works().SeesAdditions(p)) {
			dr.state.Ended(p, d)
		}
	}
}

// alteredMessage explains a difference that nobody has made since the apply.
const alteredMessage = "the API server or an admission webhook stores other values than are applied, at each apply; " +
	"put them into the manifest, or exempt the object from the webhook"

// recordAltered records the fields that the server stores differently from what is applied. If
// there are none, that drift ends. It reports whether the record has changed.
func (dr *driftRecorder) recordAltered(t apply.Task, generation int64, altered []api.PatchDetail) bool {
	p, id := t.Placement, t.Manifest.ID
	was := dr.drift.Change(p, id)
	now := protocol.Drift{Message: alteredMessage, Generation: generation, Paths: diff.Differences(nil, api.FieldManager, altered)}
	if !dr.recordWhilePresent(t, was, api.DriftAltered, now, drift.SameValues(altered, dr.drift.Altered(p, id)), false) {
		return false
	}
	if was.State != api.DriftAltered {
		dr.cfg.Log.Warn("the API server or an admission webhook changes what is applied", "cluster", dr.cfg.Name,
			"placement", p.String(), "object", id.String(), "paths", drift.Paths(now.Paths))
	}
	return true
}

// recordIgnored records the current values of fields that an object leaves to others. If there
// are none, that drift ends. It reports whether the record has changed. A record of drift in
// other fields is kept.
func (dr *driftRecorder) recordIgnored(t apply.Task, generation int64, ignored []api.Difference) bool {
	was := dr.drift.Change(t.Placement, t.Manifest.ID)
	switch was.State {
	case "", api.DriftEnded, api.DriftIgnored:
	default:
		return false
	}
	unchanged := slices.EqualFunc(drift.Shorten(ignored), was.Paths, sameDetail)
	return dr.recordWhilePresent(t, was, api.DriftIgnored, ignoredDrift(generation, ignored), unchanged, was.State != api.DriftIgnored)
}

// sameDetail reports whether two differences have the same path and values, whoever made them.
func sameDetail(a, b api.Difference) bool { return a.PatchDetail == b.PatchDetail }

// recordWhilePresent records drift while it has paths, and ends it once it has none. It reports whether
// the record has changed. was is the record, and unchanged says that the paths are those of it; for anew
// see record.
func (dr *driftRecorder) recordWhilePresent(t apply.Task, was protocol.Drift, state api.DriftState, now protocol.Drift, unchanged, anew bool) bool {
	known := was.State == state
	switch {
	case len(now.Paths) == 0 && known:
		dr.state.Ended(t.Placement, was)
		return true
	case len(now.Paths) == 0, known && unchanged:
		return false
	}
	dr.record(t, state, now, anew)
	return true
}

// The messages say what happens with additions that are only reported, and with those that are offered.
const (
	additionsMessage = "added beside what the manifest sets, and left as it is; put it into Git, or remove it from the cluster"
	proposedMessage  = "added beside what the manifest sets, and left as it is until a pull request of it is merged or closed"
)

// recordAdditions records what others have added beside what the manifest sets, besides the record of
// other drift of the object. It reports whether the record has changed.
func (dr *driftRecorder) recordAdditions(t apply.Task, generation int64, found []api.Difference) bool {
	p, id := t.Placement, t.Manifest.ID
	was, shown := dr.drift.Addition(p, id), drift.Shorten(found)
	// A key whose value changes is no other addition; the paths of new items, which end in "-", do not tell these apart.
	known := func(d api.Difference) bool {
		return was.State == api.DriftAdded && slices.ContainsFunc(was.Paths, func(k api.Difference) bool {
			return k.Path == d.Path && (k.ValueInMember == d.ValueInMember || !strings.HasSuffix(k.Path, "/-"))
		})
	}
	anew := slices.ContainsFunc(shown, func(d api.Difference) bool { return !known(d) })
	now := protocol.Drift{Addition: true, Rule: dr.additionsRule(t), Message: additionsMessage, Generation: generation, Paths: found, By: diff.Actors(found)}
	if now.Rule != "" {
		now.Message = proposedMessage
	}
	if !dr.recordWhilePresent(t, was, api.DriftAdded, now, was.Rule == now.Rule && slices.EqualFunc(shown, was.Paths, sameDetail), anew) {
		return false
	}
	if anew {
		dr.cfg.Metrics.Drifts.Inc(dr.cfg.Name)
		dr.cfg.Log.Warn("something was added to an object, and is left as it is", "cluster", dr.cfg.Name, "placement", p.String(),
			"object", id.String(), "by", drift.By(now.By), "paths", drift.Paths(shown))
	}
	return true
}

// rejection returns the decision to remove what others have added to an object; rejected is false if there is none, or if
// additions to the object are not offered any more.
func (dr *driftRecorder) rejection(t apply.Task) (r protocol.DriftDecision, rejected bool) {
	r, known := dr.drift.Decision(protocol.DriftKey{Placement: t.Placement, ID: t.Manifest.ID, Addition: true})
	return r, known && r.PutBack && dr.additionsRule(t) != ""
}

// recordRemoved records that additions were removed, since a user has rejected them.
func (dr *driftRecorder) recordRemoved(o *apply.Outcome) {
	was := dr.drift.Addition(o.Placement, o.Manifest.ID)
	now := protocol.Drift{Addition: true, Message: was.Message, Generation: o.Gen, Paths: o.Removed, By: diff.Actors(o.Removed)}
	if r, known := dr.drift.Decision(protocol.DriftKey{Placement: o.Placement, ID: o.Manifest.ID, Addition: true}); known {
		now.Message = connection.Cut(r.Message)
	}
	dr.state.Observed(o.Placement, o.Manifest, api.DriftRepaired, now, false)
	by := ""
	if len(now.By) > 0 {
		by = now.By[0].Manager
	}
	dr.state.Removed(o.Manifest.ID, by, time.Now())
	dr.cfg.Metrics.Repairs.Inc(dr.cfg.Name, "added")
	dr.cfg.Log.Info("removed what somebody added", "cluster", dr.cfg.Name, "placement", o.Placement.String(),
		"object", o.Manifest.ID.String(), "by", drift.By(now.By), "paths", drift.Paths(drift.Shorten(o.Removed)), "reason", now.Message)
}
