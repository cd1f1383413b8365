package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Objects are small named values on an API server, such as the Secrets of a namespace.
// Errors are those of the API: NotFound, AlreadyExists, Conflict.
type Objects interface {
	Get(name string) (value []byte, version string, err error)
	Create(name string, value []byte) (version string, err error)
	// Update replaces a value if it still has the given version.
	Update(name string, value []byte, version string) (newVersion string, err error)
	Delete(name string) error
	// List returns the names of all values.
	List() ([]string, error)
}

// A Shared store keeps the ledger on an API server, for several replicas of which one writes.
//
// The changes between two saves are a segment: one or more objects that are written once. An
// index lists the current segments, oldest first. A save writes a segment and then the index,
// so that it takes effect completely or not at all. A new segment that is at least half as
// large as those before it is merged with them, so that there are few segments and each record
// is rewritten only rarely.
//
// Load begins a term, which the index records. A writer whose term has ended cannot change the
// index any more.
type Shared struct {
	objects Objects
	holder  string
	// deposed, if it is not nil, is called when a later term was found.
	deposed func()

	// The fields below belong to the goroutine that loads and saves.
	index   index
	version string // version of the index; empty once somebody has deleted it
	next    int    // number of the next segment of this term
	keys    map[segmentID]map[string]struct{}
	// unsure is set while it is not known whether the last update of the index took effect.
	unsure bool
	// incomplete is set when an object of the ledger was found missing, until all records are
	// written again. verified is the time of the last check.
	incomplete bool
	verified   time.Time
	// doubtful are segments that an update of the index adds or removes, although it failed:
	// the update may still take effect.
	doubtful []segment
}

// ErrDeposed is returned by writes after another replica has taken over the ledger.
var ErrDeposed = errors.New("another replica has taken over the ledger")

// OpenShared returns the store on objects. holder names this replica in the index. deposed
// is called when another replica is found to have taken over; it may be nil.
func OpenShared(objects Objects, holder string, deposed func()) *Shared {
	if deposed == nil {
		deposed = func() {}
	}
	return &Shared{objects: objects, holder: holder, deposed: deposed, keys: map[segmentID]map[string]struct{}{}}
}

// indexName is the name of the index, and segmentPrefix that with which the names of segments
// begin.
const indexName, segmentPrefix = "index", "segment-"

// An index lists the segments of the ledger.
type index struct {
	Schema int `json:"schema"`
	// Term counts the replicas that have taken over, and Holder is the last one.
	Term     int       `json:"term"`
	Holder   string    `json:"holder"`
	Segments []segment `json:"segments"`
}

// A segmentID is different for every segment, including those that a deposed replica has
// written without effect.
type segmentID struct {
	Term   int `json:"term"`
	Number int `json:"number"`
}

func (s segmentID) part(n int) string {
	return fmt.Sprintf("%s%d-%d-%d", segmentPrefix, s.Term, s.Number, n)
}

// Fleet implements Archive.
func (s *Shared) Fleet() (Fleet, error) {
	var f Fleet
	all, err := s.read()
	if err != nil {
		return f, err
	}
	if raw := all.records[fleetKey]; raw != nil {
		err = json.Unmarshal(raw, &f)
	}
	return f, err
}

// Load begins a term, after which no other replica can save, and returns the saved ledger.
func (s *Shared) Load() (*Ledger, error) {
	all, err := s.takeOver(func(reading) error { return nil })
	if err != nil {
		return nil, err
	}
	l, err := decode(all.records)
	if err != nil {
		return nil, damagedShared(err.Error())
	}
	if all.index.Schema != 0 && all.index.Schema < schema {
		for key := range all.records {
			l.markUnsaved(key)
		}
	}
	s.sweep()
	return l, nil
}

