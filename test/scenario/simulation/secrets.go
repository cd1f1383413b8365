package simulation

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// secrets are the Secrets of a shared ledger, in a management cluster that may be down. They
// implement ledger.Objects; the caller holds the lock of the world.
type secrets struct {
	values   map[string][]byte
	versions map[string]int
	clock    int
	// down says that there are no responses after left more writes; the response to the last of
	// them is lost.
	down bool
	left int
}

var secretResource = schema.GroupResource{Resource: "secrets"}

var errNoAnswer = errors.New("the management cluster does not answer")

func newSecrets() *secrets { return &secrets{values: map[string][]byte{}, versions: map[string]int{}} }

// cutOff makes the management cluster unreachable after some writes.
func (s *secrets) cutOff(left int) { s.down, s.left = true, left }

// Get implements ledger.Objects.
func (s *secrets) Get(name string) ([]byte, string, error) {
	if s.down && s.left == 0 {
		return nil, "", errNoAnswer
	}
	value, ok := s.values[name]
	if !ok {
		return nil, "", apierrors.NewNotFound(secretResource, name)
	}
	return bytes.Clone(value), strconv.Itoa(s.versions[name]), nil
}

// List implements ledger.Objects.
func (s *secrets) List() ([]string, error) {
	if s.down && s.left == 0 {
		return nil, errNoAnswer
	}
	return slices.Sorted(maps.Keys(s.values)), nil
}

// Create implements ledger.Objects.
func (s *secrets) Create(name string, value []byte) (string, error) {
	return s.write(func() error {
		if s.values[name] != nil {
			return apierrors.NewAlreadyExists(secretResource, name)
		}
		s.put(name, value)
		return nil
	})
}

// Update implements ledger.Objects.
func (s *secrets) Update(name string, value []byte, version string) (string, error) {
	return s.write(func() error {
		switch {
		case s.values[name] == nil:
			return apierrors.NewNotFound(secretResource, name)
		case strconv.Itoa(s.versions[name]) != version:
			return apierrors.NewConflict(secretResource, name, errors.New("it was changed"))
		}
		s.put(name, value)
		return nil
	})
}

// Delete implements ledger.Objects.
func (s *secrets) Delete(name string) error {
	_, err := s.write(func() error { delete(s.values, name); return nil })
	return err
}

func (s *secrets) put(name string, value []byte) {
	s.values[name], s.versions[name] = bytes.Clone(value), s.clock
}

func (s *secrets) write(do func() error) (string, error) {
	if s.down && s.left == 0 {
		return "", errNoAnswer
	}
	s.clock++
	err := do()
	if s.down {
		if s.left--; s.left == 0 {
			return "", errNoAnswer
		}
	}
	return strconv.Itoa(s.clock), err
}

// A client is the client of one replica: the replica may be stopped before each write.
type client struct{ d *daemon }

// Get implements ledger.Objects.
func (c client) Get(name string) ([]byte, string, error) {
	secrets, done := c.begin()
	defer done()
	return secrets.Get(name)
}

// List implements ledger.Objects.
func (c client) List() ([]string, error) {
	secrets, done := c.begin()
	defer done()
	return secrets.List()
}

// Create implements ledger.Objects.
func (c client) Create(name string, value []byte) (string, error) {
	secrets, done := c.beginWrite()
	defer done()
	return c.written(name)(secrets.Create(name, value))
}

// Update implements ledger.Objects.
func (c client) Update(name string, value []byte, version string) (string, error) {
	secrets, done := c.beginWrite()
	defer done()
	return c.written(name)(c.d.w.mutant.updates(secrets, name, value, version))
}

// Delete implements ledger.Objects.
func (c client) Delete(name string) error {
	secrets, done := c.beginWrite()
	defer done()
	return secrets.Delete(name)
}

// begin waits until the process runs, and takes the lock.
func (c client) begin() (s *secrets, done func()) {
	c.d.waitWhileStopped()
	c.d.w.mu.Lock()
	return c.d.w.replicas.secrets, c.d.w.mu.Unlock
}

// beginWrite is begin for a write, before which the process may be stopped.
func (c client) beginWrite() (s *secrets, done func()) {
	c.d.w.mu.Lock()
	if c.d.stopIn > 0 {
		if c.d.stopIn--; c.d.stopIn == 0 {
			c.d.stopNow()
		}
	}
	c.d.w.mu.Unlock()
	return c.begin()
}

// written checks a write that was made: a former leader may write a segment that nothing names,
// but not the index.
func (c client) written(name string) func(string, error) (string, error) {
	return func(version string, err error) (string, error) {
		if err == nil && name == "index" && c.d.former {
			c.d.w.violate(invariantTerm, "it wrote version %s", version)
		}
		return version, err
	}
}
