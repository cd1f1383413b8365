package ledger

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// An Entry is one placement on one cluster: the decision and the observation.
type Entry struct {
	Binding placement.Binding
	// Seen is what the member has last reported; nil until it has. Entries with equal reports share it.
	Seen *protocol.WorkState
	// Transitions are the last changes of its conditions, by type. Only the owner of the ledger may read them: unlike
	// the other fields they change without a new entry, since a new one would keep two entries in memory.
	Transitions map[string]Transition
	// Circumstances is nil if there are none: call Unusual to read them.
	Circumstances *Circumstances

	inventory uint64 // the last that was reported
	times     [timesOfEntry]offset
}

// Circumstances are kept apart from their entry because they are empty for nearly all entries whose content is available, and a
// fleet has many. They are immutable.
type Circumstances struct {
	// UnavailableSince is when the assigned content was first observed to be applied and not
	// available; zero if it is available or nothing was observed.
	UnavailableSince time.Time `json:",omitzero"`
	// Writing says that the member has written objects, or has tried to, since the assigned
	// content was last available.
	Writing bool `json:",omitempty"`
	// DisturbedAt is the last time at which the content may have become unavailable or available
	// because of gitfleet, except by writes: when a suspension ended, when the cluster was no longer claimed by
	// another fleet, or when objects were left to another placement or came back from it.
	DisturbedAt time.Time `json:",omitzero"`
	// LastComplete is the last report in which every object of the assigned content was tried, while the newest, such as the first
	// after a restart, is not complete; nil otherwise. See Entry.CompleteOf.
	LastComplete *protocol.WorkState `json:",omitempty"`
	Deviation
}

// A Transition is the last change of one condition.
type Transition struct {
	Status string
	Time   time.Time
}

func (t Transition) equal(o Transition) bool { return t.Status == o.Status && t.Time.Equal(o.Time) }

// A storedEntry is an entry as it is stored, with its circumstances among its other fields.
type storedEntry struct {
	Binding        storedBinding
	AppliedAt      time.Time          `json:",omitzero"`
	AvailableAt    time.Time          `json:",omitzero"`
	AvailableSince time.Time          `json:",omitzero"`
	Seen           *storedState       `json:",omitempty"`
	Conditions     []storedTransition `json:",omitempty"`
	*Circumstances
	// Transitions are read, and stored as Conditions.
	Transitions map[string]Transition `json:",omitempty"`
}

// A storedBinding is a binding as it is stored, with its circumstances among its other fields.
type storedBinding struct {
	*placement.Binding
	*placement.Circumstances
}

// A storedState is a report as it is stored, with its incidents among its other fields.
type storedState struct {
	At        time.Time
	Inventory uint64 `json:",omitempty"`
	protocol.WorkState
	*protocol.Incidents
}

// A storedTransition is that of all conditions that have changed to the same status at the same time.
type storedTransition struct {
	Transition
	Types []string
}

func stored(e *Entry) *storedEntry {
	s := &storedEntry{
		Binding: storedBinding{&e.Binding, e.Binding.Circumstances}, AppliedAt: e.AppliedAt(), AvailableAt: e.AvailableAt(), AvailableSince: e.AvailableSince(),
		Conditions: storedTransitions(e.Transitions), Circumstances: e.Circumstances,
	}
	if e.Seen != nil {
		s.Seen = &storedState{e.SeenAt(), e.inventory, *e.Seen, e.Seen.Incidents}
		s.Seen.WorkState.Incidents = nil
	}
	return s
}

func storedTransitions(all map[string]Transition) (out []storedTransition) {
	for _, typ := range slices.Sorted(maps.Keys(all)) {
		same := func(s storedTransition) bool { return s.equal(all[typ]) }
		at := slices.IndexFunc(out, same)
		if at < 0 {
			at, out = len(out), append(out, storedTransition{Transition: all[typ]})
		}
		out[at].Types = append(out[at].Types, typ)
	}
	return out
}

