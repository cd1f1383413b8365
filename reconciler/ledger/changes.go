package ledger

import (
	"maps"
	"slices"
	"strings"
)

// changes are the changes of a ledger since it was saved.
type changes struct {
	dirty  map[string]bool // keys of the records to save, except those in added, and whether they are urgent
	urgent int             // the number of urgent ones
	// added are the clusters of entries that were added and not saved yet, by key; waiting are the keys of those that a
	// batch has left to the next one, by cluster.
	added   map[string]string
	addedOn map[string]int // their number by cluster
	waiting []string
	count   uint64 // changes that affect a plan
	recent  clusterLog
}

// next returns a new version.
func (c *changes) next() uint64 {
	c.count++
	return c.count
}

// A clusterLog lists the last changes of clusters.
type clusterLog struct {
	names  []string // the clusters whose records were replaced last, oldest first
	before uint64   // how many changes there were before them
}

// maxReplaced limits the list of clusters whose records were replaced.
const maxReplaced = 10_000

// replaced records that the record of a cluster was replaced, and that nothing else has changed about clusters.
func (c *clusterLog) replaced(name string) {
	if len(c.names) == maxReplaced {
		c.changed()
	}
	c.names = append(c.names, name)
}

// changed records that something has changed that may matter to any cluster.
func (c *clusterLog) changed() {
	c.before += uint64(len(c.names)) + 1
	c.names = nil
}

// Unsaved reports whether anything has to be saved.
func (c *changes) Unsaved() bool { return len(c.dirty)+len(c.added) > 0 }

// Urgent reports whether decisions or drift are not saved yet. They are saved in the turn that
// records them. Observations and the times of conditions alone may be saved later, but before works
// are sent; members report them again.
func (c *changes) Urgent() bool { return c.urgent+len(c.added) > 0 }

// Waits reports whether entries of a cluster wait for a later save.
func (c *changes) Waits(cluster string) bool { return c.addedOn[cluster] > 0 }

// UnsavedBesides reports whether anything has to be saved besides entries that may wait for a later save.
func (c *changes) UnsavedBesides() bool { return len(c.dirty) > 0 }

// markUrgent marks a record as unsaved and to be saved in the same turn.
func (c *changes) markUrgent(key string) {
	if _, added := c.added[key]; !added && !c.dirty[key] {
		c.dirty[key] = true
		c.urgent++
	}
}

func (c *changes) markUnsaved(key string) {
	_, added := c.added[key]
	if _, unsaved := c.dirty[key]; !added && !unsaved { // an urgent one stays urgent
		c.dirty[key] = false
	}
}

// add marks an entry that was added as unsaved.
func (c *changes) add(key, cluster string) {
	if c.added == nil {
		c.added, c.addedOn = map[string]string{}, map[string]int{}
	}
	c.clean(key) // that it was removed need not be saved any more
	if _, known := c.added[key]; !known {
		c.added[key] = cluster
		c.addedOn[cluster]++
	}
}

// drop ends the waiting of an entry.
func (c *changes) drop(key string) {
	if cluster, added := c.added[key]; added {
		delete(c.added, key)
		c.addedOn[cluster]--
	}
}

// clean ends that a record of dirty has to be saved.
func (c *changes) clean(key string) {
	if c.dirty[key] {
		c.urgent--
	}
	delete(c.dirty, key)
}

// maxRecords is about how many records are saved at once, which takes a file 50 ms or so. The first plan of a large fleet adds
// a hundred thousand entries.
const maxRecords = 1000

// batch returns the keys of the records to save next. These are all decisions that are not saved, except that entries that were
// added may wait for a later save, cluster by cluster: nothing is sent to a cluster before all of its entries are saved, so that
// after a crash it is as if the placements had not got there yet. Observations may be saved later, in any order: members report
// them again.
func (c *changes) batch(most int) []string {
	if len(c.dirty)+len(c.added) <= most {
		return c.unsavedKeys()
	}
	keys := make([]string, 0, most)
	for key, urgent := range c.dirty {
		if urgent {
			keys = append(keys, key)
		}
	}
	for key, urgent := range c.dirty {
		if len(keys) >= most {
			break
		}
		if !urgent {
			keys = append(keys, key)
		}
	}
	c.sortAdded()
	last := ""
	for len(c.waiting) > 0 {
		key := c.waiting[0]
		cluster, added := c.added[key]
		if added && cluster != last && last != "" && len(keys) >= most {
			break
		}
		c.waiting = c.waiting[1:]
		if added {
			keys, last = append(keys, key), cluster
		}
	}
	return keys
}

// sortAdded sorts the entries that were added by cluster, unless some wait already.
func (c *changes) sortAdded() {
	if len(c.waiting) > 0 {
		return
	}
	c.waiting = slices.SortedFunc(maps.Keys(c.added), func(a, b string) int {
		if by := strings.Compare(c.added[a], c.added[b]); by != 0 {
			return by
		}
		return strings.Compare(a, b)
	})
}

// unsavedKeys returns the keys of all records to save.
func (c *changes) unsavedKeys() []string {
	return slices.AppendSeq(slices.Collect(maps.Keys(c.dirty)), maps.Keys(c.added))
}

// saved marks records as saved.
func (c *changes) saved(keys []string) {
	for _, key := range keys {
		c.clean(key)
		c.drop(key)
	}
	if len(c.dirty) == 0 {
		c.dirty = map[string]bool{} // a large map keeps its memory
	}
	if len(c.added) == 0 {
		c.added, c.waiting, c.addedOn = nil, nil, nil
	}
}

// allSaved marks everything as saved.
func (c *changes) allSaved() { c.saved(c.unsavedKeys()) }
