// Package filelock locks files of the state directory, so that only one process uses it.
package filelock

import (
	"errors"
	"os"
)

// ErrInUse says that another process has locked the file.
var ErrInUse = errors.New("another gitfleet uses this state directory")

// Open opens a file as os.OpenFile does, and locks it. The error is ErrInUse if another process has the lock. The
// operating system releases the lock when the file is closed or the process ends, for whatever reason.
func Open(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		if errors.Is(err, errLocked) {
			err = ErrInUse
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Release closes a file that is locked, whoever locked it, and releases the lock also if the file is still mapped into
// memory: closing it alone does not.
func Release(f *os.File) error { return errors.Join(unlock(f), f.Close()) }
