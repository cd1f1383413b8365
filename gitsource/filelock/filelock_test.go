package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A file is locked until it is closed.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if _, err := Open(path, os.O_RDWR); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
	first, err := Open(path, os.O_CREATE|os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, os.O_RDWR); !errors.Is(err, ErrInUse) {
		t.Errorf("a locked file: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path, os.O_RDWR)
	if err != nil {
		t.Fatalf("after it was closed: %v", err)
	}
	again.Close()
}
