package recent

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/gzipped"
	"github.com/gitfleet/gitfleet/reconciler/history"
)

// prefix begins the names of all shards. The ledger leaves such objects alone.
const prefix = "history-"

func isShard(name string) bool { return strings.HasPrefix(name, prefix) }

// rooms are how many entries of a kind are kept: about one placement, or about none. Other kinds are not kept.
var rooms = map[history.Kind]int{
	history.Placement: 20,
	history.Cluster:   60,
	history.Commit:    100,
	history.Action:    500,
}

// largestShard keeps an object well below the 1 MiB that an API server accepts.
const largestShard = 512 << 10

// A shard is one object.
type shard struct {
	entries []history.Entry // oldest first
	version string          // empty if the object does not exist
	changed bool
}

// add adds an entry, unless it is there, and drops the oldest of its kind beyond their room.
func (s *shard) add(e history.Entry) {
	if slices.Contains(s.entries, e) {
		return
	}
	at, _ := slices.BinarySearchFunc(s.entries, e, func(a, b history.Entry) int {
		if a.Time.After(b.Time) {
			return 1
		}
		return -1 // behind those of the same time
	})
	s.entries = slices.Insert(s.entries, at, e)
	s.changed = true
	s.limit(groupOf(e), rooms[e.Kind])
}

// A group are the entries that share a room.
type group struct {
	kind      history.Kind
	placement string
}

func groupOf(e history.Entry) group {
	if e.Kind == history.Action || e.Kind == history.Commit {
		return group{kind: e.Kind}
	}
	return group{e.Kind, e.Placement}
}

// limit drops the oldest entries of a group beyond a number.
func (s *shard) limit(g group, most int) {
	n := 0
	for _, e := range s.entries {
		if groupOf(e) == g {
			n++
		}
	}
	s.entries = slices.DeleteFunc(s.entries, func(e history.Entry) bool {
		if groupOf(e) != g || n <= most {
			return false
		}
		n--
		return true
	})
}

// shrink drops about a quarter of the entries of the largest group, the oldest first, so that the history of a placement to which
// little happens is not lost to that of the others. If each group has one entry, it drops the older half of all.
func (s *shard) shrink() {
	sizes := map[group]int{}
	most := 0
	for _, e := range s.entries {
		g := groupOf(e)
		sizes[g]++
		most = max(most, sizes[g])
	}
	if most <= 1 {
		s.entries = slices.Clone(s.entries[(len(s.entries)+1)/2:])
		return
	}
	for g, n := range sizes {
		if n == most {
			s.limit(g, most*3/4)
		}
	}
}

// encode returns the entries as compressed lines of JSON. If they are too large, it drops some; see shrink.
func (s *shard) encode() ([]byte, error) {
	for {
		raw, err := gzipped.Encode(func(w io.Writer) error {
			lines := json.NewEncoder(w)
			for i := range s.entries {
				if err := lines.Encode(&s.entries[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(raw) <= largestShard || len(s.entries) == 0 {
			return raw, err
		}
		s.shrink()
	}
}

// largestPlain limits what a shard decompresses to.
const largestPlain = 64 << 20

// decode returns the entries of an object. Fields of a later version are ignored.
func decode(raw []byte) ([]history.Entry, error) {
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	var all []history.Entry
	for lines := json.NewDecoder(io.LimitReader(z, largestPlain)); ; {
		var e history.Entry
		switch err := lines.Decode(&e); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, fmt.Errorf("read an entry: %w", err)
		}
		all = append(all, normalized(e))
	}
}

// normalized returns an entry as it is read again, so that entries can be compared.
func normalized(e history.Entry) history.Entry {
	e.Time = e.Time.UTC().Round(0).Truncate(time.Millisecond)
	return e
}
