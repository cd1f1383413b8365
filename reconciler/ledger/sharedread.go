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
)

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
	if err := json.Unmarshal(raw, &x); err != nil {
		return x, "", damagedShared("its index cannot be read: " + err.Error())
	}
	if x.Schema > schema {
		return x, "", fmt.Errorf("read ledger: %w", newerError(x.Schema, ""))
	}
	if err := checkOldest(x.Schema, ": stop the replicas and delete the Secrets of the ledger"); x.Schema != 0 && err != nil {
		return x, "", fmt.Errorf("read ledger: %w", err)
	}
	return x, version, nil
}

// A DamagedSharedError says that the objects of a ledger are missing or inconsistent.
type DamagedSharedError struct{ Why string }

func (e *DamagedSharedError) Error() string {
	return "the ledger in the management cluster is damaged (" + e.Why + "): delete its Secrets, and it is rebuilt from what the members hold"
}

func damagedShared(why string) error { return &DamagedSharedError{why} }

// readAttempts limits how often a reader starts again because segments were merged while it
// read. It pauses for readPause before each attempt.
const readAttempts, readPause = 5, 200 * time.Millisecond

// read returns a consistent set of all records, the keys of each segment, and the version of
// the index. If a segment is missing, it reads again: if the index has changed since, the
// segment was merged into another, and otherwise it is lost.
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

// A reading is the result of reading a ledger.
type reading struct {
	index   index
	version string
	records map[string][]byte
	keys    map[segmentID]map[string]struct{}
}

func (s *Shared) readOnce() (reading, error) {
	x, version, err := s.readIndex()
	all := reading{x, version, map[string][]byte{}, map[segmentID]map[string]struct{}{}}
	if err == nil && version == "" {
		err = s.unbegun()
	}
	if err != nil {
		return all, err
	}
	for _, seg := range slices.Backward(x.Segments) { // the newest segment is replaced first
		records, err := s.readSegment(seg)
		if err != nil {
			return all, err
		}
		keys := make(map[string]struct{}, len(records))
		for key, value := range records {
			keys[key] = struct{}{}
			if _, newer := all.records[key]; !newer {
				all.records[key] = value
			}
		}
		all.keys[seg.segmentID] = keys
	}
	maps.DeleteFunc(all.records, func(_ string, value []byte) bool { return value == nil })
	return all, nil
}

// errNoIndex is the error about a ledger that has segments but no index.
var errNoIndex = errors.New("its index is missing")

// unbegun returns errNoIndex if there are segments, since the index is created before them.
func (s *Shared) unbegun() error {
	names, err := s.objects.List()
	if err != nil {
		return fmt.Errorf("read ledger: %w", err)
	}
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, segmentPrefix) }) {
		return errNoIndex
	}
	return nil
}
