package ledger

import (
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Deletion lists the objects of a placement that a member has deleted in a row for the same
// reason.
type Deletion struct {
	At time.Time
	// Commit and Why are those of the work; see work.Cause.
	Commit, Why string
	// Objects are the first MostDeletedObjects of them; Total counts all.
	Objects []api.ID
	Total   int
}

// MostDeletedObjects is the maximum number of objects that a Deletion lists, and
// MostDeletions the maximum number of deletions in a report, which drops the oldest.
const (
	MostDeletedObjects = 5
	MostDeletions      = 20
)

// After returns the report with the deletions of an earlier report inserted before its own. The
// earlier report was never folded.
func (w WorkSeen) After(earlier WorkSeen) WorkSeen {
	all := slices.Concat(earlier.Deletions, w.Deletions)
	w.Deletions = all[max(0, len(all)-MostDeletions):]
	return w
}

// Deleted returns the deletions that an earlier report does not have. earlier may be nil.
func (w *WorkSeen) Deleted(earlier *WorkSeen) []Deletion {
	return slices.DeleteFunc(slices.Clone(w.Deletions), func(d Deletion) bool {
		return earlier != nil && slices.ContainsFunc(earlier.Deletions, d.equal)
	})
}

func (d Deletion) equal(o Deletion) bool {
	return d.At.Equal(o.At) && d.Commit == o.Commit && d.Why == o.Why && d.Total == o.Total && slices.Equal(d.Objects, o.Objects)
}
