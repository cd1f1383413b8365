//go:build !unix

package gitsource

import "os"

// lock only opens the file where there is no lock that ends with the process.
func lock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}