// takeOver makes this replica the writer, unless accept refuses the present content. The index
// is created before any segment, so that a lost index can be distinguished from a ledger that
// does not exist yet.
func (s *Shared) takeOver(accept func(reading) error) (reading, error) {
	var all reading
	for range readAttempts {
		var err error
		if all, err = s.read(); err != nil {
			return all, err
		}
		if err := accept(all); err != nil {
			return all, err
		}
		next := all.index
		next.Term++
		next.Holder = s.holder
		if all.version == "" {
			next.Schema = schema
		} // otherwise the segments keep their schema until they are written again
		raw, err := json.Marshal(next)
		if err != nil {
			return all, err
		}
		var version string
		if all.version == "" {
			version, err = s.objects.Create(indexName, raw)
		} else {
			version, err = s.objects.Update(indexName, raw, all.version)
		}
		if err == nil {
			s.index, s.version, s.keys, s.next, s.unsure, s.incomplete, s.doubtful = next, version, all.keys, 0, false, false, nil
			return all, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return all, fmt.Errorf("take over the ledger: %w", err)
		}
	}
	return all, errors.New("take over the ledger: another replica keeps writing it")
}

// sweep deletes the segments that the index does not list. The next term tries again to delete
// what cannot be deleted now.
func (s *Shared) sweep() {
	names, err := s.objects.List()
	if err != nil {
		return
	}
	for _, name := range s.index.unnamed(names) {
		_ = s.objects.Delete(name)
	}
}

// Newer returns the ledger if its version is not known, and nil if it is. Any goroutine of any
// replica may call it.
func (s *Shared) Newer(known string) (l *Ledger, version string, err error) {
	if _, version, err = s.readIndex(); err != nil || version == known {
		return nil, version, err
	}
	all, err := s.read()
	if err != nil {
		return nil, "", err
	}
	if l, err = decode(all.records); err != nil {
		return nil, "", damagedShared(err.Error())
	}
	return l, all.version, nil
}

// Save implements Store.
func (s *Shared) Save(l *Ledger) error {
	if len(l.dirty) == 0 {
		return nil
	}
	if err := s.save(l); err != nil {
		return fmt.Errorf("save ledger: %w", err)
	}
	l.saved()
	return nil
}

func (s *Shared) save(l *Ledger) error {
	if err := s.settle(); err != nil {
		return err
	}
	if s.version == "" { // somebody has deleted the index
		l.markAll()
	}
	if s.index.Schema != 0 && s.index.Schema < schema {
		s.index.Segments, s.keys = nil, map[segmentID]map[string]struct{}{} // all records are dirty
	}
	records, err := encode(l)
	if err != nil {
		return err
	}
	kept := len(s.index.Segments)
	if s.incomplete {
		kept = 0 // all records are dirty
	}
	for size := sizeOf(records); kept > 0; kept-- {
		last := s.index.Segments[kept-1]
		if last.Bytes > 2*size {
			break
		}
		for key := range s.keys[last.segmentID] {
			if _, ok := records[key]; ok {
				continue
			}
			if records[key], err = l.record(key); err != nil {
				return fmt.Errorf("encode ledger: %w", err)
			}
		}
		size += last.Bytes
	}
	if err := s.put(records, kept); err != nil {
		return err
	}
	s.incomplete = false
	return nil
}

// put writes records as a segment after the first kept segments, and replaces those behind
// them.
func (s *Shared) put(records map[string][]byte, kept int) error {
	if kept == 0 { // no earlier segment has the deleted records
		maps.DeleteFunc(records, func(_ string, value []byte) bool { return value == nil })
	}
	id := segmentID{s.index.Term, s.next}
	s.next++
	seg, parts, err := pack(id, records)
	if err != nil {
		return err
	}
	for n, part := range parts {
		if _, err := s.objects.Create(id.part(n), part); err != nil {
			s.drop(segment{segmentID: id, Parts: n})
			return err
		}
	}
	next := s.index
	next.Schema, next.Segments = schema, append(slices.Clone(s.index.Segments[:kept]), seg)
	replaced := s.index.Segments[kept:]
	keys := make(map[string]struct{}, len(records))
	for key := range records {
		keys[key] = struct{}{}
	}
	s.keys[id] = keys
	if err := s.writeIndex(next); err != nil && !s.index.names(id) {
		if !s.unsure && refused(err) {
			delete(s.keys, id)
			s.drop(seg)
		} else {
			s.doubtful = append(append(s.doubtful, seg), replaced...)
		}
		return err
	}
	// The index has a new version, so that no earlier update can take effect any more.
	for _, old := range append(s.doubtful, replaced...) {
		if !s.index.names(old.segmentID) {
			delete(s.keys, old.segmentID)
			s.drop(old)
		}
	}
	s.doubtful = nil
	return nil
}

