package gitsource

import (
	"errors"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

var (
	// ErrUnknownCommit is returned for a commit that is not in the store.
	ErrUnknownCommit = errors.New("not in the store")
	// ErrTooLarge is returned if one of the Limits is exceeded.
	ErrTooLarge = objects.ErrTooLarge
	// ErrRefNotFound is returned when the remote does not have the reference.
	ErrRefNotFound = errors.New("not on the remote")
)

var errInUse = errors.New("another gitfleet uses this state directory")
