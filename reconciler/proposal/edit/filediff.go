package edit

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// secretKinds matches files with Secrets. dataPatches matches files that patch data of an
// object whose kind may be in another file, unless configMaps matches, since ConfigMaps have
// data too.
var (
	secretKinds = regexp.MustCompile(`kind["']?\s*:\s*["']?Secret(List)?\b|secretGenerator|stringData`)
	dataPatches = regexp.MustCompile(`path["']?\s*:\s*["']?/data/`)
	configMaps  = regexp.MustCompile(`kind["']?\s*:\s*["']?ConfigMap\b`)
)

// mayHaveSecrets reports whether a file may contain values of Secrets.
func mayHaveSecrets(text []byte) bool {
	return secretKinds.Match(text) || dataPatches.Match(text) && !configMaps.Match(text)
}

// Diff returns the change as a unified diff; empty if the file may contain values of Secrets.
func (f FileChange) Diff() string {
	if mayHaveSecrets(f.Before) || mayHaveSecrets(f.After) {
		return ""
	}
	d := difflib.UnifiedDiff{FromFile: "a/" + f.Path, ToFile: "b/" + f.Path, Context: 3}
	if f.Before == nil {
		d.FromFile = "/dev/null"
	} else {
		d.A = lines(f.Before)
	}
	if f.After == nil {
		d.ToFile = "/dev/null"
	} else {
		d.B = lines(f.After)
	}
	text, _ := difflib.GetUnifiedDiffString(d) // writing to memory cannot fail
	return text
}

// lines splits a text into lines with their line breaks.
func lines(text []byte) []string {
	out := slices.Collect(strings.Lines(string(text)))
	if last := len(out) - 1; last >= 0 && !strings.HasSuffix(out[last], "\n") {
		out[last] += "\n\\ No newline at end of file\n"
	}
	return out
}
