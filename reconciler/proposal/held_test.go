package proposal

import (
	"testing"
	"time"
)

// The edit of a file is a unified diff: also of a file that is new, removed or without a final line
// break. A file that may have values of Secrets is not shown, neither before nor after.
func TestDiffsOfFiles(t *testing.T) {
	for name, test := range map[string]struct {
		file FileChange
		want string
	}{
		"changed":               {FileChange{Path: "a", Before: []byte("x\ny\n"), After: []byte("x\nz\n")}, "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n"},
		"new":                   {FileChange{Path: "a", After: []byte("x\n")}, "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n"},
		"removed":               {FileChange{Path: "a", Before: []byte("x\n")}, "--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"},
		"no line break":         {FileChange{Path: "a", Before: []byte("x"), After: []byte("y")}, "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n"},
		"the same":              {FileChange{Path: "a", Before: []byte("x\n"), After: []byte("x\n")}, ""},
		"had a Secret":          {FileChange{Path: "a", Before: []byte("kind: Secret\n"), After: []byte("x\n")}, ""},
		"has a Secret":          {FileChange{Path: "a", Before: []byte("x\n"), After: []byte("kind: Secret\n")}, ""},
		"removed with a Secret": {FileChange{Path: "a", Before: []byte("kind: Secret\n")}, ""},
	} {
		if got := test.file.describe(); got != (FileEdit{"a", test.want}) {
			t.Errorf("%s: %q, want %q", name, got.Diff, test.want)
		}
	}
}

// The oldest change comes first. Each names its modes, placements and people once, and the clusters
// that get the object.
func TestTheListOfHeldChanges(t *testing.T) {
	noon := time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)
	item := func(n int, age time.Duration, clusters ...string) heldItem {
		c := heldChange(n, clusters...)
		for _, d := range c.drifts {
			d.Since, d.Rule = noon.Add(-age), "propose"
		}
		return heldItem{change: c, state: Waiting, message: "waits"}
	}
	h := newHeldChanges(noon, nil)
	first, other := item(8, time.Hour, "east", "west"), item(7, time.Minute, "east")
	first.drifts[1].Rule, first.drifts[1].Placement, first.drifts[1].Since = "report", "crp/other", noon.Add(-2*time.Hour)
	first.holders, first.others = 3, []string{"north"}
	h.items = []heldItem{item(9, time.Minute, "east"), other, first}
	list := h.list()
	if list.APIVersion != HeldVersion || !list.At.Equal(noon) || len(list.Items) != 3 {
		t.Fatalf("the list is %+v", list)
	}
	for i, want := range []string{heldChange(8).hash, heldChange(7).hash, heldChange(9).hash} {
		if list.Items[i].Name != want {
			t.Errorf("item %d is %s, want %s", i, list.Items[i].Name, want)
		}
	}
	found := list.Items[0]
	if !found.FirstSeen.Equal(noon.Add(-2*time.Hour)) || found.Holders != 3 || len(found.OtherClusters) != 1 || found.Rules[0] != "propose" || found.Rules[1] != "report" || found.Placements[0] != "crp/other" || len(found.Clusters) != 2 {
		t.Errorf("the oldest is %+v", found)
	}
}
