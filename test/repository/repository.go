// Package repository reads repositories that are written as txtar archives, and
// puts them on disk.
//
// The comment of an archive may have lines for what txtar cannot express:
//
//	! path NAME               the directory that is the hub
//	! limit NAME NUMBER       a limit
//	! symlink NAME TARGET     a symbolic link
//	! submodule NAME          a submodule
//	! quoted NAME             the file holds a Go string, in quotes
//	! fill NAME COUNT QUOTED  a file that repeats a text
package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

// A Repository is the files of an archive, and the settings with which to read them.
type Repository struct {
	// Files has a mode of fs.ModeSymlink for a link, with its target as data, and of
	// fs.ModeIrregular for a submodule.
	Files fstest.MapFS
	// Path is the directory that is the hub; empty means all.
	Path string
	// Limits are the values of limits by name, as in the configuration below "limits".
	Limits map[string]string
}

// Answer is the file of an archive with the expected output. It is not part of the
// repository.
const Answer = "want"

// Read reads an archive.
func Read(archive *txtar.Archive) (*Repository, error) {
	r := &Repository{Files: fstest.MapFS{}, Limits: map[string]string{}}
	for _, f := range archive.Files {
		if f.Name != Answer {
			r.Files[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
		}
	}
	for line := range strings.Lines(string(archive.Comment)) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "!" {
			if err := r.direct(words[1:], line); err != nil {
				return nil, fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
			}
		}
	}
	return r, nil
}

func (r *Repository) direct(words []string, line string) error {
	name := words[1]
	switch words[0] {
	case "path":
		r.Path = name
	case "limit":
		r.Limits[name] = words[2]
	case "symlink":
		r.Files[name] = &fstest.MapFile{Data: []byte(words[2]), Mode: fs.ModeSymlink | 0o777}
	case "submodule":
		r.Files[name] = &fstest.MapFile{Mode: fs.ModeIrregular}
	case "quoted":
		text, err := strconv.Unquote(strings.TrimSpace(string(r.Files[name].Data)))
		if err != nil {
			return err
		}
		r.Files[name].Data = []byte(text)
	case "fill":
		count, err := strconv.Atoi(words[2])
		if err != nil {
			return err
		}
		text, err := strconv.Unquote(strings.TrimSpace(line[strings.Index(line, `"`):]))
		if err != nil {
			return err
		}
		r.Files[name] = &fstest.MapFile{Data: []byte(strings.Repeat(text, count)), Mode: 0o644}
	default:
		return errors.New("unknown direction")
	}
	return nil
}

// Write puts the files into a directory, as a checkout that has not fetched its
// submodules. It returns the names of the submodules.
func (r *Repository) Write(dir string) (submodules []string, err error) {
	var modules strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		f, at := r.Files[name], filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return nil, err
		}
		switch {
		case f.Mode&fs.ModeSymlink != 0:
			err = os.Symlink(string(f.Data), at)
		case f.Mode&fs.ModeIrregular != 0:
			submodules = append(submodules, name)
			fmt.Fprintf(&modules, "[submodule %q]\n\tpath = %s\n\turl = https://git.example.com/%s\n", name, name, name)
			err = os.Mkdir(at, 0o755)
		default:
			err = os.WriteFile(at, f.Data, 0o644)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(submodules) == 0 {
		return nil, nil
	}
	return submodules, os.WriteFile(filepath.Join(dir, ".gitmodules"), []byte(modules.String()), 0o644)
}

// EachFile visits the files of all archives that match a pattern, as seeds of a fuzz test.
func EachFile(t testing.TB, pattern string, visit func(name string, data []byte)) {
	t.Helper()
	archives, err := filepath.Glob(pattern)
	if err != nil || len(archives) == 0 {
		t.Fatalf("%d archives, %v", len(archives), err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archive.Files {
			if file.Name != Answer {
				visit(file.Name, file.Data)
			}
		}
	}
}
