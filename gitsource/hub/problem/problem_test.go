package problem

import (
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

func TestWarningsNeverHideTheErrorThatRefusesACommit(t *testing.T) {
	problems := List{
		{Origin: api.Origin{Path: "a.yaml", Line: 1}, Severity: Warning, Message: "odd"},
		{Origin: api.Origin{Path: "b.yaml", Line: 2}, Severity: Failure, Message: "cannot be placed"},
		{Origin: api.Origin{Path: "c.yaml", Line: 3}, Severity: Error, Message: "wrong"},
		{Origin: api.Origin{Path: "d.yaml", Line: 4}, Severity: Error, Message: "wrong as well"},
	}
	if got, want := problems.Summary(), "c.yaml:3: wrong (and 3 more problems)"; got != want {
		t.Errorf("summary %q, want %q", got, want)
	}
	if got, want := problems[:1].Summary(), "a.yaml:1: odd (warning)"; got != want {
		t.Errorf("summary %q, want %q", got, want)
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
		t.Error("sorting changed its input")
	}
}
