package crashguard

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// Two loads of one commit in one process count once. While the record has unfinished loads
// of an earlier process, commits are loaded one at a time.
func TestCrashesAreCountedOncePerProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "loading.json")
	log := slog.New(slog.DiscardHandler)
	crashWhileLoading := func(commits ...string) {
		g := New(path, log)
		g.oneAtATime = false // a third one would wait for the first
		for _, c := range commits {
			if _, err := g.Begin(c); err != nil {
				t.Fatalf("%s: %v", c, err)
			}
		}
	}
	crashWhileLoading("a", "a", "b")
	g := New(path, log)
	if !g.oneAtATime {
		t.Error("commits are loaded concurrently after a crash")
	}
	end, err := g.Begin("a")
	if err != nil {
		t.Fatal(err)
	}
	end()
	crashWhileLoading("b")
	g = New(path, log)
	if _, err := g.Begin("b"); !errors.Is(err, ErrFatal) {
		t.Errorf("b: %v", err)
	}
	if end, err := g.Begin("a"); err != nil {
		t.Errorf("a: %v", err)
	} else {
		end()
	}
	g.Reset()
	if _, err := g.Begin("b"); err != nil {
		t.Errorf("b after a reset: %v", err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(path, log).Begin("b"); err != nil {
		t.Errorf("a damaged record: %v", err)
	}
}

// If the record cannot be replaced, the load goes on, and no other file is left.
func TestAFailedWriteLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "loading.json")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := New(path, slog.New(slog.DiscardHandler)).Begin("a"); err != nil {
		t.Error(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 || !files[0].IsDir() {
		t.Errorf("files left: %v", files)
	}
}

// A write of the file that a crash has interrupted leaves nothing behind for good.
func TestInterruptedWritesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "loading.json")
	if err := os.WriteFile(filepath.Join(dir, ".tmp-loading.json-123"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	New(path, slog.New(slog.DiscardHandler))
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}
