package observed

import (
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/compact"
)

// Objects are the objects that are known to exist.
type Objects struct {
	compact.Map[packedObject]
	text  int
	bytes int
}

// A View reads objects, and cannot change them.
type View struct{ objects *Objects }

// View returns a view of the objects as they are at any time.
func (ls *Objects) View() View { return View{ls} }

// Of returns what is known of an object; nil if nothing is.
func (v View) Of(id api.ID) *Object { return v.objects.Of(id) }

// Health returns the health of an object and its generation; ok is false if the object is not known.
func (v View) Health(id api.ID) (h health.Health, generation int64, ok bool) {
	return v.objects.Health(id)
}

// OwnershipState returns the ownership state of an object.
func (v View) OwnershipState(id api.ID) OwnershipState { return v.objects.OwnershipState(id) }

// An object takes about objectBytes, and restBytes more if there is no other one like it.
const (
	objectBytes = 200
	restBytes   = 400
)

// Bytes returns about how much memory all objects take, if no other cluster has objects of these names.
func (ls *Objects) Bytes() int { return ls.text + ls.bytes }

// sizeOf returns what an object takes besides its texts.
func (p *packedObject) sizeOf(id api.ID) int {
	if p == nil {
		return 0
	}
	size := objectBytes + len(id.Name) + len(id.Namespace)
	if rest := p.rest.Value(); rest.UID != "" || rest.Health.Message != "" || rest.Health.Failure != "" {
		size += restBytes
	}
	return size
}

// Text returns the size of the texts that are kept of all objects, in bytes.
func (ls *Objects) Text() int { return ls.text }

func (p *packedObject) text() int {
	if p == nil {
		return 0
	}
	rest := p.rest.Value()
	return rest.Text()
}

// A packedObject has the fields in which objects differ. rest has the others, which are often
// equal for other objects, and the UID if it cannot be packed.
type packedObject struct {
	uid        compact.UID
	version    uint64
	generation int64
	applied    int64
	others     uint64
	rest       unique.Handle[Object]
}

// Of returns what is known of an object; nil if nothing is.
func (ls Objects) Of(id api.ID) *Object {
	p := ls.Map.Of(id)
	if p == nil {
		return nil
	}
	o := p.rest.Value()
	o.UID, o.Version, o.Generation, o.Applied, o.Others = p.uid.Unpack(o.UID), p.version, p.generation, p.applied, p.others
	return &o
}

// Health returns the health of an object and its generation; ok is false if the object is not
// known. It is called for every object in every report.
func (ls Objects) Health(id api.ID) (h health.Health, generation int64, ok bool) {
	p := ls.Map.Of(id)
	if p == nil {
		return health.Health{}, 0, false
	}
	return p.rest.Value().Health, p.generation, true
}

// Put records an object.
func (ls *Objects) Put(id api.ID, l *Object) {
	rest := *l
	p := packedObject{version: l.Version, generation: l.Generation, applied: l.Applied, others: l.Others}
	rest.Version, rest.Generation, rest.Applied, rest.Others = 0, 0, 0, 0
	p.uid, rest.UID = compact.Pack(l.UID)
	p.rest = unique.Make(rest)
	old := ls.Map.Of(id)
	ls.text += p.text() - old.text()
	ls.bytes += p.sizeOf(id) - old.sizeOf(id)
	ls.Map.Put(id, p)
}

// Drop removes an object, if it is known.
func (ls *Objects) Drop(id api.ID) {
	old := ls.Map.Of(id)
	ls.text -= old.text()
	ls.bytes -= old.sizeOf(id)
	ls.Map.Drop(id)
}

// DropMissing drops the objects of a kind that a list does not have, and returns them.
func (ls *Objects) DropMissing(kind schema.GroupKind, all List) (gone []api.ID) {
	ls.Map.DropFunc(func(id api.ID, l *packedObject) bool {
		if id.GroupKind() != kind || all.Found[id] || all.Version > 0 && all.Version < l.version {
			return false
		}
		gone = append(gone, id)
		ls.text -= l.text()
		ls.bytes -= l.sizeOf(id)
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
