package observed

import (
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/compact"
)

// Objects are the objects that are known to exist.
type Objects struct{ compact.Map[packedObject] }

type packedObject struct {
	uid        compact.UID
	version    uint64
	generation int64
	applied    int64
	others     uint64
	rest       unique.Handle[commonFields]
}

// commonFields has the fields of an object that are often equal for other objects.
type commonFields struct {
	uid                    types.UID // set if it cannot be packed
	managed, fleet, writer string
	terminating            bool
	owned, scaled, kept    bool
	foreground             bool
	finalizers             string
	health                 health.Health
}

// Of returns what is known of an object; nil if nothing is.
func (ls Objects) Of(id api.ID) *Object {
	p := ls.Map.Of(id)
	if p == nil {
		return nil
	}
	rest := p.rest.Value()
	return &Object{
		UID: p.uid.Unpack(rest.uid), Version: p.version, Generation: p.generation, Applied: p.applied, Others: p.others,
		Managed: rest.managed, Fleet: rest.fleet, Writer: rest.writer, Terminating: rest.terminating,
		Owned: rest.owned, Scaled: rest.scaled, Kept: rest.kept, Foreground: rest.foreground, Finalizers: rest.finalizers, Health: rest.health,
	}
}

// Health returns the health of an object and its generation; ok is false if the object is not
// known. It is called for every object in every report.
func (ls Objects) Health(id api.ID) (h health.Health, generation int64, ok bool) {
	p := ls.Map.Of(id)
	if p == nil {
		return health.Health{}, 0, false
	}
	return p.rest.Value().health, p.generation, true
}

// Put records an object.
func (ls *Objects) Put(id api.ID, l *Object) {
	uid, whole := compact.Pack(l.UID)
	ls.Map.Put(id, packedObject{
		uid: uid, version: l.Version, generation: l.Generation, applied: l.Applied, others: l.Others,
		rest: unique.Make(commonFields{
			uid: whole, managed: l.Managed, fleet: l.Fleet, writer: l.Writer, terminating: l.Terminating,
			owned: l.Owned, scaled: l.Scaled, kept: l.Kept, foreground: l.Foreground, finalizers: l.Finalizers, health: l.Health,
		}),
	})
}

// DropMissing drops the objects of a kind that a list does not have, and returns them.
func (ls *Objects) DropMissing(kind schema.GroupKind, all List) (gone []api.ID) {
	ls.Map.DropFunc(func(id api.ID, l *packedObject) bool {
		if id.GroupKind() != kind || all.Found[id] || all.Version > 0 && all.Version < l.version {
			return false
		}
		gone = append(gone, id)
		return true
	})
	return gone
}

// A List is the set of all objects of a kind at a version. Known objects that it does not have
// are gone.
type List struct {
	Found   map[api.ID]bool
	Version uint64
}