// refused reports whether it is certain that an update of the index will not take effect. One
// that timed out may do so later, even after the index was read again.
func refused(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
}

func (s *Shared) writeIndex(next index) error {
	raw, err := json.Marshal(next)
	if err != nil {
		return err
	}
	var version string
	if s.version == "" {
		version, err = s.objects.Create(indexName, raw)
	} else {
		version, err = s.objects.Update(indexName, raw, s.version)
	}
	if err != nil {
		s.unsure = true // it may have taken effect
		return errors.Join(err, s.settle())
	}
	s.index, s.version = next, version
	return nil
}

// names reports whether the index lists a segment.
func (x *index) names(id segmentID) bool {
	return slices.ContainsFunc(x.Segments, func(s segment) bool { return s.segmentID == id })
}

// settle reads the index after an update whose result is not known.
func (s *Shared) settle() error {
	if !s.unsure {
		return nil
	}
	x, version, err := s.readIndex()
	switch {
	case err != nil:
		return err
	case version == "": // the next save creates it again, with all records
		s.doubtful = append(s.doubtful, s.index.Segments...)
		s.index.Segments = nil
	case x.Term != s.index.Term || x.Holder != s.holder || !s.knows(x):
		s.deposed()
		return ErrDeposed
	default:
		s.index = x
	}
	s.version, s.unsure = version, false
	return nil
}

// knows reports whether this replica has written or read all segments of an index.
func (s *Shared) knows(x index) bool {
	return !slices.ContainsFunc(x.Segments, func(seg segment) bool { return s.keys[seg.segmentID] == nil })
}

// parts returns the objects of all segments in the index.
func (x *index) parts() map[string]bool {
	parts := map[string]bool{}
	for _, seg := range x.Segments {
		for n := range seg.Parts {
			parts[seg.part(n)] = true
		}
	}
	return parts
}

// unnamed returns the objects among names that belong to segments which are not in the index.
func (x *index) unnamed(names []string) (unnamed []string) {
	parts := x.parts()
	for _, name := range names {
		if strings.HasPrefix(name, segmentPrefix) && !parts[name] {
			unnamed = append(unnamed, name)
		}
	}
	return unnamed
}

// drop deletes the objects of a segment. What cannot be deleted is left to the next term.
func (s *Shared) drop(seg segment) {
	for n := range seg.Parts {
		_ = s.objects.Delete(seg.part(n))
	}
}

// Export implements Archive.
func (s *Shared) Export(w io.Writer) error {
	all, err := s.read()
	if err != nil {
		return err
	}
	return export(w, all.records, time.Now())
}

// Import implements Archive. It keeps no copy of the replaced data. A replica that writes the
// ledger is deposed, unless nothing is imported.
func (s *Shared) Import(r io.Reader, replace bool) error {
	records, err := parseBackup(r)
	if err != nil {
		return err
	}
	if _, err := decode(records); err != nil {
		return err
	}
	_, err = s.takeOver(func(found reading) error {
		if n := len(found.records); n > 0 && !replace {
			return fmt.Errorf("the ledger in the management cluster is not empty: it has %d records; with --force they are replaced: export them first", n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.put(records, 0); err != nil {
		return fmt.Errorf("import ledger: %w", err)
	}
	return nil
}

// Close implements Store.
func (s *Shared) Close() error { return nil }
