package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gitfleet/gitfleet/reconciler/ledger/segment"
)

// indexName is the name of the index.
const indexName = "index"

// An index lists the segments of the ledger.
type index struct {
	Schema int `json:"schema"`
	// Term counts the replicas that have taken over, and Holder is the last one.
	Term     int               `json:"term"`
	Holder   string            `json:"holder"`
	Segments []segment.Segment `json:"segments"`
}

// lists reports whether the index lists a segment.
func (x *index) lists(id segment.ID) bool {
	return slices.ContainsFunc(x.Segments, func(s segment.Segment) bool { return s.ID == id })
}

// objects are the names of the index and of the parts of its segments.
func (x *index) objects() []string {
	names := []string{indexName}
	for _, seg := range x.Segments {
		names = append(names, seg.Names()...)
	}
	return names
}

// unlisted returns the parts of segments among names that are not in the index.
func (x *index) unlisted(names []string) []string {
	listed := x.objects()
	return slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, segment.Prefix) || slices.Contains(listed, name)
	})
}

// readIndex returns the index and its version, which is empty if there is none.
func (s *Shared) readIndex() (index, string, error) {
	raw, version, err := s.objects.Get(indexName)
	if apierrors.IsNotFound(err) {
		return index{}, "", nil
	}
	if err != nil {
		return index{}, "", fmt.Errorf("read ledger: %w", err)
	}
	var x index
	err = json.Unmarshal(raw, &x)
	if err != nil && x.Schema <= schema { // the index of a newer version may have another form
		return x, "", damagedShared("its index cannot be read: " + err.Error())
	}
	if err := checkSchema(x.Schema); err != nil {
		return x, "", fmt.Errorf("read ledger: %w", err)
	}
	return x, version, nil
}

// A reading is the result of reading a ledger.
type reading struct {
	index   index
	version string // of the index
	records map[string][]byte
}

func (all reading) ledger() (*Ledger, error) {
	l, err := decode(all.records)
	switch {
	case ofAnotherVersion(err):
		return nil, err
	case err != nil:
		return nil, damagedShared(err.Error())
	}
	return l, nil
}

// readAttempts limits how often a reader starts again because segments were merged while it
// read. It pauses for readPause before each attempt.
const readAttempts, readPause = 5, 200 * time.Millisecond

// read returns a consistent set of all records. If a segment is missing, it reads again: if the
// index has changed since, the segment was merged into another, and otherwise it is lost.
func (s *Shared) read() (all reading, err error) {
	for n := range readAttempts {
		before := all.version
		all, err = s.readOnce()
		switch {
		case !apierrors.IsNotFound(err) && !errors.Is(err, errNoIndex):
			return all, err
		case n > 0 && all.version == before:
			return all, damagedShared(err.Error())
		}
		time.Sleep(readPause)
	}
	return all, fmt.Errorf("%w: the ledger keeps changing while it is read", err)
}

// errNoIndex is the error about a ledger that has segments but no index.
var errNoIndex = errors.New("its index is missing")

func (s *Shared) readOnce() (reading, error) {
	x, version, err := s.readIndex()
	all := reading{x, version, nil}
	if err == nil && version == "" {
		// The index is created before any segment.
		var names []string
		if names, err = s.objects.List(); err != nil {
			err = fmt.Errorf("read ledger: %w", err)
		} else if len(x.unlisted(names)) > 0 {
			err = errNoIndex
		}
	}
	if err == nil {
		all.records, err = s.readSegments(x.Segments)
	}
	maps.DeleteFunc(all.records, func(_ string, value []byte) bool { return value == nil })
	return all, err
}

// readSegments returns the records of segments, oldest first. The value of a deleted record is
// nil. The newest segment is read first, since the next save replaces it first.
func (s *Shared) readSegments(segments []segment.Segment) (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, seg := range slices.Backward(segments) {
		records, err := s.readSegment(seg)
		if err != nil {
			return nil, err
		}
		maps.Copy(records, all)
		all = records
	}
	return all, nil
}

// readSegment returns the records of a segment. The value of a deleted record is nil.
func (s *Shared) readSegment(seg segment.Segment) (map[string][]byte, error) {
	var joined []byte
	for _, name := range seg.Names() {
		part, _, err := s.objects.Get(name)
		if err != nil {
			return nil, fmt.Errorf("read ledger: %w", err)
		}
		joined = append(joined, part...)
	}
	records, err := seg.Unpack(joined)
	if err != nil {
		return nil, damagedShared(err.Error())
	}
	return records, nil
}
