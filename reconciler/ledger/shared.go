package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gitfleet/gitfleet/reconciler/ledger/segment"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
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
	deposed func() // called when a later term was found

	// The fields below belong to the goroutine that loads and saves.
	index    index
	version  string    // of the index; empty once somebody has deleted it
	next     int       // number of the next segment of this term
	verified time.Time // the last Verify
	// unsure is set while it is not known whether the last update of the index took effect.
	unsure bool
	// incomplete is set until all records are written again after the index or a segment was lost.
	incomplete bool
	// littered is set after an update of the index failed that may still take effect: segments are
	// left that it adds or removes.
	littered bool
}

// ErrDeposed is returned by writes after another replica has taken over the ledger.
var ErrDeposed = errors.New("another replica has taken over the ledger")

// OpenShared returns the store on objects. holder names this replica in the index. deposed
// is called when another replica is found to have taken over; it may be nil.
func OpenShared(objects Objects, holder string, deposed func()) *Shared {
	if deposed == nil {
		deposed = func() {}
	}
	return &Shared{objects: objects, holder: holder, deposed: deposed}
}

// Fleet implements Archive.
func (s *Shared) Fleet() (protocol.Fleet, error) {
	all, err := s.read()
	if err != nil {
		return protocol.Fleet{}, err
	}
	f, err := fleetOf(all.records)
	if err != nil {
		return protocol.Fleet{}, damagedShared(err.Error())
	}
	return f, nil
}

// Load begins a term, after which no other replica can save, and returns the saved ledger.
func (s *Shared) Load() (*Ledger, error) {
	all, err := s.takeOver(func(reading) error { return nil })
	if err != nil {
		return nil, err
	}
	l, err := all.ledger()
	if err != nil {
		return nil, err
	}
	s.sweep()
	return l, nil
}

// sweep deletes the segments of this and earlier terms that the index does not list. What cannot
// be deleted is left to the next term.
func (s *Shared) sweep() {
	names, err := s.objects.List()
	if err != nil {
		return
	}
	for _, name := range s.index.unlisted(names) {
		if term, ok := segment.TermOf(name); ok && term <= s.index.Term {
			_ = s.objects.Delete(name)
		}
	}
}

// takeOver makes this replica the writer, unless accept refuses the present content. The index
// is created before any segment, so that a lost index can be distinguished from a ledger that
// does not exist yet.
func (s *Shared) takeOver(accept func(reading) error) (reading, error) {
	for range readAttempts {
		all, err := s.read()
		if err != nil {
			return all, err
		}
		if err := accept(all); err != nil {
			return all, err
		}
		next := all.index
		next.Term++
		next.Holder = s.holder
		next.Schema = schema
		version, err := s.putIndex(next, all.version)
		if err == nil {
			s.index, s.version, s.next, s.unsure, s.incomplete, s.littered = next, version, 0, false, false, false
			return all, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return all, fmt.Errorf("take over the ledger: %w", err)
		}
	}
	return reading{}, errors.New("take over the ledger: another replica keeps writing it")
}

// putIndex replaces the index of a version; an empty version stands for no index.
func (s *Shared) putIndex(x index, version string) (newVersion string, err error) {
	raw, err := json.Marshal(x)
	if err != nil {
		return "", err
	}
	if version == "" {
		return s.objects.Create(indexName, raw)
	}
	return s.objects.Update(indexName, raw, version)
}

// Read returns the saved ledger, and begins no term: for those who look at a store from outside, as the simulation does to check
// what replicas have saved. Any goroutine of any replica may call it.
func (s *Shared) Read() (*Ledger, error) {
	all, err := s.read()
	if err != nil {
		return nil, err
	}
	return all.ledger()
}

// Save implements Store.
func (s *Shared) Save(l *Ledger) error {
	if !l.Unsaved() {
		return nil
	}
	if err := s.save(l); err != nil {
		return fmt.Errorf("save ledger: %w", err)
	}
	l.allSaved()
	return nil
}

