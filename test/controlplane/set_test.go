package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestTemporaryKeepsExistingFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "letters")
	if err := os.WriteFile(file, []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := up(t.Context(), upOptions{dir: dir, names: []string{"a"}, temporary: true, timeout: time.Second}, io.Discard)
	if err == nil {
		t.Error("took a user's directory for a temporary one")
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
