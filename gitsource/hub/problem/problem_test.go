package problem

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A problem is written with its position, as far as it is known.
func TestError(t *testing.T) {
	for want, p := range map[string]Problem{
		"wrong":                    {Message: "wrong"},
		"a.yaml: wrong":            {Origin: api.Origin{Path: "a.yaml"}, Message: "wrong"},
		"a.yaml:3: wrong":          {Origin: api.Origin{Path: "a.yaml", Line: 3}, Message: "wrong"},
		"a.yaml:3: spec.x: wrong":  {Origin: api.Origin{Path: "a.yaml", Line: 3}, Field: "spec.x", Message: "wrong"},
		"spec.x: wrong":            {Field: "spec.x", Message: "wrong"},
		"a.yaml: odd (warning)":    {Origin: api.Origin{Path: "a.yaml"}, Severity: Warning, Message: "odd"},
		"a.yaml: cannot be placed": {Origin: api.Origin{Path: "a.yaml"}, Severity: Failure, Message: "cannot be placed"},
		"a.yaml: wrong (built by app/kustomization.yaml)": {Origin: api.Origin{Path: "a.yaml", Kustomization: "app/kustomization.yaml"}, Severity: Error, Message: "wrong"},
		"kustomization.yaml: wrong":                       {Origin: api.Origin{Path: "kustomization.yaml", Kustomization: "kustomization.yaml"}, Message: "wrong"},
	} {
		if got := p.Marked(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := p.Error(); got != strings.TrimSuffix(want, " (warning)") {
			t.Errorf("error %q of %q", got, want)
		}
	}
}

// Errors come first in a list that is shortened, so that the reason of a refusal is never cut
// off.
func TestErrorsComeFirst(t *testing.T) {
	problems := List{
		{Origin: api.Origin{Path: "a.yaml", Line: 1}, Severity: Warning, Message: "odd"},
		{Origin: api.Origin{Path: "b.yaml", Line: 2}, Severity: Failure, Message: "cannot be placed"},
		{Origin: api.Origin{Path: "c.yaml", Line: 3}, Severity: Error, Message: "wrong"},
		{Origin: api.Origin{Path: "d.yaml", Line: 4}, Severity: Error, Message: "wrong as well"},
	}
	sorted := problems.ErrorsFirst()
	for i, want := range []string{"wrong", "wrong as well", "odd", "cannot be placed"} {
		if sorted[i].Message != want {
			t.Errorf("problem %d is %q, want %q", i, sorted[i].Message, want)
		}
	}
	if got := len(problems.Errors()); got != 2 {
		t.Errorf("%d errors, want 2", got)
	}
	if problems[0].Severity != Warning {
		t.Error("the list itself was sorted")
	}
}

func TestSummary(t *testing.T) {
	warning := Problem{Origin: api.Origin{Path: "a.yaml", Line: 1}, Severity: Warning, Message: "odd"}
	failure := Problem{Origin: api.Origin{Path: "b.yaml", Line: 2}, Severity: Failure, Message: "cannot be placed"}
	err := Problem{Origin: api.Origin{Path: "c.yaml", Line: 3}, Severity: Error, Message: "wrong"}
	for want, problems := range map[string]List{
		"":                                      nil,
		"a.yaml:1: odd (warning)":               {warning},
		"c.yaml:3: wrong (and 1 more problem)":  {warning, err},
		"c.yaml:3: wrong (and 2 more problems)": {warning, failure, err},
		"b.yaml:2: cannot be placed":            {failure},
	} {
		if got := problems.Summary(); got != want {
			t.Errorf("summary %q, want %q", got, want)
		}
	}
}

// Only an error refuses a commit.
func TestHasErrors(t *testing.T) {
	for severity, want := range map[Severity]bool{Error: true, Failure: false, Warning: false} {
		if got := (List{{Severity: Warning}, {Severity: severity}}).HasErrors(); got != want {
			t.Errorf("a list with %s has errors: %t, want %t", severity, got, want)
		}
	}
	if (List{}).HasErrors() || (List{}).Err() != nil {
		t.Error("an empty list has errors")
	}
	if err := (List{{Message: "a"}, {Message: "b"}}).Err(); err == nil || err.Error() != "a\nb" {
		t.Errorf("%v, want a and b on two lines", err)
	}
}

// A problem of a base is found for each kustomization that includes it, and reported once.
func TestSortRemovesDuplicates(t *testing.T) {
	base := Problem{Origin: api.Origin{Path: "base/a.yaml", Line: 3, Document: 1, Kustomization: "one/kustomization.yaml"}, Severity: Error, Message: "wrong"}
	again := base
	again.Kustomization, again.Document = "two/kustomization.yaml", 2
	other := base
	other.Message = "wrong in another way"
	if got := (List{again, other, base}).Sort(); !slices.Equal(got, List{base, other}) {
		t.Errorf("%v", got.Err())
	}
}

// The order of a sorted list does not depend on the order in which the problems were found.
func TestSortIsDeterministic(t *testing.T) {
	pick := func(t *rapid.T, of ...string) string { return rapid.SampledFrom(of).Draw(t, "text") }
	rapid.Check(t, func(t *rapid.T) {
		var problems List
		for range rapid.IntRange(0, 8).Draw(t, "problems") {
			problems = append(problems, Problem{
				Origin: api.Origin{Path: pick(t, "a", "b"), Line: rapid.IntRange(0, 2).Draw(t, "line"), Document: rapid.IntRange(0, 1).Draw(t, "document"), Kustomization: pick(t, "", "k", "l")},
				Field:  pick(t, "", "spec"), Severity: Severity(pick(t, string(Error), string(Warning))), Message: pick(t, "x", "y"),
			})
		}
		shuffled := rapid.Permutation(problems).Draw(t, "order")
		sorted := slices.Clone(problems).Sort()
		if got := List(slices.Clone(shuffled)).Sort(); !slices.Equal(got, sorted) {
			t.Fatalf("sorted to\n%v\nand in another order to\n%v", sorted.Err(), got.Err())
		}
		if again := slices.Clone(sorted).Sort(); !slices.Equal(again, sorted) {
			t.Fatalf("sorted again to\n%v\nfrom\n%v", again.Err(), sorted.Err())
		}
	})
}
