package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/decide"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A task is an object that may have to be applied.
type task struct {
	desired.Object
	res  connection.Resource
	item *inventory.Item // nil if no inventory of its placement lists it
	// absent says that no watch has seen the object. An object without our label may still
	// exist.
	absent bool
	// step is what is to be done, and drift says that others have changed the object.
	step  decide.Step
	drift bool
	// suspendedReason is why the object is only observed; empty if it may be written.
	suspendedReason string
	// rejected is the fingerprint of additions that a user has rejected, so that they are removed; empty if there are
	// none.
	rejected string
	// found is what findExisting has found of an object that was never applied; nil if it was not
	// asked.
	found *finding
	inputs
	// inGit is the content in Git, if that of the manifest was extended; otherwise nil.
	inGit *unstructured.Unstructured
}

// inputs are what an executor needs to know of the object of a task.
type inputs struct {
	// known is the object as its watch knows it; nil if it does not.
	known *observed.Object
	// rule is the rule in force for the drift of the object, decision the decision about its
	// drift; nil if there is none.
	rule     api.DriftRule
	decision *protocol.DriftDecision
	// alteredBefore are the fields that the server is known to store differently from what is
	// applied.
	alteredBefore []api.PatchDetail
	// scaler is what placements say about the autoscaler of the object.
	scaler autoscaler.Placed
	// replaced is the object that this one replaces; nil if there is none.
	replaced *snapshot
	// lastApplied is the manifest that was applied last, if the object is to have another one now; nil if
	// it is not known.
	lastApplied *work.Manifest
	// addedBy are the actors who are known to have added something to the object.
	addedBy []api.Actor
	// changed is the recorded drift that is left as it is, from which something is known of the last manifest
	// after a restart, too.
	changed []api.Difference
}

// beside returns a task that applies what controllers have added to fields of the live object with the
// content in Git. live may be nil.
func (t task) beside(live *unstructured.Unstructured) task {
	in := t.Manifest.Object
	if content := controllers.Keep(in.Content, live); content != in.Content {
		m, o := *t.Manifest, *in
		o.Content, m.Object = content, &o
		t.Manifest, t.inGit = &m, in.Content
	}
	return t
}

// An outcome is the result of a task.
type outcome struct {
	task
	do      diff.Operation
	cond    diff.Condition
	err     error
	written *observed.Object           // nil if nothing was written
	stored  *unstructured.Unstructured // what was written; only if its health depends on its content
	created bool                       // the object did not exist before
	made    bool                       // our last apply created the object, now or earlier
	diffs   []api.Difference
	gen     int64
	snapshot
	// before is the drift that the task had to revert, if any.
	before protocol.Drift
	// altered are the fields that the server has stored differently from what was applied.
	altered []api.PatchDetail
	// accepted is the live object if it already equals its new version; nil otherwise.
	accepted *observed.Object
	// immutable says that the server refused it because of immutable fields only.
	immutable bool
	// unknown is the kind because of which it was not tried; see failure.
	unknown schema.GroupVersionKind
	// transient says that what keeps the object from being applied ends by itself: it is being deleted, or a hook has not ended.
	transient bool
	// gone says that somebody deleted the object and that it is not created again for now.
	gone bool
	// additions are what others have added beside what the manifest sets; nil if that was not looked at.
	additions *[]api.Difference
	// removed are the rejected additions that were removed, and unremoved is why they could not be.
	removed   []api.Difference
	unremoved error
	// left are the fields that Git has removed and that are still there; nil if that was not looked at.
	left *diff.Left
}

// repairs reports whether an apply because of supposed drift has changed the object. If it has
// not, there was no drift.
func (o *outcome) repairs() bool {
	if !o.drift || o.written == nil {
		return false
	}
	return o.live == nil || o.written.Version == 0 || observed.ParseVersion(o.live.GetResourceVersion()) != o.written.Version
}

// reverted reports whether the write reverted drift. A write that finds no changed field may only
// have changed who owns fields. It does not count if an autoscaler contests the object or the
// object leaves fields to others.
func (o *outcome) reverted() bool {
	if !o.repairs() {
		return false
	}
	changed := len(o.before.Paths) > 0
	return changed || len(o.rivals) == 0 && (o.before.Deleted || !leavesFields(o.Manifest))
}

// asWanted reports whether a suspended object equals the desired one.
func (o *outcome) asWanted() bool {
	return o.suspendedReason != "" && o.err == nil && len(o.diffs) == 0 && o.cond.Status == metav1.ConditionTrue
}

// mask removes from an error the values of a Secret as it is wanted and as it is; live may be nil.
func (t *task) mask(live *unstructured.Unstructured, err error) error {
	return diff.SecretsOf(t.Manifest.Object.Content, live).Error(err)
}

