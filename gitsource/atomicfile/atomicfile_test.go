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
	if err := About(&fs.PathError{Op: "open", Path: "x-123", Err: fs.ErrPermission}, "x"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("the reason of %v is lost", err)
	}
	err := About(fmt.Errorf("receive: %w", &fs.PathError{Op: "write", Path: "x-123", Err: fs.ErrPermission}), "x")
	if err.Error() != "receive: write x: permission denied" || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("with what was being done: %v", err)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
