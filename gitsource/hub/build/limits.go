package build

import (
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

// Limits limit the kustomizations of a commit.
type Limits struct {
	// Documents limit the documents of each file.
	Documents document.Limits
	// Memory is the maximum memory for the kustomization files of a commit, in bytes.
	Memory int64
	// Input is the maximum memory for the files that one kustomization reads, in bytes. A file
	// counts each time it is read.
	Input int64
	// Time is the maximum duration of a build.
	Time time.Duration
	// Output is the maximum size of the result of a build as JSON, in bytes.
	Output int64
}
