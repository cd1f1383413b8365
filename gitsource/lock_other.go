//go:build !unix

package gitsource

import "os"

// lock only opens the file on systems without a lock that the operating system releases when
// the process ends.
func lock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}
