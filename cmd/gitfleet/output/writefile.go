package output

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// WriteFile writes a file atomically: the file appears, or is replaced, once it is complete.
func WriteFile(name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".gitfleet-")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
