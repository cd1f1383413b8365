//go:build !linux && !darwin

package diagnostics

// freeSpace is not known on this system.
func freeSpace(string) (int64, bool) { return 0, false }
