package output

import (
	"bytes"
	"io"
)

// LibraryLog returns the destination of what libraries log with package log, one line a write. It
// drops the lines that kustomize logs about its variables, since they may contain values of
// Secrets, and that about the order of resources, since it is about a flag that nobody has set.
func LibraryLog(w io.Writer) io.Writer { return libraryLog{w} }

type libraryLog struct{ io.Writer }

// Write implements io.Writer for one line.
func (l libraryLog) Write(line []byte) (int, error) {
	for _, known := range []string{
		"well-defined vars that were never replaced", "MakePrimitiveReplacer: bad replacement", "Warning: Sorting order is set both",
	} {
		if bytes.Contains(line, []byte(known)) {
			return len(line), nil
		}
	}
	return l.Writer.Write(line)
}
