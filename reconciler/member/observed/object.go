// Package observed stores the state of objects on a cluster that watches and writes have shown.
package observed

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
)

// An Object is the stored state of an object on the member.
type Object struct {
	UID        types.UID
	Version    uint64 // resourceVersion; servers since 1.35 guarantee that it grows
	Generation int64
	// Managed is the hash of our entry in managedFields. The server rewrites that entry when
	// others change or remove a field that we own, and otherwise leaves it unchanged. So while
	// the hash is the same, our fields are unchanged.
	Managed string
	// Applied is when an apply under our name last changed the object, in seconds since 1970.
	// If that apply was not ours, others use our field manager.
	Applied int64
	// Others is a hash of what others own; see othersOf.
	Others uint64
	// Fleet is the value of the managed-by label.
	Fleet string
	// Writer is the field manager other than ours that last changed the object, as far as the
	// metadata shows.
	Writer      string
	Terminating bool
	// Owned: the object has owner references. Scaled: an autoscaler has written to it. Replicas: we
	// have applied replicas, and nobody has changed them. Kept: it has the annotation that prevents
	// its deletion. Foreground: its dependents are deleted first. Shared: others own fields that we
	// have applied.
	Owned, Scaled, Replicas, Kept, Foreground, Shared bool
	// Extended: others may have added something since the last apply, as a watch has shown it.
	Extended bool
	// Deleted is when a terminating object was deleted, in seconds since 1970; zero for others.
	Deleted int64
	// Finalizers are the finalizers of a terminating object except the garbage collector's,
	// separated by commas.
	Finalizers string
	Health     health.Health
	// Ended: the object, which runs to an end, has run; see controllers.HasEnded.
	Ended bool
}

// Text returns the size of the texts that are kept of an object, in bytes.
func (o *Object) Text() int {
	return len(o.UID) + len(o.Fleet) + len(o.Writer) + len(o.Finalizers) + len(o.Health.Message) + len(o.Health.Failure)
}

// Of returns the state of an object, except its health and whether it has ended.
func Of(m metav1.Object) *Object { return OfFields(m, m.GetManagedFields()) }

// Watched is Of for an object of a group as a watch reports it: with whether others may have extended it.
func Watched(m metav1.Object, group string) *Object {
	entries := m.GetManagedFields()
	o := OfFields(m, entries)
	o.Extended = diff.MayBeExtended(entries, api.FieldManager, group)
	return o
}

// OfFields is Of for an object whose managedFields are known: an unstructured object converts them at
// each call of GetManagedFields, which is expensive.
func OfFields(m metav1.Object, entries []metav1.ManagedFieldsEntry) *Object {
	const word, list = 256, 4 << 10 // longer texts are not those of an API server
	terminating := m.GetDeletionTimestamp() != nil
	finalizers, deleted := "", int64(0)
	if terminating {
		deleted = m.GetDeletionTimestamp().Unix()
		finalizers = strings.Join(slices.DeleteFunc(slices.Clone(m.GetFinalizers()), func(f string) bool { return f == metav1.FinalizerDeleteDependents }), ", ")
	}
	return &Object{
		UID:         types.UID(health.Cut(string(m.GetUID()), word)),
		Version:     ParseVersion(m.GetResourceVersion()),
		Generation:  m.GetGeneration(),
		Managed:     diff.ApplyHash(entries, api.FieldManager),
		Applied:     diff.AppliedAt(entries, api.FieldManager).Unix(),
		Others:      othersOf(entries),
		Fleet:       health.Cut(m.GetLabels()[api.ManagedByLabel], word),
		Terminating: terminating,
		Deleted:     deleted,
		Finalizers:  health.Cut(finalizers, list),
		Owned:       len(m.GetOwnerReferences()) > 0,
		Scaled:      diff.Autoscaled(entries),
		Replicas:    diff.AppliesReplicas(entries, api.FieldManager),
		Shared:      diff.Shared(entries, api.FieldManager),
		Kept:        m.GetAnnotations()[api.PruneAnnotation] == api.PruneDisabled,
		Foreground:  slices.Contains(m.GetFinalizers(), metav1.FinalizerDeleteDependents),
		Writer:      health.Cut(writer(entries), word),
	}
}

// writer returns the field manager other than ours that wrote last.
func writer(entries []metav1.ManagedFieldsEntry) string {
	var last *metav1.ManagedFieldsEntry
	for i := range entries {
		e := &entries[i]
		if !byOthers(e) || e.Time == nil {
			continue
		}
		if last == nil || !e.Time.Before(last.Time) {
			last = e
		}
	}
	if last == nil {
		return ""
	}
	return diff.ManagerOf(last)
}

// byOthers reports whether an entry in managedFields is neither from our applies nor of the status.
func byOthers(e *metav1.ManagedFieldsEntry) bool {
	return (e.Manager != api.FieldManager || e.Operation != metav1.ManagedFieldsOperationApply) && e.Subresource != "status"
}

// ParseVersion parses a resource version. It returns zero for one that is not a number; zero is
// never treated as older.
func ParseVersion(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// An OwnershipState identifies who owns what of an object: if it changes, others have changed
// something. The converse does not hold: a second write of the same fields through the scale
// subresource, or under our own field manager, leaves it as it was.
type OwnershipState struct {
	uid     types.UID
	managed string
	others  uint64
	owned   bool
}

// othersOf returns a hash of what others own of an object, except its status.
func othersOf(entries []metav1.ManagedFieldsEntry) uint64 {
	sum := fnv.New64a()
	for i := range entries {
		e := &entries[i]
		if !byOthers(e) {
			continue
		}
		sum.Write([]byte(e.Manager + "\x00" + string(e.Operation) + "\x00"))
		if e.Time != nil {
			sum.Write([]byte(e.Time.UTC().Format(time.RFC3339)))
		}
		if e.FieldsV1 != nil {
			sum.Write(diff.CanonicalFields(e.FieldsV1))
		}
	}
	return sum.Sum64()
}

// OthersState identifies what others own of the object and have last written. The times of their
// writes are not enough: they are in whole seconds, and a write through a subresource such as
// scale has none. For an object without a generation each version is new content, since such
// objects have no relevant status.
func (o *Object) OthersState() string {
	if o.Generation == 0 {
		return strconv.FormatUint(o.Version, 36)
	}
	return strconv.FormatUint(o.Others, 36) + "." + strconv.FormatInt(o.Generation, 36)
}

// OwnershipState returns the ownership state of an object; zero if it does not exist.
func (ls Objects) OwnershipState(id api.ID) OwnershipState {
	p := ls.Map.Of(id)
	if p == nil {
		return OwnershipState{}
	}
	rest := p.rest.Value()
	return OwnershipState{uid: p.uid.Unpack(rest.UID), managed: rest.Managed, others: p.others, owned: rest.Owned}
}
