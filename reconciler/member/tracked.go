package member

import (
	"encoding/hex"
	"iter"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/health"
)

// A fleet tracks very many objects, and what is known of one is mostly what is
// known of the same object on all other clusters. So each session keeps of an
// object only what is its own, and a reference to one copy of the rest. Whoever
// reads gets all of it, as a value of his own; whoever changes it puts it back.

// A ref stands for an ID, of which there is one copy for all clusters.
type ref = unique.Handle[api.ID]

// byID keeps something of each of many objects, sorted by ID: a map would take a
// third more space. Most of them come in order, or stay for long.
type byID[T any] []kept[T]

type kept[T any] struct {
	ref ref
	is  T
}

func (all byID[T]) find(id api.ID) (at int, found bool) {
	return slices.BinarySearchFunc(all, id, func(k kept[T], id api.ID) int { return k.ref.Value().Compare(id) })
}

// of returns what is kept of an object; nil if nothing is. It is valid until
// something is put or dropped.
func (all byID[T]) of(id api.ID) *T {
	if at, found := all.find(id); found {
		return &all[at].is
	}
	return nil
}

// put keeps something of an object. There is little room for more: append would
// take up to twice the space.
func (all *byID[T]) put(id api.ID, is T) {
	at, found := all.find(id)
	if found {
		(*all)[at].is = is
		return
	}
	if n := len(*all); n == cap(*all) {
		*all = append(slices.Grow(byID[T](nil), n+n/8+4), *all...)
	}
	*all = slices.Insert(*all, at, kept[T]{unique.Make(id), is})
}

func (all *byID[T]) drop(id api.ID) {
	if at, found := all.find(id); found {
		*all = slices.Delete(*all, at, at+1)
	}
}

// ids yields the objects, by ID.
func (all byID[T]) ids() iter.Seq[api.ID] {
	return func(yield func(api.ID) bool) {
		for _, k := range all {
			if !yield(k.ref.Value()) {
				return
			}
		}
	}
}

// lives are the live objects that are known.
type lives struct{ byID[packedLive] }

type packedLive struct {
	uid        packedUID
	version    uint64
	generation int64
	applied    int64
	others     uint64
	rest       unique.Handle[commonLive]
}

// commonLive is of a live object what is likely to be the same elsewhere.
type commonLive struct {
	uid                    types.UID // if it cannot be packed
	managed, fleet, writer string
	terminating            bool
	owned, scaled, kept    bool
	foreground             bool
	finalizers             string
	health                 health.Health
}

// of returns what is known of an object; nil if nothing is.
func (ls lives) of(id api.ID) *live {
	p := ls.byID.of(id)
	if p == nil {
		return nil
	}
	rest := p.rest.Value()
	return &live{
		uid: p.uid.unpack(rest.uid), version: p.version, generation: p.generation, applied: p.applied, others: p.others,
		managed: rest.managed, fleet: rest.fleet, writer: rest.writer, terminating: rest.terminating,
		owned: rest.owned, scaled: rest.scaled, kept: rest.kept, foreground: rest.foreground, finalizers: rest.finalizers, health: rest.health,
	}
}

// health returns how an object does, and its generation; not ok if it is not
// known. It is asked of every object for every report.
func (ls lives) health(id api.ID) (h health.Health, generation int64, ok bool) {
	p := ls.byID.of(id)
	if p == nil {
		return health.Health{}, 0, false
	}
	return p.rest.Value().health, p.generation, true
}

func (ls *lives) put(id api.ID, l *live) {
	uid, whole := packUID(l.uid)
	ls.byID.put(id, packedLive{
		uid: uid, version: l.version, generation: l.generation, applied: l.applied, others: l.others,
		rest: unique.Make(commonLive{
			uid: whole, managed: l.managed, fleet: l.fleet, writer: l.writer, terminating: l.terminating,
			owned: l.owned, scaled: l.scaled, kept: l.kept, foreground: l.foreground, finalizers: l.finalizers, health: l.health,
		}),
	})
}

// missing drops the objects of a kind that a list did not find, and returns them.
func (ls *lives) missing(kind schema.GroupKind, all listed) (gone []api.ID) {
	ls.byID = slices.DeleteFunc(ls.byID, func(k kept[packedLive]) bool {
		id := k.ref.Value()
		if id.GroupKind() != kind || all.found[id] || all.version > 0 && all.version < k.is.version {
			return false
		}
		gone = append(gone, id)
		return true
	})
	return gone
}

// items are the objects that an inventory holds.
type items struct{ byID[packedItem] }

