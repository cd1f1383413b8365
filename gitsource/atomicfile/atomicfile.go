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
// read it. Errors about the temporary file name path; those of write about other files stay as they are.
func Write(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), prefix(path)+"*")
	if err != nil {
		return NotCreated(err, path)
	}
	err = errors.Join(write(f), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return About(errors.Join(err, os.Remove(f.Name())), f.Name(), path)
	}
	return nil
}

// prefix returns how the names of the temporary files of a path begin.
func prefix(path string) string { return ".tmp-" + filepath.Base(path) + "-" }

// Sweep removes the temporary files of calls of Write for path that the end of their process has interrupted. No call may be
// in progress.
func Sweep(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix(path)) {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(path), e.Name())))
		}
	}
	return err
}

// NotCreated returns the error of creating a temporary file or directory as one about path.
func NotCreated(err error, path string) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return About(err, e.Path, path)
	}
	return err
}

// About returns an error about a temporary file, or about its index with the suffix .idx, as one about path. The name of a
// temporary file is another one each time, and tells nobody what to mend. Other errors stay as they are.
func About(err error, temp, path string) error {
	if err == nil {
		return nil
	}
	// What is renamed has two names, of which the second one says enough.
	names := strings.NewReplacer("rename "+temp+".idx ", "rename ", "rename "+temp+" ", "rename ", temp+".idx", path, temp, path)
	if text := names.Replace(err.Error()); text != err.Error() {
		return &renamed{text, err}
	}
	return err
}

// A renamed error is an error with another text.
type renamed struct {
	text string
	err  error
}

func (r *renamed) Error() string { return r.text }
func (r *renamed) Unwrap() error { return r.err }