// suspendedCondition returns the condition of a suspended object: it counts as applied if the
// desired content was applied before.
func (t *task) suspendedCondition() diff.Condition {
	if t.item == nil || t.item.Hash != t.Manifest.Hash {
		return diff.NotApplied(api.Suspended, t.suspendedReason)
	}
	c := diff.Applied()
	c.Reason, c.Cause = api.Suspended, t.suspendedReason
	return c
}

// findTasks returns the tasks that some objects need, about how many is known, and the stale objects among them.
func (a *applier) findTasks(ids map[api.ID]bool, about int) (tasks []task, prune []stale) {
	tasks = make([]task, 0, about)
	listing := a.owned.listingsFor(len(ids))
	for id := range ids {
		stales := a.owned.stalesIn(id, listing(id))
		prune = append(prune, stales...)
		w, isWanted := a.Wanted().Of(id)
		if !isWanted {
			if len(stales) == 0 {
				a.record.forget(id)
			}
			continue
		}
		if t, needed := a.task(id, w); needed {
			tasks = append(tasks, t)
		}
	}
	return tasks, prune
}

// outdated returns how many of some objects are not recorded as applied with their newest content.
func (a *applier) outdated(ids map[api.ID]bool) (n int) {
	for id := range ids {
		if w, isWanted := a.Wanted().Of(id); isWanted && !a.owned.applied(w) {
			n++
		}
	}
	return n
}

// task reports whether an object needs a task, according to the known state and without a
// request. It records objects that cannot be applied now, and drift that is contested.
func (a *applier) task(id api.ID, w desired.Object) (task, bool) {
	t := a.newTask(w)
	facts, awaited := a.facts(&t)
	var refusal decide.Refusal
	switch t.step, refusal = decide.Apply(facts); t.step {
	case decide.Leave:
		return t, false
	case decide.Finish:
		a.record.settled(id)
		return t, false
	case decide.Refuse:
		a.record.failure(refused(t, refusal, awaited))
		return t, false
	case decide.Restore:
		contested := a.drifts.countUndone(t, a.live.Of(id))
		if contested != nil {
			a.record.contested(id, contested)
		}
		return t, contested == nil
	}
	return t, true
}

// refused returns the outcome of a task that is refused. awaited is the kind that the object waits for, if it waits for one.
func refused(t task, why decide.Refusal, awaited schema.GroupVersionKind) outcome {
	o := outcome{task: t, cond: why.Condition(), unknown: awaited, transient: decide.IsTransient(why)}
	if !awaited.Empty() {
		o.do = diff.NeedRead
	}
	if _, encrypted := why.(*decide.EncryptedError); !encrypted && !o.transient {
		o.err = why
	}
	return o
}

// facts returns what is known of the object of a task, and the kind that it waits for, if it waits for one. It sets what the task
// has of them. What cannot matter any more is left out.
func (a *applier) facts(t *task) (f decide.Facts, awaited schema.GroupVersionKind) {
	w, id, gvk := t.Object, t.Manifest.ID, t.GVK()
	res, served := a.kinds.Of(gvk)
	bad := a.progress.failed[id]
	f.Waits = bad != nil && bad.hash == w.Manifest.Hash && a.retryNotDue(bad, w.Manifest) && !(served && bad.unknownKind())
	switch {
	case f.Waits:
		return f, awaited
	case !served:
		f.Unknown = a.unknownKind(gvk)
		return f, gvk
	}
	if awaited, f.Awaited = a.awaitedStore(*t); f.Awaited != nil {
		return f, awaited
	}
	if res.Namespaced && id.Namespace == "" {
		f.NoNamespace = id.Kind
	}
	if c := w.Manifest.Encrypted; c != nil {
		f.Encrypted = c.Message()
	}
	l := a.live.Of(id)
	t.absent = l == nil
	if f.OnlyCompared = a.Works().OnlyCompares(w.Placement); f.OnlyCompared {
		return f, awaited
	}
	f.Exists, f.Watched, f.HasRun = l != nil, a.watch.Of(gvk).Complete(), l == nil && a.progress.hasRun(w.Manifest, t.item)
	f.Failed, f.Rejected = bad != nil, t.rejected != ""
	t.suspendedReason = a.Works().SuspendedReason(w.Placement, id)
	if f.Suspended = t.suspendedReason != ""; f.Suspended {
		f.Changed = a.mayDiffer(*t, l) || a.progress.suspects[id]
		return f, awaited
	}
	f.Hook, f.HookFor = a.owned.mayApply(w)
	if f.Deleting = l != nil && l.Terminating; f.Deleting {
		f.Finalizers = l.Finalizers
	}
	f.Applied = t.item != nil && t.item.Hash != ""
	if f.Current = t.item != nil && t.item.Hash == w.Manifest.Hash; !f.Current {
		f.MayEqual = a.drifts.accepts(*t, l)
		return f, awaited
	}
	f.Drift = a.driftOf(t.item, l)
	switch {
	case l == nil && !f.Watched: // no watch reports the object, so that its health is read once
		f.Unread = needsStatus(w.Manifest) && a.watch.Of(gvk).Refused() && !a.drifts.holds(*t, &observed.Object{Fleet: a.cfg.Fleet})
	case f.Drift == drift.Drifted && !f.Deleting:
		t.drift = true
		f.Held, f.Protected = a.drifts.holds(*t, l), a.Works().Protects(w.Placement)
	default:
		f.Unread = a.unverified(w)
	}
	return f, awaited
}

