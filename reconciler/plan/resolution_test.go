package plan

import (
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A report about one cluster does not replace the works of any, even if placements claim the same objects there.
func TestAReportReplacesNoWorksOfClaimants(t *testing.T) {
	s := newScene(t)
	s.commit("v1", nil, []byte("clusters east west\nnamespace web\nconfigmap web/one a\nplace one of web\nplace two of web\n"))
	s.do([]string{"seen", "east", "west"})
	s.do([]string{"plan"})
	s.do([]string{"done"})
	for range 3 {
		s.resolve()
	}
	before := s.resolve() // nothing is left to record
	o := report("east", before.Works["east"][0], s.in.Now)
	o.Untrackable = 1
	s.in.Ledger.Fold(o)
	now := s.resolve()
	one, two := now.Placements.At(0), now.Placements.At(1)
	if len(two.Warnings) != 1 || len(two.On("west").Unusual().Yielded) == 0 {
		t.Fatalf("the placements have no conflict:\n%s", describe(now))
	}
	if one == before.Placements.At(0) {
		t.Error("the placement of the report is not planned again")
	}
	for _, cluster := range []string{"east", "west"} {
		if !ledger.Identical(now.Works[cluster], before.Works[cluster]) {
			t.Errorf("the works of %s are replaced", cluster)
		}
	}
}

// The warnings about a conflict list the clusters that it is on now, also if only the conflicts
// of other clusters were resolved again.
func TestConflictWarningsListTheClustersOfTheConflict(t *testing.T) {
	s := newScene(t)
	const objects = "namespace web\nconfigmap web/one a\n"
	for i, test := range []struct{ text, want string }{
		{"clusters east west\n" + objects + "place one of web\nplace two of web on east\n", " on east"},
		{"clusters east west\n" + objects + "place one of web\nplace two of web\n", " on east and 1 more cluster"},
		{"clusters east west\n" + objects + "place one of web on west\nplace two of web\n", " on west"},
		{"clusters east west\n" + objects + "place two of web\n", ""},
	} {
		s.commit("v"+string(rune('1'+i)), nil, []byte(test.text))
		s.do([]string{"seen", "east", "west"})
		for range 5 {
			s.do([]string{"plan"})
			s.do([]string{"done"})
		}
		got := describe(s.resolve())
		if test.want != "" && !strings.Contains(got, test.want+":") && !strings.Contains(got, test.want+",") || test.want == "" && len(s.last.Placements.At(0).Warnings) > 0 {
			t.Errorf("%d: %s, want a conflict%s", i, got, test.want)
		}
	}
}
