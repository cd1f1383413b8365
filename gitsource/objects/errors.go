package objects

import (
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
)

// ErrTooLarge is returned if a limit is exceeded.
var ErrTooLarge = errors.New("too large")

var errMissing = errors.New("missing from the store")

// A damageError is returned for an object of the store that is missing or cannot be read.
type damageError struct {
	hash plumbing.Hash
	err  error
}

func (e *damageError) Error() string { return fmt.Sprintf("object %s: %v", e.hash, e.err) }
func (e *damageError) Unwrap() error { return e.err }

// IsDamage reports whether an error is about a damaged store.
func IsDamage(err error) bool {
	var d *damageError
	return errors.As(err, &d)
}
