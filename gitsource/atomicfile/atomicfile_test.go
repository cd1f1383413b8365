package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A file is replaced as a whole or not at all, and no error has the name of a temporary file.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	say := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, failed := io.WriteString(w, text)
			return errors.Join(failed, err)
		}
	}
	closed := func(w io.Writer) error { return errors.Join(w.(io.Closer).Close(), say("x", nil)(w)) }
	name := filepath.Join(dir, "one")
	for _, step := range []struct {
		path    string
		write   func(io.Writer) error
		err     string
		content string
	}{
		{name, say("first", nil), "", "first"},
		{name, say("second", nil), "", "second"},
		{name, say("third", errors.New("the daemon has ended")), "the daemon has ended", "second"},
		{name, closed, "write " + name + ": file already closed\nsync " + name + ": file already closed\nclose " + name + ": file already closed", "second"},
		{name, func(io.Writer) error {
			_, err := os.Stat(filepath.Join(dir, "other"))
			return fmt.Errorf("export: %w", err)
		}, "export: stat " + filepath.Join(dir, "other") + ": no such file or directory", "second"},
		{taken, say("x", nil), "rename " + taken + ": file exists", "second"},
		{filepath.Join(dir, "no", "such"), say("x", nil), "open " + filepath.Join(dir, "no", "such") + ": no such file or directory", "second"},
	} {
		err := Write(step.path, step.write)
		if got := text(err); got != step.err {
			t.Errorf("%s: %q, want %q", step.path, got, step.err)
		}
		if got, _ := os.ReadFile(name); string(got) != step.content {
			t.Errorf("the file has %q, want %q", got, step.content)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v is left: %v", left, err)
	}
	if err := NotCreated(&fs.PathError{Op: "open", Path: "x-123", Err: fs.ErrPermission}, "x"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("the reason of %v is lost", err)
	}
	err := About(fmt.Errorf("receive: %w", &fs.PathError{Op: "write", Path: "x-123", Err: fs.ErrPermission}), "x-123", "x")
	if err.Error() != "receive: write x: permission denied" || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("with what was being done: %v", err)
	}
	err = About(fmt.Errorf("%w: read %w", fs.ErrInvalid, &fs.PathError{Op: "stat", Path: "x-123.idx", Err: fs.ErrPermission}), "x-123", "x")
	if err.Error() != "invalid argument: read stat x: permission denied" || !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("with two reasons: %v", err)
	}
	other := fmt.Errorf("base: %w", &fs.PathError{Op: "read", Path: "pack-1.pack", Err: fs.ErrInvalid})
	if About(other, "x-123", "x") != other {
		t.Error("an error about another file does not stay as it is")
	}
}

// What interrupted writes have left is removed, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "loading.json")
	for _, name := range []string{"loading.json", ".tmp-loading.json-1", ".tmp-loading.json-23", ".tmp-other.json-1"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(Sweep(path), Sweep(filepath.Join(dir, "no", "such"))); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 2 || left[0] != filepath.Join(dir, ".tmp-other.json-1") || left[1] != path {
		t.Errorf("%v is left: %v", left, err)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