func decodeEntry(raw []byte) (*Entry, error) {
	e := &Entry{}
	s := storedEntry{Binding: storedBinding{Binding: &e.Binding}}
	err := json.Unmarshal(raw, &s)
	e.Circumstances, e.Binding.Circumstances, e.Transitions = s.Circumstances, s.Binding.Circumstances, s.Transitions
	e.SetTimes(Times{AppliedAt: s.AppliedAt, AvailableAt: s.AvailableAt, AvailableSince: s.AvailableSince})
	if s.Seen != nil {
		seen := s.Seen.WorkState
		seen.Incidents, e.Seen, e.inventory = s.Seen.Incidents, &seen, s.Seen.Inventory
		e.setTime(SeenAt, s.Seen.At)
	}
	for _, c := range s.Conditions {
		for _, typ := range c.Types {
			if e.Transitions == nil {
				e.Transitions = map[string]Transition{}
			}
			e.Transitions[typ] = c.Transition
		}
	}
	return e, err
}

var noCircumstances Circumstances

// Unusual returns the circumstances of the entry, which may be empty.
func (e *Entry) Unusual() *Circumstances {
	if e.Circumstances == nil {
		return &noCircumstances
	}
	return e.Circumstances
}

// setCircumstances replaces the circumstances of an entry that is not in the ledger yet.
func (e *Entry) setCircumstances(next Circumstances) {
	was := e.Unusual()
	same := next.UnavailableSince.Equal(was.UnavailableSince) && next.Writing == was.Writing && next.DisturbedAt.Equal(was.DisturbedAt) && next.LastComplete == was.LastComplete
	switch {
	case same && next.Deviation.Identical(was.Deviation):
	case next.UnavailableSince.IsZero() && !next.Writing && next.DisturbedAt.IsZero() && next.LastComplete == nil && next.Deviation.Empty():
		e.Circumstances = nil
	default:
		own := next // the parameter is not moved to the heap
		e.Circumstances = &own
	}
}

// SeenOf returns the newest report of the member about the revision that a binding assigns; nil if it has sent none since the
// assignment. A report from before does not count, even if the content is the same.
func (e *Entry) SeenOf(b *placement.Binding) *protocol.WorkState {
	if e == nil || e.Seen == nil || e.Seen.Revision.Hash != b.Assigned.Hash || e.SeenAt().Before(b.AssignedAt) {
		return nil
	}
	return e.Seen
}

// CompleteOf returns the newest report of SeenOf in which every object was tried; nil if there is none. A later report that is not
// complete, such as the first after a restart if the kinds of the cluster are not known yet, adds what it shows to be worse, and
// nothing else. See protocol.WorkState.Completed.
func (e *Entry) CompleteOf(b *placement.Binding) *protocol.WorkState {
	seen, last := e.SeenOf(b), e.lastComplete(b)
	if seen == last || last == nil {
		return last
	}
	return seen.Completed(last)
}

func (e *Entry) lastComplete(b *placement.Binding) *protocol.WorkState {
	if seen := e.SeenOf(b); seen == nil || seen.Done {
		return seen
	}
	return e.Unusual().LastComplete
}

// Removed reports whether the member has reported that nothing of the placement is left on a
// cluster that it is being removed from.
func (e *Entry) Removed() bool { return e.Binding.Removing && e.Seen != nil && e.Seen.Removed }

// Reported reports whether the member has reported since the ledger was loaded. Before that,
// the recorded state may be outdated.
func (e *Entry) Reported() bool { return e.times[ReportedSince] != 0 }

// drifts returns the recorded drifts of one placement on one cluster.
func (e *Entry) drifts() []protocol.Drift {
	return e.Seen.Unusual().Drifts
}

