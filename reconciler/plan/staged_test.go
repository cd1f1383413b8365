package plan

import (
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// The content in force has failed as long as a run with the same content is recorded as rolled back. What is to be undone then
// is everything since the last finished run, up to the newest commit that has brought the content.
func TestFailedContent(t *testing.T) {
	at := func(minute int) time.Time { return time.Unix(int64(60*minute), 0) }
	content := func(n string) placement.Revision {
		return placement.Revision{Commit: "commit-" + n, Hash: "content-" + n}
	}
	good := placement.Run{Name: "run-1", Content: content("1"), Started: at(1), Finished: at(2)}
	failed := placement.Run{Name: "run-2", Content: content("2"), Started: at(3), SupersededBy: "run-1", RolledBack: "no image"}
	fixed := placement.Run{Name: "run-3", Content: content("3"), Started: at(4), Finished: at(5)}
	again := ledger.Revised{Content: placement.Revision{Commit: "commit-4", Hash: "content-2"}}
	tests := map[string]struct {
		record      ledger.Placement
		fingerprint string
		want        string
	}{
		"it failed":             {ledger.Placement{Runs: []placement.Run{good, failed}}, "content-2", "run-2 at commit-2, back to run-1 at commit-1"},
		"other content":         {ledger.Placement{Runs: []placement.Run{good, failed}}, "content-3", ""},
		"it is allowed again":   {ledger.Placement{Runs: []placement.Run{good}}, "content-2", ""},
		"no run has finished":   {ledger.Placement{Runs: []placement.Run{failed}}, "content-2", ""},
		"it came back in Git":   {ledger.Placement{Runs: []placement.Run{good, failed, fixed}, Revisions: []ledger.Revised{{Content: content("2")}, {Content: content("3")}, again}}, "content-2", "run-2 at commit-4, back to run-3 at commit-3"},
		"the revision is older": {ledger.Placement{Runs: []placement.Run{good, failed}, Revisions: []ledger.Revised{{Content: content("1")}}}, "content-2", "run-2 at commit-2, back to run-1 at commit-1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if f := failedContent(&test.record, test.fingerprint); f != nil {
				got = f.Run.Name + " at " + f.Commit + ", back to " + f.Back.Name + " at " + f.Back.Content.Commit
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// If Git goes back to the content to which the clusters have gone back, the run that brought it is in force, so that nothing is
// approved again.
func TestARunThatHasFinishedIsNotMadeAgain(t *testing.T) {
	run := func(name, content string, change func(r *placement.Run)) placement.Run {
		r := placement.Run{Name: name, Automatic: true, Content: placement.Revision{Hash: content}, Started: time.Unix(int64(len(name)), 0), Finished: time.Unix(100, 0)}
		change(&r)
		return r
	}
	same := func(*placement.Run) {}
	good := run("run", "one", same)
	for name, test := range map[string]struct {
		runs []placement.Run
		want string
	}{
		"it was rolled back":   {[]placement.Run{good, run("run-2", "two", func(r *placement.Run) { r.SupersededBy, r.Finished = "run", time.Time{} })}, "run"},
		"another is under way": {[]placement.Run{good, run("run-2", "two", func(r *placement.Run) { r.Finished = time.Time{} })}, ""},
		"another has finished": {[]placement.Run{good, run("run-2", "two", same)}, ""},
		"it has not finished":  {[]placement.Run{run("run", "one", func(r *placement.Run) { r.Finished = time.Time{} })}, ""},
		"it was committed":     {[]placement.Run{run("run", "one", func(r *placement.Run) { r.Automatic = false })}, ""},
		"there is none":        {nil, ""},
	} {
		if got := finishedWith(test.runs, "one"); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
