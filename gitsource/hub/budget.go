package hub

import (
	"sync/atomic"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A budget is how much memory the decoded objects of a commit, or the files of a
// build, may take. Files are decoded at the same time, and all charge one budget:
// decoding stops when it is used up, not when all of it is there.
type budget struct {
	limit int64
	used  atomic.Int64
}

// charge takes from the budget, and reports whether it was enough.
func (b *budget) charge(bytes int64) bool { return b.used.Add(bytes) <= b.limit }

// exceeded reports whether more was taken than there was.
func (b *budget) exceeded() bool { return b.used.Load() > b.limit }

// What decoded values take in memory, roughly.
const (
	objectBytes = 1 * kib // an object beside its fields: its ID, origin and hash
	valueBytes  = 16
	mapBytes    = 320 // a map of up to eight entries
	entryBytes  = 64  // each entry of a larger one
	// chargedAt is how much a converter decodes before it charges the budget.
	chargedAt = 64 * kib
)

// spend counts what was decoded, and gives up once the budget is used up.
func (c *converter) spend(bytes int) {
	c.size += int64(bytes)
	if c.size-c.charged >= chargedAt {
		c.settle()
	}
}

// settle charges what was decoded and not charged yet.
func (c *converter) settle() {
	due := c.size - c.charged
	c.charged = c.size
	if c.budget != nil && !c.budget.charge(due) {
		c.gaveUp, c.cut = true, true
	}
}

// tooLarge refuses a commit whose objects take too much memory.
func (a *assembly) tooLarge(at api.Origin) {
	a.full = true
	a.problem(Error, at, "", "up to here the objects of the commit take more than %s of memory; split the repository, write fewer YAML aliases, or raise limits.commitSize", bytesText(a.limits.CommitSize))
}

// take adds what a file or a build holds, unless the commit is too large with it.
func (a *assembly) take(p *parsed) {
	if a.size += p.size; a.size > a.limits.CommitSize || p.cut != (api.Origin{}) {
		a.tooLarge(p.last())
		return
	}
	a.add(p)
}

// last is where the last thing stands that was decoded.
func (p *parsed) last() api.Origin {
	if p.cut != (api.Origin{}) {
		return p.cut
	}
	return p.end
}
