package gitsource

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// blobs is an objectReader of files that counts the reads.
type blobs struct {
	objectReader
	contents map[plumbing.Hash][]byte
	reads    int
}

func (b *blobs) add(content string) object.TreeEntry {
	h := plumbing.ComputeHash(plumbing.BlobObject, []byte(content))
	b.contents[h] = []byte(content)
	return object.TreeEntry{Name: "a", Mode: filemode.Regular, Hash: h}
}

func (b *blobs) size(h plumbing.Hash) (int64, error) { return int64(len(b.contents[h])), nil }

func (b *blobs) object(_ plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	b.reads++
	return b.contents[h], nil
}

// A file that is too large to be merged is not read, and none is after the deadline.
func TestNoFileIsReadInVain(t *testing.T) {
	b := &blobs{contents: map[plumbing.Hash][]byte{}}
	base, one, other := b.add("1\n2\n3\n"), b.add("one\n2\n3\n"), b.add("1\n2\nthree\n")
	large := b.add(strings.Repeat("x", maxDiffBytes+1))
	tests := map[string]struct {
		base, one, other object.TreeEntry
		deadline         time.Time
		ok               bool
		reads            int
	}{
		"merged":           {base, one, other, later(), true, 3},
		"too late":         {base, one, other, time.Now().Add(-time.Second), false, 0},
		"too large before": {large, one, other, later(), false, 0},
		"too large here":   {base, large, other, later(), false, 0},
		"too large there":  {base, one, large, later(), false, 0},
	}
	for name, test := range tests {
		b.reads = 0
		_, ok, err := newMerger(b, test.deadline).file(test.base, test.one, test.other)
		if err != nil || ok != test.ok || b.reads != test.reads {
			t.Errorf("%s: merged %v, %v, after %d reads", name, ok, err, b.reads)
		}
	}
}

// The files that one merge makes are bounded together. The same content counts once.
func TestMergedFilesAreBounded(t *testing.T) {
	b := &blobs{contents: map[plumbing.Hash][]byte{}}
	m := newMerger(b, later())
	long := strings.Repeat("y", maxDiffBytes-100)
	merge := func(i int) bool {
		t.Helper()
		text := func(first, last string) object.TreeEntry {
			return b.add(fmt.Sprintf("%s\n%d%s\n%s\n", first, i, long, last))
		}
		_, ok, err := m.file(text("1", "1"), text("2", "1"), text("1", "2"))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	for range 2 * maxMergedBytes / maxDiffBytes {
		if !merge(0) {
			t.Fatal("the same files do not merge again")
		}
	}
	for i := range maxMergedBytes / maxDiffBytes {
		if !merge(i) {
			t.Fatalf("file %d does not merge", i)
		}
	}
	if merge(maxMergedBytes/maxDiffBytes) || m.mergedBytes < maxMergedBytes {
		t.Errorf("%d bytes and another file are merged", m.mergedBytes)
	}
}

// readCounter counts the files that are read.
type readCounter struct {
	fstest.MapFS
	reads int
}

func (c *readCounter) ReadFile(name string) ([]byte, error) {
	c.reads++
	return c.MapFS.ReadFile(name)
}

// No lines are looked for after the deadline, nor in files that are too large: whether one was
// renamed is not found out then, and it may have been.
func TestHeadLinesAreBounded(t *testing.T) {
	large := &fstest.MapFile{Data: bytes.Repeat([]byte("x\n"), maxDiffBytes)}
	small := &fstest.MapFile{Data: []byte("a\nb\n")}
	files := &readCounter{MapFS: fstest.MapFS{"large": large, "small": small}}
	if _, ok, err := readLines(files, "large"); ok || err != nil || files.reads > 0 {
		t.Errorf("a large file: %v, %v, %d reads", ok, err, files.reads)
	}
	l := headLines{before: files, head: files, merged: files, removed: []string{"small"}, deadline: time.Now().Add(-time.Second)}
	if lines, err := l.file("small"); lines != nil || err != nil || files.reads > 0 {
		t.Errorf("after the deadline: %v, %v, %d reads", lines, err, files.reads)
	}
	if renamed, err := l.renamed([]string{"c\n"}); !renamed || err != nil || files.reads > 0 {
		t.Errorf("after the deadline: renamed %v, %v, %d reads", renamed, err, files.reads)
	}
	l.deadline = later()
	if renamed, err := l.renamed([]string{"c\n"}); renamed || err != nil || files.reads != 1 {
		t.Errorf("before the deadline: renamed %v, %v, %d reads", renamed, err, files.reads)
	}
}
