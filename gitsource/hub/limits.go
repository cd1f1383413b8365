package hub

import (
	"fmt"
	"time"
)

// Limits limit the resources that a repository may use. A zero field means its default; only
// what exceeds a limit is a problem.
type Limits struct {
	// Files and directories below the path, whatever they hold; 50,000.
	Files int
	// FileSize of each file that is read, in bytes; 4 MiB.
	FileSize int64
	// Documents in one file; 1,000.
	Documents int
	// AliasExpansion is how many times larger a document may become when its
	// YAML aliases are expanded; 100.
	AliasExpansion int
	// Depth of the nesting of one document, and of directories; 100.
	Depth int
	// Objects in one commit, of every kind; 100,000.
	Objects int
	// CommitSize is how much memory the objects of one commit may take, in bytes;
	// 512 MiB.
	CommitSize int64
	// Builds of kustomizations in one commit; 5,000.
	Builds int
	// BuildInput is how much memory the files may take that one kustomization
	// reads, each as often as it is read, in bytes; 64 MiB.
	BuildInput int64
	// BuildTime of one kustomization; 60 seconds.
	BuildTime time.Duration
	// BuildOutput of one kustomization, as JSON in bytes; 10 MiB.
	BuildOutput int64
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

func (l Limits) withDefaults() Limits {
	fill(&l.Files, 50_000)
	fill(&l.FileSize, 4*mib)
	fill(&l.Documents, 1_000)
	fill(&l.AliasExpansion, 100)
	fill(&l.Depth, 100)
	fill(&l.Objects, 100_000)
	fill(&l.CommitSize, 512*mib)
	fill(&l.Builds, 5_000)
	fill(&l.BuildInput, 64*mib)
	fill(&l.BuildTime, 60*time.Second)
	fill(&l.BuildOutput, 10*mib)
	return l
}

func fill[T comparable](v *T, value T) {
	if *v == *new(T) {
		*v = value
	}
}

// Validate names the first field that is negative.
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

// bytesText writes a size as people do.
func bytesText(n int64) string {
	switch {
	case n >= mib && n%mib == 0:
		return fmt.Sprintf("%d MiB", n/mib)
	case n >= kib && n%kib == 0:
		return fmt.Sprintf("%d KiB", n/kib)
	}
	return fmt.Sprintf("%d bytes", n)
}