// driftOf says whether an object that was applied has drifted, as far as its metadata shows; l is nil if it does not exist. Its
// values may have changed; see valueChecker.
func (c *cluster) driftOf(it *inventory.Item, l *observed.Object) drift.Answer {
	return drift.Of(drift.Applied{Fleet: c.cfg.Fleet, Managed: it.Managed}, drift.Seen(l)).Answer
}

// applied returns what was applied of the object of a task, with its content as it is applied to the live one. The task must have
// an item.
func (t *task) applied(fleet string) drift.Applied {
	return drift.Applied{Fleet: fleet, Managed: t.item.Managed, Manifest: t.Manifest.Object.Content, Altered: t.alteredBefore}
}

// mayDiffer reports whether a suspended object may differ from what is wanted.
func (a *applier) mayDiffer(t task, l *observed.Object) bool {
	if l == nil && t.item != nil && !a.watch.Of(t.GVK()).Complete() {
		return a.progress.failed[t.Manifest.ID] != nil // no watch reports it
	}
	return t.item == nil || t.item.Hash != t.Manifest.Hash || a.driftOf(t.item, l) == drift.Drifted || a.progress.failed[t.Manifest.ID] != nil
}

// scaled reports whether an autoscaler may scale an object, as its watch knows it; nil if it does
// not.
func scaled(m *work.Manifest, known *observed.Object) bool {
	return known != nil && known.Scaled && autoscaler.SetsReplicas(m.Object.Content)
}

// unverified reports whether an object must be read, and was not read since others last changed
// it.
func (a *applier) unverified(w desired.Object) bool {
	verified, ok := a.progress.verified[w.Manifest.ID]
	return a.record.verifies(w) && (!ok || verified != a.live.OwnershipState(w.Manifest.ID))
}

// retryNotDue reports whether a retry of an object is not due yet. If the object was not written
// because of its state, any write of others makes the retry due, at most once a second, except
// those of an autoscaler. Some writes do not change the ownership state; see
// observed.OwnershipState.
func (a *applier) retryNotDue(t *failure, m *work.Manifest) bool {
	now, live := time.Now(), a.live.Of(m.ID)
	written := a.progress.suspects[m.ID] && !scaled(m, live)
	if now.Before(t.next) && t.refused != nil && (written || *t.refused != a.live.OwnershipState(m.ID)) {
		t.hasten()
	}
	return now.Before(t.next)
}

// unknownKind returns why a kind is not known. If its definition is placed here too, the kind
// only has to wait for the definition.
func (a *applier) unknownKind(gvk schema.GroupVersionKind) error {
	err := a.kinds.Why(gvk)
	var none *discovery.MissingDefinition
	if !errors.As(err, &none) {
		return err
	}
	if by := definitionOf(gvk, a.Wanted()); by != nil {
		if t := a.progress.failed[by.Manifest.ID]; t != nil && t.cond.Status != metav1.ConditionTrue || a.Works().OnlyCompares(by.Placement) || a.Works().SuspendedReason(by.Placement, by.Manifest.ID) != "" {
			return fmt.Errorf("%w: its CustomResourceDefinition %s, which %s places here, is not applied: see why there", none.NoMatch, by.Manifest.ID.Name, by.Placement)
		}
		return &pendingDefinition{fmt.Errorf("%w: its CustomResourceDefinition %s, which %s places here, is not established yet; it is applied as soon as it is", none.NoMatch, by.Manifest.ID.Name, by.Placement)}
	}
	return err
}

// definitionOf returns the definition of a kind among some objects; nil if there is none.
func definitionOf(gvk schema.GroupVersionKind, among desired.Objects) *desired.Object {
	for id, w := range among.All() {
		if id.GroupKind() == discovery.Definitions && discovery.Defines(w.Manifest.Object.Content, gvk) {
			return &w
		}
	}
	return nil
}

