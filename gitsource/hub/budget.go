package hub

import (
	"sync/atomic"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A budget limits the memory for the decoded objects of a commit, or the files of a build.
// Files that are decoded concurrently share one budget: decoding stops when it is used up.
type budget struct {
	limit int64
	used  atomic.Int64
}

// charge takes from the budget, and reports whether it was enough.
func (b *budget) charge(bytes int64) bool { return b.used.Add(bytes) <= b.limit }

// exceeded reports whether more was used than the limit.
func (b *budget) exceeded() bool { return b.used.Load() > b.limit }

// The approximate memory of decoded values.
const (
	objectBytes = 1 * kib // an object without its fields: its ID, origin and hash
	valueBytes  = 16
	mapBytes    = 320 // a map of up to eight entries
	entryBytes  = 64  // each entry of a larger one
	// chargeEvery is how much a converter decodes between charges.
	chargeEvery = 64 * kib
)

// count counts decoded bytes, and stops once the budget is used up.
func (c *converter) count(bytes int) {
	c.size += int64(bytes)
	if c.size-c.charged >= chargeEvery {
		c.charge()
	}
}

// charge charges what was counted since the last charge.
func (c *converter) charge() {
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

// addParsed adds the items of a file or a build, unless the commit becomes too large.
func (a *assembly) addParsed(p *parsed) {
	if a.size += p.size; a.size > a.limits.CommitSize || p.cut != (api.Origin{}) {
		a.tooLarge(p.last())
		return
	}
	a.add(p)
}

// last is the position of the last decoded object.
func (p *parsed) last() api.Origin {
	if p.cut != (api.Origin{}) {
		return p.cut
	}
	return p.end
}
