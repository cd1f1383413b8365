//go:build !unix

package filelock

import "os"

// errLocked is never returned.
var errLocked error

// lock does nothing on systems without a lock that the operating system releases when the process
// ends.
func lock(*os.File) error { return nil }

func unlock(*os.File) error { return nil }
