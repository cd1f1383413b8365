//go:build unix

package filelock

import (
	"os"
	"syscall"
)

// errLocked is what lock returns if another process has the lock.
var errLocked error = syscall.EWOULDBLOCK

func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