func (s *Shared) save(l *Ledger) error {
	if err := s.settle(); err != nil {
		return err
	}
	kept := len(s.index.Segments)
	if s.incomplete {
		kept = 0
		markAll(l)
	}
	records, err := encode(l, l.unsavedKeys())
	if err != nil {
		return err
	}
	for size := segment.Size(records); kept > 0 && s.index.Segments[kept-1].Bytes <= 2*size; kept-- {
		size += s.index.Segments[kept-1].Bytes
	}
	if !s.incomplete {
		merged, err := s.readSegments(s.index.Segments[kept:])
		switch {
		case apierrors.IsNotFound(err) || IsDamaged(err):
			// Everything is written again, unless another replica has replaced the segments.
			s.incomplete, s.unsure = true, true
			return s.save(l)
		case err != nil:
			return err
		}
		maps.Copy(merged, records)
		records = merged
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
	id := segment.ID{Term: s.index.Term, Number: s.next}
	s.next++
	seg, parts, err := segment.Pack(id, records)
	if err != nil {
		return err
	}
	for n, part := range parts {
		if _, err := s.objects.Create(id.Part(n), part); err != nil {
			s.drop(segment.Segment{ID: id, Parts: n})
			return err
		}
	}
	next := s.index
	next.Segments = append(slices.Clone(s.index.Segments[:kept]), seg)
	replaced := s.index.Segments[kept:]
	if err := s.writeIndex(next); err != nil && !s.index.lists(id) {
		if !s.unsure && refused(err) {
			s.drop(seg)
		} else {
			s.littered = true
		}
		return err
	}
	for _, old := range replaced {
		s.drop(old)
	}
	if s.littered { // the index has a new version, so that no earlier update can take effect any more
		s.sweep()
		s.littered = false
	}
	return nil
}

// refused reports whether it is certain that an update of the index will not take effect. One
// that timed out may do so later, even after the index was read again.
func refused(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
}

func (s *Shared) writeIndex(next index) error {
	version, err := s.putIndex(next, s.version)
	if err != nil {
		s.unsure = true // it may have taken effect
		return errors.Join(err, s.settle())
	}
	s.index, s.version = next, version
	return nil
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
	case version == "": // the next save creates it again
		s.index.Segments, s.incomplete, s.littered = nil, true, true
	case x.Term != s.index.Term || x.Holder != s.holder:
		s.deposed()
		return ErrDeposed
	default:
		// An update of ours took effect late, or somebody has restored an earlier index: the segments
		// may not have what was saved since.
		s.incomplete = s.incomplete || !slices.Equal(x.Segments, s.index.Segments)
		s.index = x
	}
	s.version, s.unsure = version, false
	return nil
}

// drop deletes the objects of a segment. What cannot be deleted is left to the next term.
func (s *Shared) drop(seg segment.Segment) {
	for _, name := range seg.Names() {
		_ = s.objects.Delete(name)
	}
}

// verifyInterval is how often Verify lists the objects.
const verifyInterval = time.Minute

// Verify checks once a minute whether the objects of the ledger still exist, and returns the
// names of those that somebody has deleted. If there are any, l counts as unsaved, and the next
// Save writes all of it; the next leader would find a damaged ledger otherwise. If the objects
// cannot be listed, Verify returns nothing and checks again a minute later.
func (s *Shared) Verify(l *Ledger) (missing []string) {
	if s.unsure || s.version == "" || time.Since(s.verified) < verifyInterval {
		return nil
	}
	s.verified = time.Now()
	names, err := s.objects.List()
	if err != nil {
		return nil
	}
	missing = slices.DeleteFunc(s.index.objects(), func(name string) bool { return slices.Contains(names, name) })
	if slices.Contains(missing, indexName) {
		s.unsure = true // the next Save finds out whether another replica has begun one
	}
	if len(missing) > 0 {
		s.incomplete = true
		l.markUrgent(headKey)
	}
	return missing
}

// Contents describes what a shared ledger has stored, and how much space it needs.
type Contents struct {
	Placements int
	// Objects is the number of the index and of the parts of segments in it, Bytes their total
	// size, and Largest the size of the largest.
	Objects, Bytes, Largest int
	// Unused is the number of parts that the index does not list. The next leader deletes them.
	Unused int
}

// Contents reads the whole ledger and changes nothing. Any goroutine may call it.
func (s *Shared) Contents() (Contents, error) {
	var c Contents
	measured := &measuredObjects{s.objects, map[string]int{}}
	all, err := (&Shared{objects: measured}).read()
	if err != nil {
		return c, err
	}
	l, err := all.ledger()
	if err != nil {
		return c, err
	}
	names, err := s.objects.List()
	if err != nil {
		return c, err
	}
	c.Placements, c.Unused = len(l.Placements()), len(all.index.unlisted(names))
	if all.version == "" {
		return c, nil
	}
	for _, name := range all.index.objects() {
		c.Objects++
		c.Bytes += measured.sizes[name]
		c.Largest = max(c.Largest, measured.sizes[name])
	}
	return c, nil
}

// measuredObjects records the sizes of the objects that are read.
type measuredObjects struct {
	Objects
	sizes map[string]int
}

// Get implements Objects.
func (m *measuredObjects) Get(name string) ([]byte, string, error) {
	value, version, err := m.Objects.Get(name)
	m.sizes[name] = len(value)
	return value, version, err
}

// Export implements Archive.
func (s *Shared) Export(w io.Writer) error {
	all, err := s.read()
	if err != nil {
		return err
	}
	return export(w, all.records)
}

// Import implements Archive. It keeps no copy of the replaced data. A replica that writes the
// ledger is deposed, unless nothing is imported.
func (s *Shared) Import(r io.Reader, replace bool) error {
	records, err := parseBackup(r)
	if err != nil {
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
