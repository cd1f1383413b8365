// Package lockfile reads and writes the file of a repository that says exactly what comes from elsewhere.
//
// Read parses the file and reports what is wrong with it; File.Text returns its text, which is the same for the same
// entries.
package lockfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
)

// Name is the name of the file, in the directory that is the hub.
const Name = "gitfleet.lock.yaml"

// A File has what is locked.
type File struct {
	// Bases are the remote bases of kustomizations.
	Bases []Base `json:"bases,omitempty"`
}

// A Base is a repository at a reference, and the commit that is used.
type Base struct {
	URL string `json:"url"`
	// Ref is a branch, a tag or the beginning of a hash; empty means the default branch.
	Ref    string `json:"ref,omitempty"`
	Commit string `json:"commit"`
}

// String returns URL, with ?ref= if there is a reference.
func (b Base) String() string {
	if b.Ref == "" {
		return b.URL
	}
	return b.URL + "?ref=" + b.Ref
}

// Commit returns the commit that is locked for a reference; empty if there is none.
func (f File) Commit(url, ref string) string {
	i := slices.IndexFunc(f.Bases, func(b Base) bool { return b.URL == url && b.Ref == ref })
	if i < 0 {
		return ""
	}
	return f.Bases[i].Commit
}

const header = "# What comes from other repositories. Written by gitfleet lock; commit it.\n"

// Text returns the text of the file, sorted.
func (f File) Text() []byte {
	f.Bases = slices.Clone(f.Bases)
	slices.SortFunc(f.Bases, func(a, b Base) int { return cmp.Or(strings.Compare(a.URL, b.URL), strings.Compare(a.Ref, b.Ref)) })
	text, _ := yaml.Marshal(f) // strings can always be written
	return append([]byte(header), text...)
}

var commitHash = regexp.MustCompile(`^[0-9a-f]{40}$`)

// IsCommit reports whether a reference is a whole hash, which needs no lock.
func IsCommit(ref string) bool { return commitHash.MatchString(ref) }

// Read parses a file. Nothing of it is returned if there are problems.
func Read(name string, data []byte, limits limit.Limits) (File, problem.List) {
	var f File
	file := document.Read(name, data, limits, math.MaxInt64, func(r *document.Report, value any) {
		text, _ := json.Marshal(value)
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		var more File
		if err := decoder.Decode(&more); err != nil {
			r.Errorf(r.Object, "%s; run gitfleet lock, which writes the file", strings.TrimPrefix(err.Error(), "json: "))
			return
		}
		for i, b := range more.Bases {
			if b.URL == "" || !IsCommit(b.Commit) {
				r.Errorf(r.Field("bases").At(i), "must have the url of a repository, and a commit of 40 hexadecimal digits; run gitfleet lock")
			}
		}
		f.Bases = append(f.Bases, more.Bases...)
	})
	problems := file.Problems
	seen := map[string]bool{}
	for _, b := range f.Bases {
		if seen[b.String()] {
			problems = append(problems, problem.Problem{Severity: problem.Error, Message: fmt.Sprintf("%s is locked twice; remove one entry, or run gitfleet lock", b)})
			problems[len(problems)-1].Path = name
		}
		seen[b.String()] = true
	}
	if problems.HasErrors() {
		return File{}, problems
	}
	return f, problems
}
