//go:build linux || darwin

package diagnostics

import "syscall"

// freeSpace returns how many bytes a user may still write to the file system of a
// directory, and whether that is known.
func freeSpace(dir string) (int64, bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
