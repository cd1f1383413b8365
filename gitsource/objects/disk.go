package objects

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// writeFile replaces a file atomically.
func writeFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// listPacks returns the sorted names of the packs that have an index, and removes the files of
// interrupted fetches. An index is renamed into place last, so that a pack without one is
// incomplete.
func listPacks(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	present := map[string]bool{}
	for _, e := range entries {
		present[e.Name()] = true
	}
	var names []string
	for _, e := range entries {
		name, isPack := strings.CutSuffix(e.Name(), ".pack")
		index, isIndex := strings.CutSuffix(e.Name(), ".idx")
		switch {
		case isPack && present[name+".idx"]:
			names = append(names, name)
		case isIndex && present[index+".pack"]:
		default:
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	return names, nil
}
