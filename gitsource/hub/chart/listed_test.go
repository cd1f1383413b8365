package chart

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
)

// bombFS has ten directories in each directory.
type bombFS struct{ fstest.MapFS }

func (b bombFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if !strings.Contains(name, "/files") {
		return b.MapFS.ReadDir(name)
	}
	var entries []fs.DirEntry
	for i := range 10 * min(1, max(0, 10-strings.Count(name, "/"))) {
		entries = append(entries, fs.FileInfoToDirEntry(directory(fmt.Sprint(i))))
	}
	return entries, nil
}

type directory string

func (d directory) Name() string     { return string(d) }
func (directory) Size() int64        { return 0 }
func (directory) Mode() fs.FileMode  { return fs.ModeDir }
func (directory) ModTime() time.Time { return time.Time{} }
func (directory) IsDir() bool        { return true }
func (directory) Sys() any           { return nil }

// Directories without files count, of which a commit can have any number.
func TestManyDirectoriesAreRefused(t *testing.T) {
	files := bombFS{fstest.MapFS{"web/Chart.yaml": {Data: []byte(metadata)}, "web/files/a": {}}}
	c, err := Read(tree.New(files, 1<<20), "web", limit.Limits{}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Render(usual); err == nil || !strings.Contains(err.Error(), "too many files and directories") {
		t.Errorf("got %v", err)
	}
}
