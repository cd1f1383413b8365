// Package difftext writes differences of objects for people: fields with the names of items and YAML values, and whole
// objects as a unified diff.
package difftext

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/listitem"
	"github.com/gitfleet/gitfleet/reconciler/diff"
)

const (
	// context is the number of unchanged lines around a change.
	context = 3
	// largest is the size of an object as YAML in bytes above which it is not compared by line.
	largest = 256 << 10
)

// more is what stands for further fields after the last path of very many.
var more = regexp.MustCompile(` and \d+ more$`)

// Path returns the path of a difference with the names of items. The object is that in Git, as decoded from JSON; it
// may be nil.
func Path(object map[string]any, d api.Difference) string {
	rest := more.FindString(d.Path)
	pointer := strings.TrimSuffix(d.Path, rest)
	if pointer == "/" {
		return "the whole object" + rest
	}
	var added any
	if d.HubJSON == nil && d.MemberJSON != nil {
		_ = json.Unmarshal(d.MemberJSON, &added) // without it the item has its index
	}
	return listitem.Path(object, pointer, added) + rest
}

// Field returns the lines of a difference between Git and a cluster in the form of a diff:
//
//	  spec.template.spec.containers[web].image
//	- web:1
//	+ web:2
//
// The object is that in Git, as decoded from JSON; it may be nil. The lines may have any characters of the values.
func Field(object map[string]any, d api.Difference) []string {
	if more.MatchString(d.Path) { // its values stand for several
		d.HubJSON, d.MemberJSON = nil, nil
	}
	now := listitem.At(object, d.Path)
	_, isText := now.(string)
	isText = isText || now == nil && d.HubJSON == nil && d.MemberJSON == nil
	was, is := value(d.ValueInHub, d.HubJSON, isText), value(d.ValueInMember, d.MemberJSON, isText)
	out := []string{"  " + Path(object, d)}
	if slices.Equal(was, is) { // masked
		return slices.Concat(out, marked("- ", was), marked("+ ", is))
	}
	for i, group := range difflib.NewMatcher(was, is).GetGroupedOpCodes(context) {
		if i > 0 {
			out = append(out, "  …")
		}
		for _, op := range group {
			if op.Tag == 'e' {
				out = append(out, marked("  ", was[op.I1:op.I2])...)
				continue
			}
			out = slices.Concat(out, marked("- ", was[op.I1:op.I2]), marked("+ ", is[op.J1:op.J2]))
		}
	}
	return out
}

// marked returns the lines with a mark before each.
func marked(mark string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = mark + line
	}
	return out
}

// value returns the lines of a value as YAML; none if there is no value. What is masked, or not known exactly, is
// returned as its text.
func value(text string, exact []byte, isText bool) []string {
	var v any = text
	switch {
	case exact != nil:
		if err := json.Unmarshal(exact, &v); err != nil {
			v = text
		}
	case text == "":
		return nil
	case !isText || strings.Contains(text, diff.Mask):
		return strings.Split(text, "\n")
	}
	return lines(v)
}

// lines returns a value as lines of YAML without line breaks.
func lines(v any) []string {
	return strings.Split(strings.TrimSuffix(asYAML(v), "\n"), "\n")
}

// asYAML returns a value as YAML, in which long texts stay on one line.
func asYAML(v any) string {
	var b strings.Builder
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	e.CompactSeqIndent()
	if err := errors.Join(e.Encode(v), e.Close()); err != nil {
		return err.Error() // a value that was decoded from JSON can always be encoded
	}
	return b.String()
}

// Objects returns the difference of two versions of an object as a unified diff of their YAML, without a header. Values of
// Secrets are masked. It is empty if they differ only in what is not compared, or if they are too large.
func Objects(before, after *unstructured.Unstructured) string {
	was, is := diff.RedactChange(diff.Normalize(before), diff.Normalize(after))
	a, b := asYAML(was.Object), asYAML(is.Object)
	if max(len(a), len(b)) > largest {
		return ""
	}
	d := difflib.UnifiedDiff{Context: context, A: slices.Collect(strings.Lines(a)), B: slices.Collect(strings.Lines(b))}
	text, err := difflib.GetUnifiedDiffString(d)
	if err != nil {
		return "" // writing to memory cannot fail
	}
	return text
}
