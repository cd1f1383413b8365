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

	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
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
	kin := func(o history.Entry) bool { return o.Kind == e.Kind && o.Placement == e.Placement }
	if e.Kind == history.Action || e.Kind == history.Commit {
		kin = func(o history.Entry) bool { return o.Kind == e.Kind }
	}
	n := 0
	for i := range s.entries {
		if kin(s.entries[i]) {
			n++
		}
	}
	if n > rooms[e.Kind] {
		first := slices.IndexFunc(s.entries, kin)
		s.entries = slices.Delete(s.entries, first, first+1)
	}
}

// encode returns the entries as compressed lines of JSON. If they are too large, the older half of them is dropped.
func (s *shard) encode() ([]byte, error) {
	for {
		raw, err := ledger.Compress(func(w io.Writer) error {
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
		s.entries = slices.Clone(s.entries[(len(s.entries)+1)/2:])
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
