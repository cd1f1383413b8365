// Package atomicfile replaces files by way of temporary ones, and keeps the names of those out of errors.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Write replaces a file atomically: the file appears, or is replaced, once it is complete and on the disk. Only its owner may
// read it. Errors of the file system name path.
func Write(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return About(err, path)
	}
	err = errors.Join(write(f), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return About(errors.Join(err, os.Remove(f.Name())), path)
	}
	return nil
}

// About returns an error of the file system about a temporary file as one about path. The name of a temporary file is another
// one each time, and tells nobody what to mend. Other errors stay as they are.
func About(err error, path string) error {
	switch e := err.(type) { //nolint:errorlint // what wraps an error is below
	case *fs.PathError:
		return &fs.PathError{Op: e.Op, Path: path, Err: e.Err}
	case *os.LinkError:
		return &fs.PathError{Op: e.Op, Path: path, Err: e.Err}
	case interface{ Unwrap() []error }:
		var all []error
		for _, err := range e.Unwrap() {
			all = append(all, About(err, path))
		}
		return errors.Join(all...)
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &wrapped{strings.ReplaceAll(err.Error(), e.Path, path), err}
	}
	return err
}

// A wrapped error is an error with another text.
type wrapped struct {
	text string
	err  error
}

func (w *wrapped) Error() string { return w.text }
func (w *wrapped) Unwrap() error { return w.err }