// A Deviation has the differences between the content assigned to a cluster and the objects that the
// cluster was sent, which exist because other placements select the same objects. It is
// immutable.
type Deviation struct {
	// Yields are objects of the content that another placement owns on the cluster, by ID.
	Yields []Yield `json:",omitempty"`
	// Early are objects of later content, by ID, that another placement gave up. They are sent
	// early so that they are not deleted in between.
	Early []api.ID `json:",omitempty"`
}

// A Yield is an object that is left to another placement.
type Yield struct {
	ID api.ID
	To api.PlacementKey
	// Passing says that the other placement gives the object up once its rollout reaches the
	// cluster.
	Passing bool `json:",omitempty"`
}

// LeavesObjects reports whether objects are left to placements that will keep them.
func (c Deviation) LeavesObjects() bool {
	return slices.ContainsFunc(c.Yields, func(y Yield) bool { return !y.Passing })
}

// Equal reports whether both are the same.
func (c Deviation) Equal(o Deviation) bool {
	return slices.Equal(c.Yields, o.Yields) && slices.Equal(c.Early, o.Early)
}

// Identical reports whether both share the same slices, which is faster than Equal.
func (c Deviation) Identical(o Deviation) bool {
	return Identical(c.Yields, o.Yields) && Identical(c.Early, o.Early)
}

// Identical reports whether two slices are the same slice, or both empty.
func Identical[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// Empty reports whether the cluster was sent exactly the assigned content.
func (c Deviation) Empty() bool { return len(c.Yields)+len(c.Early) == 0 }

// An offset is a time of an entry in nanoseconds since its origin, from 1; zero stands for no time, and times before the origin are
// negative. It takes a third of the memory of a time.
type offset int64

// Times are the times of an entry, which has a method for each.
type Times [timesOfEntry]time.Time

// The positions in Times.
const (
	AppliedAt = iota
	AvailableAt
	AvailableSince
	SeenAt
	ReportedSince
	timesOfEntry
)

// AppliedAt is when all objects of the assigned revision were first observed to be applied; zero until then. Later failures do not
// change it.
func (e *Entry) AppliedAt() time.Time { return e.time(AppliedAt) }

// AvailableAt is when all objects of the assigned revision were first observed to be available; zero until then. Later failures do
// not change it.
func (e *Entry) AvailableAt() time.Time { return e.time(AvailableAt) }

// AvailableSince is when the assigned content became available; zero if it is not.
func (e *Entry) AvailableSince() time.Time { return e.time(AvailableSince) }

// SeenAt is the time of Seen; zero if the member has not reported.
func (e *Entry) SeenAt() time.Time { return e.time(SeenAt) }

// ReportedSince is the time of the member's first report since the ledger was loaded; zero if there is none.
func (e *Entry) ReportedSince() time.Time { return e.time(ReportedSince) }

// origin is a time that the others are close to, and that has a monotonic reading if they have.
func (e *Entry) origin() time.Time {
	if at := e.Binding.AssignedAt; !at.IsZero() {
		return at
	}
	return time.Unix(0, 0).UTC()
}

func (e *Entry) time(of int) time.Time {
	since := e.times[of]
	switch {
	case since == 0:
		return time.Time{}
	case since > 0:
		since--
	}
	return e.origin().Add(time.Duration(since))
}

func (e *Entry) setTime(of int, t time.Time) {
	since := offset(0)
	if !t.IsZero() {
		if since = offset(t.Sub(e.origin())); since >= 0 {
			since++
		}
	}
	e.times[of] = since
}

// setFirst sets a time that is not set yet.
func (e *Entry) setFirst(of int, t time.Time) {
	if e.times[of] == 0 {
		e.setTime(of, t)
	}
}

// Times returns all times.
func (e *Entry) Times() (all Times) {
	for of := range all {
		all[of] = e.time(of)
	}
	return all
}

// SetTimes replaces the times of an entry that is not in the ledger yet. They are set again when AssignedAt changes, from which they
// are counted.
func (e *Entry) SetTimes(all Times) {
	for of, t := range all {
		e.setTime(of, t)
	}
}
