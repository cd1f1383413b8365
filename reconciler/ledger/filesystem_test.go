package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An error of the file system is not damage: moving the file away would lose a good ledger.
func TestErrorsOfTheFileSystemAreNotDamage(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "ledger.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, openErr := Open(dir)
	_, inspectErr := Inspect(dir)
	_, resetErr := Reset(dir, true, time.Now())
	for _, err := range []error{openErr, inspectErr, resetErr} {
		if _, damaged := errors.AsType[*DamagedError](err); err == nil || damaged || !strings.Contains(err.Error(), "it is a directory and not a file, as when a volume is mounted there: remove it") {
			t.Errorf("a directory in place of the file: %v", err)
		}
	}
	for _, errno := range []syscall.Errno{syscall.EROFS, syscall.ENOSPC, syscall.EIO, syscall.EDQUOT, syscall.ENOMEM} {
		for _, err := range []error{fmt.Errorf("file resize error: %w", errno), &os.PathError{Op: "open", Path: "ledger.db", Err: errno}} {
			if !ofFileSystem(err) {
				t.Errorf("%v counts as damage", err)
			}
		}
	}
}
