// Package limit limits what a repository may contain, and what loading it may cost.
package limit

import (
	"cmp"
	"fmt"
	"time"
)

// Limits limit what a repository may contain, and what loading it may cost. A zero field means
// its default, which is given at the end of each comment.
type Limits struct {
	// Files is the maximum number of files and directories below the path, of any kind; 50,000.
	Files int
	// FileSize is the maximum size of a file that is read, in bytes; 4 MiB.
	FileSize int64
	// Documents is the maximum number of YAML documents in a file; 1,000.
	Documents int
	// AliasExpansion is how many times larger a document may become when its YAML aliases are
	// expanded; 100.
	AliasExpansion int
	// Depth is the maximum nesting of a document, and of directories; 100.
	Depth int
	// Objects is the maximum number of objects of a commit, of every kind; 100,000.
	Objects int
	// CommitSize is the maximum memory for the objects of a commit, in bytes; 512 MiB.
	CommitSize int64
	// Builds is the maximum number of kustomizations of a commit that are built; 5,000.
	Builds int
	// BuildInput is the maximum memory for the files that one kustomization reads, each counted
	// as often as it is read, in bytes; 64 MiB.
	BuildInput int64
	// BuildTime is the maximum duration of the build of one kustomization; 60 seconds.
	BuildTime time.Duration
	// BuildOutput is the maximum size of the result of one build, as JSON in bytes; 10 MiB.
	BuildOutput int64
}

// WithDefaults returns the limits with all fields set.
func (l Limits) WithDefaults() Limits {
	l.Files = cmp.Or(l.Files, 50_000)
	l.FileSize = cmp.Or(l.FileSize, 4<<20)
	l.Documents = cmp.Or(l.Documents, 1_000)
	l.AliasExpansion = cmp.Or(l.AliasExpansion, 100)
	l.Depth = cmp.Or(l.Depth, 100)
	l.Objects = cmp.Or(l.Objects, 100_000)
	l.CommitSize = cmp.Or(l.CommitSize, 512<<20)
	l.Builds = cmp.Or(l.Builds, 5_000)
	l.BuildInput = cmp.Or(l.BuildInput, 64<<20)
	l.BuildTime = cmp.Or(l.BuildTime, 60*time.Second)
	l.BuildOutput = cmp.Or(l.BuildOutput, 10<<20)
	return l
}

// Size formats a number of bytes with a unit, for messages.
func Size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
