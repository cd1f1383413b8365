// Package lockfile reads and writes the file of a repository that says exactly what comes from elsewhere.
//
// Read parses the file and reports what is wrong with it; File.Text returns its text, which is the same for the same
// entries.
package lockfile

import (
	"bytes"
	"cmp"
	"encoding/json"
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
	// Charts are the charts of registries and of chart repositories.
	Charts []Chart `json:"charts,omitempty"`
}

// A Base is a repository at a reference, and the commit that is used.
type Base struct {
	URL string `json:"url"`
	// Ref is a branch, a tag or the beginning of a hash; empty means the default branch.
	Ref    string `json:"ref,omitempty"`
	Commit string `json:"commit"`
}

// A Request is a chart as an object asks for it.
type Request struct {
	// Repository is oci://HOST/PATH, without the name of the chart, or the https:// address of a repository with an index.yaml.
	Repository string `json:"repository"`
	Name       string `json:"name"`
	// Version is a version, or a range of which the newest is locked.
	Version string `json:"version"`
}

// String returns REPOSITORY/NAME:VERSION.
func (r Request) String() string { return r.Repository + "/" + r.Name + ":" + r.Version }

// A Chart is a chart that was asked for, and which one is used.
type Chart struct {
	Request
	// Resolved is the version that is used.
	Resolved string `json:"resolved"`
	// Digest is that of the archive, sha256: and 64 hexadecimal digits.
	Digest string `json:"digest"`
	// URL is where the archive is; empty for one in a registry, which is found by its digest.
	URL string `json:"url,omitempty"`
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

// Chart returns what is locked for a chart; false if nothing is.
func (f File) Chart(r Request) (Chart, bool) {
	i := slices.IndexFunc(f.Charts, func(c Chart) bool { return c.Request == r })
	if i < 0 {
		return Chart{}, false
	}
	return f.Charts[i], true
}

const header = "# What comes from other repositories. Written by gitfleet lock; commit it.\n"

// Text returns the text of the file, sorted.
func (f File) Text() []byte {
	f.Bases = slices.Clone(f.Bases)
	slices.SortFunc(f.Bases, func(a, b Base) int { return cmp.Or(strings.Compare(a.URL, b.URL), strings.Compare(a.Ref, b.Ref)) })
	f.Charts = slices.Clone(f.Charts)
	slices.SortFunc(f.Charts, func(a, b Chart) int { return strings.Compare(a.String(), b.String()) })
	text, _ := yaml.Marshal(f) // strings can always be written
	return append([]byte(header), text...)
}

var (
	commitHash    = regexp.MustCompile(`^[0-9a-f]{40}$`)
	chartVersion  = regexp.MustCompile(`^[0-9A-Za-z.+-]+$`)
	archiveDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

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
		for i, c := range more.Charts {
			inRegistry := strings.HasPrefix(c.Repository, "oci://")
			if c.Repository == "" || c.Name == "" || !chartVersion.MatchString(c.Resolved) || !archiveDigest.MatchString(c.Digest) || inRegistry != (c.URL == "") {
				r.Errorf(r.Field("charts").At(i), "must have the repository, the name and the versions of a chart, the digest of its archive, and its url unless it is in a registry; run gitfleet lock")
			}
		}
		f.Bases, f.Charts = append(f.Bases, more.Bases...), append(f.Charts, more.Charts...)
	})
	problems := file.Problems
	var names []string
	for _, b := range f.Bases {
		names = append(names, b.String())
	}
	for _, c := range f.Charts {
		names = append(names, c.Request.String())
	}
	seen := map[string]bool{}
	for _, locked := range names {
		if seen[locked] {
			problems = append(problems, problem.Problem{Severity: problem.Error, Message: locked + " is locked twice; remove one entry, or run gitfleet lock"})
			problems[len(problems)-1].Path = name
		}
		seen[locked] = true
	}
	if problems.HasErrors() {
		return File{}, problems
	}
	return f, problems
}
