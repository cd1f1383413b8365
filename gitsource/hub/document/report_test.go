package document

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

const listText = `kind: List
items:
- metadata:
    name: a
- metadata: &m
    name: b
- metadata: *m
  single:
  - key: c
  mapping:
    key: d
`

// reportOf returns the report of a document that begins at the sixth line of its file.
func reportOf(t *testing.T, text string) *Report {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return &Report{Origin: api.Origin{Path: "a.yaml", Line: 6, Document: 2}, Root: doc.Content[0], LinesBefore: 5}
}

// A problem has the line of its field, or of the nearest parent that exists.
func TestLineOf(t *testing.T) {
	r := reportOf(t, listText)
	var top *FieldPath
	for _, test := range []struct {
		path *FieldPath
		line int
	}{
		{top, 6},
		{top.Child("kind"), 6},
		{top.Child("items"), 7},
		{top.Child("items").At(1), 10},
		{top.Child("items").At(1).Child("metadata", "name"), 11},
		{top.Child("items").At(1).Child("metadata", "namespace"), 10}, // missing
		{top.Child("items").At(1).Child("spec", "a", "b"), 10},        // missing
		{top.Child("items").At(3), 7},                                 // missing
		{top.Child("items").At(2).Child("metadata", "name"), 11},      // through the alias
		{top.Child("items").At(2).Child("single", "key"), 14},         // a list that is decoded as a mapping
		{top.Child("items").At(2).Child("mapping").At(0).Child("key"), 16},
		{top.Child("none"), 6},
	} {
		if got := r.LineOf(test.path); got != test.line {
			t.Errorf("%s is on line %d, want %d", test.path, got, test.line)
		}
		r.RecordLine(test.path)
		if got := r.Lines[test.path.String()]; got != test.line {
			t.Errorf("line %d was recorded of %s, want %d", got, test.path, test.line)
		}
	}
	if got := (&Report{Origin: api.Origin{Line: 4}}).LineOf(top.Child("kind")); got != 4 {
		t.Errorf("without the document the line is %d, want that of the document", got)
	}
}

// The report of an item of a list has the fields and lines of the item in the list.
func TestItem(t *testing.T) {
	r := reportOf(t, listText)
	sub := r.Item(1)
	sub.Errorf(sub.Field("metadata", "name"), "wrong")
	sub.Warnf(sub.Object, "odd")
	r.Merge(sub)
	want := "a.yaml:11: items[1].metadata.name: wrong\na.yaml:10: items[1]: odd"
	if got := r.Problems.Err(); got == nil || got.Error() != want {
		t.Errorf("problems\n%v\nwant\n%s", got, want)
	}
	if sub.Origin.Line != 10 || sub.Origin.Document != 2 {
		t.Errorf("the item is at %+v", sub.Origin)
	}
}

// Warnings never displace errors, and both end at the limit with a message that there are more.
func TestReportIsBounded(t *testing.T) {
	r := &Report{}
	for range 2 * MaxProblems {
		r.Warnf(nil, "odd")
	}
	r.Errorf(nil, "wrong")
	if n := len(r.Problems); n != MaxProblems+2 || r.Problems[n-1].Message != "wrong" || !strings.Contains(r.Problems[n-2].Message, "there are more warnings") {
		t.Errorf("%d problems, the last is %v", n, r.Problems[n-1])
	}
	if !r.Full(problem.Warning) || r.Full(problem.Error) {
		t.Error("the wrong severity is full")
	}
}

// The limit holds for all items of a list together.
func TestMergeIsBounded(t *testing.T) {
	r := &Report{}
	for range 3 {
		sub := &Report{}
		for range MaxProblems {
			sub.Warnf(nil, "odd")
		}
		sub.Errorf(nil, "wrong")
		r.Merge(sub)
	}
	if errors := len(r.Problems.Errors()); errors != 3 || len(r.Problems) != errors+MaxProblems+1 {
		t.Errorf("%d problems, %d of them errors", len(r.Problems), errors)
	}
}

// A rule is not reported for a mapping in which a field was misspelt.
func TestMute(t *testing.T) {
	var top *FieldPath
	r := &Report{}
	r.Mute(top.Child("spec", "policy", "typo"))
	for field, want := range map[string]bool{"spec.policy": true, "spec.policy.affinity.a": true, "spec.policy[0]": true, "spec.policyOther": false, "spec": false} {
		if got := r.IsMuted(field); got != want {
			t.Errorf("%s is muted: %t, want %t", field, got, want)
		}
	}
	r.Rulef(top.Child("spec", "policy", "placementType"), "muted")
	r.Rulef(top.Child("spec", "strategy"), "reported")
	if len(r.Problems) != 1 || r.Problems[0].Message != "reported" {
		t.Errorf("problems %v", r.Problems.Err())
	}
	r.Mute(top.Child("typo"))
	if !r.IsMuted("spec") || !r.IsMuted("metadata.name") {
		t.Error("a misspelt field of the document mutes no rule")
	}
}

// Paths are written as users know them, without what may be a secret value.
func TestFieldPathString(t *testing.T) {
	var top *FieldPath
	for want, p := range map[string]*FieldPath{
		"":                                top,
		"[3]":                             top.At(3),
		"spec.tolerations[0].key":         top.Child("spec", "tolerations").At(0).Child("key"),
		"metadata.labels[example.com/a]":  top.Child("metadata", "labels", "example.com/a"),
		"data[…]":                         top.Child("data", "password hunter2"),
		"stringData[…]":                   top.Child("stringData", "password:\thunter2"),
		"stringData.password":             top.Child("stringData", "password"),
		"data[tls.crt]":                   top.Child("data", "tls.crt"),
		"metadata.annotations[two words]": top.Child("metadata", "annotations", "two words"),
	} {
		if got := p.String(); got != want {
			t.Errorf("path %q, want %q", got, want)
		}
	}
}

func TestIsWord(t *testing.T) {
	for key, want := range map[string]bool{"azAZ09_-": true, "a.b": false, "a b": false, "ä": false, "a/b": false, "a:": false, "a@": false, "a[": false, "a`": false, "a{": false} {
		if got := IsWord(key); got != want {
			t.Errorf("%q is a word: %t, want %t", key, got, want)
		}
	}
}

func TestIsOwnKind(t *testing.T) {
	for text, want := range map[string]bool{
		"apiVersion: placement.kubernetes-fleet.io/v1beta1": true,
		"apiVersion: cluster.kubernetes-fleet.io/v1":        true,
		"apiVersion: kubernetes-fleet.io/v1":                false,
		"apiVersion: placement.kubernetes-fleet.io":         false,
		"apiVersion: v1":      false,
		"kind: MemberCluster": false,
		"apiVersion: [a]":     false,
		"- a":                 false,
	} {
		if got := IsOwnKind(reportOf(t, text).Root); got != want {
			t.Errorf("%q is of gitfleet: %t, want %t", text, got, want)
		}
	}
}

// A value is described by its type only: it may be secret.
func TestDescribe(t *testing.T) {
	for want, v := range map[string]any{
		"empty": nil, "a mapping": map[string]any{"a": "hunter2"}, "a list": []any{"hunter2"}, "text": "hunter2", "a boolean": true, "a number": int64(3), "a float32": float32(3),
	} {
		if got := Describe(v); got != want {
			t.Errorf("%#v is %q, want %q", v, got, want)
		}
	}
	if got := Describe(0.5); got != "a number" {
		t.Errorf("0.5 is %q", got)
	}
}
