package hub

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
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

const (
	kib = 1 << 10
	mib = 1 << 20
)

func (l Limits) withDefaults() Limits {
	l.Files = cmp.Or(l.Files, 50_000)
	l.FileSize = cmp.Or(l.FileSize, 4*mib)
	l.Documents = cmp.Or(l.Documents, 1_000)
	l.AliasExpansion = cmp.Or(l.AliasExpansion, 100)
	l.Depth = cmp.Or(l.Depth, 100)
	l.Objects = cmp.Or(l.Objects, 100_000)
	l.CommitSize = cmp.Or(l.CommitSize, 512*mib)
	l.Builds = cmp.Or(l.Builds, 5_000)
	l.BuildInput = cmp.Or(l.BuildInput, 64*mib)
	l.BuildTime = cmp.Or(l.BuildTime, 60*time.Second)
	l.BuildOutput = cmp.Or(l.BuildOutput, 10*mib)
	return l
}

// documents returns the limits of the documents of one file.
func (l Limits) documents() document.Limits {
	return document.Limits{Documents: l.Documents, AliasExpansion: l.AliasExpansion, Depth: l.Depth}
}

// builds returns the limits of the kustomizations of a commit.
func (l Limits) builds() build.Limits {
	return build.Limits{
		Documents: l.documents(), Memory: l.CommitSize, Input: l.BuildInput, Time: l.BuildTime, Output: l.BuildOutput,
	}
}

// Validate returns an error that names the first negative field.
func (l Limits) Validate() error {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"files", int64(l.Files)},
		{"fileSize", l.FileSize},
		{"documents", int64(l.Documents)},
		{"aliasExpansion", int64(l.AliasExpansion)},
		{"depth", int64(l.Depth)},
		{"objects", int64(l.Objects)},
		{"commitSize", l.CommitSize},
		{"builds", int64(l.Builds)},
		{"buildInput", l.BuildInput},
		{"buildTime", int64(l.BuildTime)},
		{"buildOutput", l.BuildOutput},
	} {
		if f.value < 0 {
			return fmt.Errorf("limits.%s: must not be negative", f.name)
		}
	}
	return nil
}