// awaitedStore returns why an object of the last wave is not applied yet, and the kind it waits for: a store of its group, whose
// definition is placed here too and not established yet. Without this the waves would count only among kinds that become
// known at the same time.
func (a *applier) awaitedStore(t task) (kind schema.GroupVersionKind, err error) {
	id := t.Manifest.ID
	if t.item != nil && t.item.Hash != "" || !work.NeedsStores(id.GroupKind()) {
		return kind, nil
	}
	for other, w := range a.Wanted().All() {
		if other.Group != id.Group || work.Wave(other.GroupKind()) != work.StoreWave {
			continue
		}
		if _, known := a.kinds.Of(w.GVK()); known {
			continue
		}
		var coming *pendingDefinition
		if err := a.unknownKind(w.GVK()); errors.As(err, &coming) {
			return w.GVK(), fmt.Errorf("it waits for %s, which comes first: %w", other, err)
		}
	}
	return kind, nil
}

// An Encoder encodes manifests for applying, and compiles expressions once for all clusters that
// share them. It is safe for concurrent use.
type Encoder struct {
	fleet, source string
	expressions   availability.Cache
	recent        encodings
}

// NewEncoder returns an encoder for the name of a fleet and the repository of its manifests,
// whose address must not contain credentials.
func NewEncoder(fleet, source string) *Encoder { return &Encoder{fleet: fleet, source: source} }

// object returns the object to apply for other content of a manifest.
func (e *Encoder) object(content *unstructured.Unstructured, m *work.Manifest, p api.PlacementKey, commit string) *unstructured.Unstructured {
	o := content.DeepCopy()
	e.mark(o, p, m.Origin.Path, commit)
	return o
}

// bodyOf returns the bytes to apply an object as it was read, and whether they are for one version of it. Clusters that
// get the same manifest share them if nothing of what was read is in them.
func bodyOf(x *executor, t task, saw snapshot, commit string) (raw []byte, ofVersion bool, err error) {
	key, shared := encodingKey{t.Manifest.ID, t.Manifest.Hash, t.Manifest.Origin.Path, commit, t.Placement}, saw.live == nil && t.replaced == nil && t.Manifest.Hash != ""
	if shared {
		if raw = x.encoder.recent.of(key); raw != nil {
			return raw, false, nil
		}
	}
	o, err := x.toSend(t, saw)
	if err != nil {
		return nil, false, err
	}
	raw, err = x.encoder.encodeAs(o, t.Manifest, t.Placement, commit)
	if ofVersion = o.GetResourceVersion() != ""; shared && err == nil && !ofVersion {
		x.encoder.recent.add(key, raw)
	}
	return raw, ofVersion, err
}

// An encodingKey identifies the encoding of a manifest: it has everything that the encoding depends on.
type encodingKey struct {
	id                 api.ID
	hash, path, commit string
	placement          api.PlacementKey
}

// encodings are what was encoded last. Clusters apply the same objects in the same order and at about the same time. The zero
// value is empty.
type encodings struct {
	mu           sync.Mutex
	now, earlier map[encodingKey][]byte
	bytes        int // of now
}

// maxEncodings is the size from which encodings begin to be dropped, in bytes; up to twice as much is kept.
const maxEncodings = 1 << 20

// of returns an encoding; nil if it is not known. The caller does not change it.
func (e *encodings) of(key encodingKey) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	raw := e.now[key]
	if raw == nil {
		if raw = e.earlier[key]; raw != nil {
			e.put(key, raw)
		}
	}
	return raw
}

func (e *encodings) add(key encodingKey, raw []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.now[key] == nil && len(raw) <= maxEncodings/16 {
		e.put(key, raw)
	}
}

func (e *encodings) put(key encodingKey, raw []byte) {
	if e.now == nil || e.bytes+len(raw) > maxEncodings {
		e.now, e.earlier, e.bytes = map[encodingKey][]byte{}, e.now, 0
	}
	e.now[key] = raw
	e.bytes += len(raw)
}

// encodeAs returns the bytes to apply a manifest with other content.
func (e *Encoder) encodeAs(content *unstructured.Unstructured, m *work.Manifest, p api.PlacementKey, commit string) ([]byte, error) {
	raw, err := json.Marshal(e.object(content, m, p, commit).Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.ID, err)
	}
	return raw, nil
}

// mark adds the label with the fleet, and the annotations with the origin of the object.
func (e *Encoder) mark(o *unstructured.Unstructured, p api.PlacementKey, path, commit string) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[api.ManagedByLabel] = e.fleet
	o.SetLabels(labels)
	notes := o.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes[api.PlacementAnnotation] = p.String()
	notes[api.SourceAnnotation] = e.source
	notes[api.CommitAnnotation] = commit
	notes[api.PathAnnotation] = path
	o.SetAnnotations(notes)
}