type packedItem struct {
	uid  packedUID
	rest unique.Handle[commonItem]
}

// commonItem is of an item what is likely to be the same elsewhere.
type commonItem struct {
	uid                            types.UID // if it cannot be packed
	version, hash, managed, commit string
}

// of returns one item; nil if there is none.
func (is items) of(id api.ID) *item {
	p := is.byID.of(id)
	if p == nil {
		return nil
	}
	it := p.item(id)
	return &it
}

func (is items) has(id api.ID) bool { return is.byID.of(id) != nil }

// gvk returns the kind of an item as it was applied; not ok if there is none.
func (is items) gvk(id api.ID) (gvk schema.GroupVersionKind, ok bool) {
	p := is.byID.of(id)
	if p == nil {
		return gvk, false
	}
	return id.GroupKind().WithVersion(p.rest.Value().version), true
}

// all yields every item, by ID. They are not to change meanwhile.
func (is items) all() iter.Seq[item] {
	return func(yield func(item) bool) {
		for i := range is.byID {
			if k := &is.byID[i]; !yield(k.is.item(k.ref.Value())) {
				return
			}
		}
	}
}

func (p *packedItem) item(id api.ID) item {
	rest := p.rest.Value()
	return item{
		Group: id.Group, Version: rest.version, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name,
		Hash: rest.hash, Managed: rest.managed, UID: p.uid.unpack(rest.uid), Commit: rest.commit,
	}
}

func (is *items) put(it item) {
	uid, whole := packUID(it.UID)
	is.byID.put(it.id(), packedItem{
		uid:  uid,
		rest: unique.Make(commonItem{uid: whole, version: it.Version, hash: it.Hash, managed: it.Managed, commit: it.Commit}),
	})
}

// A packedUID is a UID in less than half the space.
type packedUID [16]byte

// packUID packs a UID, and returns it whole if that cannot be done: UIDs are
// UUIDs, but nobody has promised it.
func packUID(uid types.UID) (packed packedUID, whole types.UID) {
	if len(uid) == 36 {
		digits := []byte(uid[:8] + uid[9:13] + uid[14:18] + uid[19:23] + uid[24:])
		if _, err := hex.Decode(packed[:], digits); err == nil && packed != (packedUID{}) && packed.unpack("") == uid {
			return packed, ""
		}
	}
	return packedUID{}, uid
}

func (p packedUID) unpack(whole types.UID) types.UID {
	if p == (packedUID{}) {
		return whole
	}
	var out [36]byte
	digits := hex.AppendEncode(make([]byte, 0, 32), p[:])
	copy(out[0:], digits[0:8])
	copy(out[9:], digits[8:12])
	copy(out[14:], digits[12:16])
	copy(out[19:], digits[16:20])
	copy(out[24:], digits[20:])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return types.UID(out[:])
}

// wants are the objects that should be here, sorted by ID.
type wants []want

type want struct {
	placement *api.PlacementKey
	manifest  *work.Manifest
}

// wantsOf sorts what works want. If two want the same object, better decides
// whether the second is to have it.
func wantsOf(works []work.Work, better func(old, new wanted) bool) wants {
	n := 0
	for _, w := range works {
		n += len(w.Manifests)
	}
	all := make(wants, 0, n)
	for i := range works {
		for _, m := range works[i].Manifests {
			all = append(all, want{&works[i].Placement, m})
		}
	}
	slices.SortStableFunc(all, func(a, b want) int { return a.manifest.ID.Compare(b.manifest.ID) })
	out := all[:0]
	for _, w := range all {
		last := len(out) - 1
		switch {
		case last < 0 || out[last].manifest.ID != w.manifest.ID:
			out = append(out, w)
		case better(out[last].wanted(), w.wanted()):
			out[last] = w
		}
	}
	return out
}

func (w want) wanted() wanted { return wanted{*w.placement, w.manifest} }

// of returns who wants an object, and whether anybody does.
func (ws wants) of(id api.ID) (wanted, bool) {
	i, found := slices.BinarySearchFunc(ws, id, func(w want, id api.ID) int { return w.manifest.ID.Compare(id) })
	if !found {
		return wanted{}, false
	}
	return ws[i].wanted(), true
}

// all yields everything that is wanted, by ID.
func (ws wants) all() iter.Seq2[api.ID, wanted] {
	return func(yield func(api.ID, wanted) bool) {
		for _, w := range ws {
			if !yield(w.manifest.ID, w.wanted()) {
				return
			}
		}
	}
}
