package watch

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/memory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// Changes collects the changes that watches report until they are drained. Only the latest
// state of an object is kept, so that the size is limited by the number of objects.
type Changes struct {
	mu        sync.Mutex
	collected Collected
	text      int   // the size of the texts of all that is collected
	counted   int   // what of that counts for the memory that all clusters share
	exceeded  error // the budget that the member has exceeded; nil if it has not
	memory    *memory.Share
	restored  string
	Wake      chan struct{} // capacity one
}

// Collected are the changes since the last drain. The lists precede everything else.
type Collected struct {
	Lists map[schema.GroupKind]observed.List
	Seen  map[api.ID]*observed.Object
	Gone  map[api.ID]*observed.Object
}

func newCollected() Collected {
	return Collected{Lists: map[schema.GroupKind]observed.List{}, Seen: map[api.ID]*observed.Object{}, Gone: map[api.ID]*observed.Object{}}
}

func newChanges(share *memory.Share) *Changes {
	return &Changes{collected: newCollected(), memory: share, Wake: make(chan struct{}, 1)}
}

// Exceed records that the member has exceeded its budget, as an error of connection.IsExceeded says.
// Nothing is recorded any more.
func (c *Changes) Exceed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exceed(err)
}

func (c *Changes) exceed(err error) {
	c.exceeded, c.collected, c.text = connection.Plain(err), newCollected(), 0
	_ = c.count()
	c.Notify()
}

// changeBytes is what is collected of a change besides its text, about.
const changeBytes = 500

// count counts what is collected for the memory that all clusters share.
func (c *Changes) count() error {
	now := c.text + changeBytes*(len(c.collected.Seen)+len(c.collected.Gone))
	more := now - c.counted
	c.counted = now
	return connection.Keep(c.memory, more)
}

// Exceeded returns the error of a member that has exceeded its budget; nil if it has not.
func (c *Changes) Exceeded() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exceeded
}

// record adds a change, unless the watch is retired.
func (c *Changes) record(by *Kind, change func(*Collected)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !by.retired && c.exceeded == nil {
		change(&c.collected)
		err := c.count()
		switch {
		case len(c.collected.Seen)+len(c.collected.Gone) > connection.MaxKeptItems:
			c.exceed(connection.Exceeded(connection.MaxKeptItems, "changed objects in its watches"))
		case c.text > connection.MaxKeptText:
			c.exceed(connection.Exceeded(connection.MaxKeptText>>20, "MiB of names and messages of changed objects in its watches"))
		case err != nil:
			c.exceed(err)
		}
		c.Notify()
	}
}

// replace sets the last state of an object in one of the maps, and removes it from the other one.
func (c *Changes) replace(in, from map[api.ID]*observed.Object, id api.ID, l *observed.Object) {
	for _, m := range []map[api.ID]*observed.Object{in, from} {
		if old := m[id]; old != nil {
			c.text -= textOf(id, old)
		}
	}
	delete(from, id)
	in[id] = l
	c.text += textOf(id, l)
}

func textOf(id api.ID, l *observed.Object) int { return len(id.Name) + len(id.Namespace) + l.Text() }

// retire makes Changes ignore a watch from now on.
func (c *Changes) retire(k *Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.retired = true
}

// Put records the state of an object that a watch has reported.
func (c *Changes) Put(by *Kind, id api.ID, l *observed.Object) {
	c.record(by, func(t *Collected) { c.replace(t.Seen, t.Gone, id, l) })
}

// Remove records that a watch has reported the deletion of an object, with its last state.
func (c *Changes) Remove(by *Kind, id api.ID, last *observed.Object) {
	c.record(by, func(t *Collected) { c.replace(t.Gone, t.Seen, id, last) })
}

// List records a complete list of a kind. Known objects that it does not have are gone.
func (c *Changes) List(by *Kind, l observed.List) {
	kind := by.GVK.GroupKind()
	c.record(by, func(t *Collected) {
		t.Lists[kind] = l
		maps.DeleteFunc(t.Seen, func(id api.ID, seen *observed.Object) bool {
			gone := id.GroupKind() == kind && !l.Found[id]
			if gone {
				c.text -= textOf(id, seen)
			}
			return gone
		})
	})
}

// SetRestored records why the cluster must have been restored to an earlier state, and wakes the receiver
// of Wake.
func (c *Changes) SetRestored(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restored = why
	c.Notify()
}

// Restored says why the cluster must have been restored to an earlier state; empty if nothing has shown
// that. Nothing that is known of the cluster is valid then.
func (c *Changes) Restored() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.restored
}

// Notify wakes the receiver of Wake, which drains the changes.
func (c *Changes) Notify() { wake(c.Wake) }

// wake sends to a channel of capacity one, unless that already has a value.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Drain returns the collected changes, and starts a new collection.
func (c *Changes) Drain() Collected {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.collected
	c.collected, c.text = newCollected(), 0
	_ = c.count() // it is less
	return t
}
