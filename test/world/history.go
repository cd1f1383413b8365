package world

import (
	"slices"
	"testing/fstest"

	"github.com/gitfleet/gitfleet/gitsource"
)

// A Version is a commit with its files.
type Version struct {
	gitsource.Commit
	Files fstest.MapFS
}

// Since returns the commits in which parts of files last changed, as Repo.Since of package gitsource does, in a history without
// merges, oldest commit first.
func Since(history []Version, parts []gitsource.FilePart, read func(string, []byte) map[string]string) map[gitsource.FilePart]gitsource.Commit {
	out := map[gitsource.FilePart]gitsource.Commit{}
	for _, part := range parts {
		text := read(part.Path, history[len(history)-1].Files[part.Path].Data)[part.Name]
		for _, v := range slices.Backward(history) {
			file := v.Files[part.Path]
			if file == nil || read(part.Path, file.Data)[part.Name] != text {
				break
			}
			out[part] = v.Commit
		}
	}
	return out
}
