package gitsource

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// maxRemovedFiles is how many removed files are read to find out whether one was renamed.
const maxRemovedFiles = 20

// A Position is a line of a file, counted from one.
type Position struct {
	Path string
	Line int
}

// A HeadLine is where the head of a merge has a line of the merged files.
type HeadLine struct {
	// Line is the line in the head's file; zero if that does not have it.
	Line int
	// Added says that the head has added or changed the line since it left the base, so that a
	// forge shows it as added. It is false in a file that may have been renamed, of which forges
	// show other changes.
	Added bool
}

// HeadLines returns where the head has lines of the files that Merge has returned for the same
// commits, one for each position. Lines of files that are too large to be compared are not found.
func (r *Repo) HeadLines(ctx context.Context, base, head string, merged fs.FS, positions []Position) ([]HeadLine, error) {
	repo, sides, ancestor, err := r.mergeSides(ctx, base, head)
	if err != nil {
		return nil, err
	}
	l := headLines{
		before: &files{ctx: ctx, objects: repo, root: ancestor.Tree, commit: ancestor.Hash.String()},
		head:   &files{ctx: ctx, objects: repo, root: sides[1].Tree, commit: head},
		merged: merged, deadline: time.Now().Add(mergeTime),
	}
	tree := func(h plumbing.Hash) ([]object.TreeEntry, error) {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		return repo.tree(h)
	}
	changes, err := diffTrees(tree, ancestor.Tree, sides[1].Tree)
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		if c.to == "" {
			l.removed = append(l.removed, c.path)
		}
	}
	known := map[string][]HeadLine{}
	out := make([]HeadLine, len(positions))
	for i, p := range positions {
		if p.Line <= 0 || !fs.ValidPath(p.Path) {
			continue
		}
		lines, found := known[p.Path]
		if !found {
			if lines, err = l.file(p.Path); err != nil {
				return nil, err
			}
			known[p.Path] = lines
		}
		if p.Line <= len(lines) {
			out[i] = lines[p.Line-1]
		}
	}
	return out, nil
}

// mergeSides returns the two commits of a merge, and the newest one that both descend from.
func (r *Repo) mergeSides(ctx context.Context, base, head string) (repo reader, sides [2]*objects.Commit, ancestor *objects.Commit, err error) {
	var hashes [2]plumbing.Hash
	for i, s := range []string{base, head} {
		if hashes[i], err = objects.ParseHash(s); err != nil {
			return repo, sides, nil, err
		}
	}
	repo = r.reader(hashes[1])
	for i, h := range hashes {
		if sides[i], err = repo.commit(h); err != nil {
			return repo, sides, nil, err
		}
	}
	err = repo.withStore(func(st *objects.Store) (err error) {
		ancestor, err = mergeBase(ctx, st, sides[0], sides[1])
		return err
	})
	return repo, sides, ancestor, err
}

// headLines finds the lines of merged files in the head.
type headLines struct {
	before, head, merged fs.FS
	// removed are the paths that the head does not have any more.
	removed  []string
	deadline time.Time
}

// late reports whether nothing is compared any more.
func (l *headLines) late() bool { return time.Now().After(l.deadline) }

// file returns where the head has each line of a merged file; nil if it is not found out.
func (l *headLines) file(path string) ([]HeadLine, error) {
	if l.late() {
		return nil, nil
	}
	head, ok, err := readLines(l.head, path)
	if err != nil || !ok {
		return nil, err
	}
	merged, ok, err := readLines(l.merged, path)
	if err != nil || !ok {
		return nil, err
	}
	before, ok, err := readLines(l.before, path)
	if err != nil || !ok && exists(l.before, path) {
		return nil, err
	}
	renamed := false
	if !ok {
		if renamed, err = l.renamed(head); err != nil {
			return nil, err
		}
	}
	inHead := make([]HeadLine, len(head))
	for i := range inHead {
		inHead[i].Line = i + 1
	}
	changes, ok := diffLines(before, head, l.deadline)
	if !ok {
		return nil, nil
	}
	for _, c := range changes {
		for i := c.newFrom; i < c.newTo; i++ {
			inHead[i].Added = !renamed
		}
	}
	if changes, ok = diffLines(head, merged, l.deadline); !ok {
		return nil, nil
	}
	out := make([]HeadLine, 0, len(merged))
	at := 0
	for _, c := range changes {
		out = append(out, inHead[at:c.from]...)
		out = append(out, make([]HeadLine, c.newTo-c.newFrom)...)
		at = c.to
	}
	return append(out, inHead[at:]...), nil
}

// renamed reports whether an added file may have been another one before: it has many of the
// lines of one that was removed. A removed file that cannot be compared before the deadline counts
// as one.
func (l *headLines) renamed(added []string) (bool, error) {
	if len(l.removed) > maxRemovedFiles {
		return true, nil
	}
	for _, path := range l.removed {
		if l.late() {
			return true, nil
		}
		lines, ok, err := readLines(l.before, path)
		if err != nil {
			return false, err
		}
		if ok && similar(lines, added) {
			return true, nil
		}
	}
	return false, nil
}

// similar reports whether a third of the larger of two texts is in the other one too. Forges take
// a half for a rename.
func similar(one, other []string) bool {
	count, sizes, shared := map[string]int{}, [2]int{}, 0
	for _, line := range one {
		count[line]++
		sizes[0] += len(line)
	}
	for _, line := range other {
		sizes[1] += len(line)
		if count[line] > 0 {
			count[line]--
			shared += len(line)
		}
	}
	return shared*3 >= max(sizes[0], sizes[1])
}

// readLines returns the lines of a file; ok is false if there is none, or if it is not compared
// line by line.
func readLines(files fs.FS, path string) (lines []string, ok bool, err error) {
	info, err := fs.Lstat(files, path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxDiffBytes {
		return nil, false, ignoreAbsent(err)
	}
	content, err := fs.ReadFile(files, path)
	if errors.Is(err, ErrTooLarge) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	lines, ok = splitLines(content)
	return lines, ok, nil
}

func exists(files fs.FS, path string) bool {
	_, err := fs.Lstat(files, path)
	return err == nil
}

// ignoreAbsent returns an error unless it is that a file does not exist.
func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

var errNoBase = errors.New("their histories have no commit in common")

// mergeBase returns the newest common ancestor. If there are several, their trees must be
// equal.
func mergeBase(ctx context.Context, st *objects.Store, one, other *objects.Commit) (*objects.Commit, error) {
	bases, err := mergeBases(st, one, other, ctx.Err)
	switch {
	case err != nil:
		return nil, err
	case len(bases) == 0:
		return nil, errNoBase
	}
	for _, b := range bases[1:] {
		if b.Tree != bases[0].Tree {
			return nil, errors.New("their histories cross: merge the base into the branch")
		}
	}
	return bases[0], nil
}
