package review

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// broken is an object without a name: a problem in its third line.
const broken = "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: web}\n"

// withProblems is a simulatedFleet with an open pull request that has a problem in the third line of each
// of some files. The head has these lines two lines above.
func withProblems(t *testing.T, paths ...string) (*simulatedFleet, *fakeForge, fakeSource) {
	s := newSimulatedFleet(t)
	s.commit(hash("b"), files(t, small))
	merged := files(t, small)
	source := fakeSource{merged: map[string]fs.FS{hash("1"): merged, hash("2"): merged}, headLines: map[gitsource.Position]gitsource.HeadLine{}}
	for _, path := range paths {
		merged[path] = &fstest.MapFile{Data: []byte(broken)}
		source.headLines[gitsource.Position{Path: path, Line: 3}] = gitsource.HeadLine{Line: 1, Added: true}
	}
	return s, newForge(pullRequest(1, hash("1"))), source
}

// A problem at a line that the pull request adds is a comment on that line, and one at another
// line is in the comment with the plan only. The lines are those of the head.
func TestProblemsAreCommentsOnLines(t *testing.T) {
	s, f, source := withProblems(t, "@all `a`.yaml", "b.yaml")
	source.headLines[gitsource.Position{Path: "b.yaml", Line: 3}] = gitsource.HeadLine{Line: 2}
	s.step(newReviewer(f, source))
	if len(f.Lines[1]) != 1 {
		t.Fatalf("comments on lines are %+v", f.Lines[1])
	}
	c := f.Lines[1][0]
	if c.Path != "@all `a`.yaml" || c.Line != 1 || !strings.HasSuffix(c.Body, " -->\ngitfleet plan for the fleet `prod`: `metadata.name: missing; give the object a name`\n") {
		t.Errorf("it is %+v", c)
	}
	if body := f.Comments[1][0].Body; !strings.Contains(body, "b.yaml#L2)") || !strings.Contains(body, "a%60.yaml#L1)") {
		t.Errorf("the comment with the plan is\n%s", body)
	}
}

// A comment may have to be resolved before the merge, so that only problems that refuse the commit
// have one.
func TestOnlyErrorsAreCommentsOnLines(t *testing.T) {
	r := &Result{onAddedLines: []int{0, 1, 2}}
	for line, severity := range []problem.Severity{problem.Error, problem.Failure, problem.Warning} {
		r.Problems = append(r.Problems, problem.Problem{Origin: api.Origin{Path: "a.yaml", Line: line + 1}, Severity: severity, Message: "wrong"})
	}
	if comments, ids := r.lineComments("prod"); len(comments) != 1 || comments[0].Line != 1 || len(ids) != 1 {
		t.Errorf("comments %+v of the problems %q", comments, ids)
	}
}

// A problem is written to its line once: whether the base moves, the daemon starts again or the
// pull request gets another commit that moves the line.
func TestAProblemIsWrittenToItsLineOnce(t *testing.T) {
	s, f, source := withProblems(t, "a.yaml")
	v := newReviewer(f, source)
	s.step(v)
	s.step(v)
	s.commit(hash("c"), files(t, small+"namespace other\n"))
	s.step(v)
	s.step(newReviewer(f, source))
	*f.Pulls[0] = pullRequest(1, hash("2"))
	source.headLines[gitsource.Position{Path: "a.yaml", Line: 3}] = gitsource.HeadLine{Line: 7, Added: true}
	s.step(newReviewer(f, source))
	if len(f.Lines[1]) != 1 || f.reviews != 1 {
		t.Errorf("%d reviews with %+v", f.reviews, f.Lines[1])
	}
	if !strings.Contains(f.Comments[1][0].Body, "a.yaml#L7)") {
		t.Errorf("the comment with the plan is\n%s", f.Comments[1][0].Body)
	}
	other := newReviewer(f, source)
	other.cfg.Fleet = "test"
	s.step(other)
	if len(f.Lines[1]) != 2 {
		t.Errorf("another fleet has written %+v", f.Lines[1][1:])
	}
}

// A comment on a line that a maintainer deletes stays deleted, also when a plan without problems
// was in between. Other problems are written nevertheless.
func TestDeletedCommentsOnLinesStayDeleted(t *testing.T) {
	s, f, source := withProblems(t, "a.yaml")
	broken := source.merged[hash("1")].(fstest.MapFS)
	s.step(newReviewer(f, source))
	clear(f.Lines)
	s.step(newReviewer(f, source))
	source.merged[hash("2")] = files(t, small+"configmap web/two v1\n")
	*f.Pulls[0] = pullRequest(1, hash("2"))
	s.step(newReviewer(f, source))
	source.merged[hash("3")] = broken
	*f.Pulls[0] = pullRequest(1, hash("3"))
	s.step(newReviewer(f, source))
	if len(f.Lines[1]) > 0 || f.reviews != 1 {
		t.Errorf("after %d reviews are written %+v", f.reviews, f.Lines[1])
	}
	broken["b.yaml"] = broken["a.yaml"]
	source.headLines[gitsource.Position{Path: "b.yaml", Line: 3}] = gitsource.HeadLine{Line: 1, Added: true}
	s.step(newReviewer(f, source))
	if len(f.Lines[1]) != 1 || f.Lines[1][0].Path != "b.yaml" {
		t.Errorf("another problem is written as %+v", f.Lines[1])
	}
	if ids := writtenProblems(&f.Comments[1][0]); len(ids) != 2 || ids[0] == ids[1] {
		t.Errorf("the comment with the plan has %q", ids)
	}
}

// The texts of a pull request cannot pass for the list of what is written.
func TestWrittenProblems(t *testing.T) {
	for body, want := range map[string]string{
		writtenText([]string{"1", "2"}) + planTitle:                                 "[1 2]",
		planTitle + writtenText([]string{"1"}):                                      "[]",
		writtenText([]string{"1"}) + planTitle + "x\n" + writtenText([]string{"2"}): "[1]",
		writtenText(nil) + planTitle:                                                "[]",
	} {
		if got := fmt.Sprint(writtenProblems(&forge.Comment{Body: body})); got != want {
			t.Errorf("%q has %s, want %s", body, got, want)
		}
	}
}

// Comments on lines are few, for one plan and for all of a pull request.
func TestCommentsOnLinesAreBounded(t *testing.T) {
	var paths []string
	for i := range 30 {
		paths = append(paths, fmt.Sprintf("%02d.yaml", i))
	}
	s, f, source := withProblems(t, paths...)
	s.step(newReviewer(f, source))
	if got := len(f.Lines[1]); got != maxLineComments || f.reviews != 1 {
		t.Errorf("%d comments in %d reviews", got, f.reviews)
	}
	for i := range maxAllLineComments {
		f.Lines[1] = append(f.Lines[1], forge.LineComment{Body: fmt.Sprintf("%s%d -->", lineMarker("prod"), i)})
	}
	s.step(newReviewer(f, source))
	if f.reviews != 1 {
		t.Errorf("%d reviews", f.reviews)
	}
	clear(f.Lines) // also those count that are deleted
	s.step(newReviewer(f, source))
	if f.reviews != 1 {
		t.Errorf("%d reviews", f.reviews)
	}
}

// Nothing is written to lines of what gitfleet opens itself.
func TestOwnPullRequestsGetNoCommentsOnLines(t *testing.T) {
	s, f, source := withProblems(t, "a.yaml")
	f.Pulls[0].Branch = "gitfleet/drift/1"
	s.step(newReviewer(f, source))
	if f.reviews != 0 || len(f.Statuses) == 0 {
		t.Errorf("%d reviews, statuses %v", f.reviews, f.Statuses)
	}
}

// A forge that refuses comments on lines has the whole plan nevertheless, and the log says so
// once. One that is down is tried again.
func TestRefusedCommentsOnLines(t *testing.T) {
	for status, again := range map[int]bool{403: false, 404: false, 422: false, 500: false, 503: true} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s, f, source := withProblems(t, "a.yaml")
			f.Add(pullRequest(2, hash("2")))
			f.linesErr = &forge.StatusError{Status: status}
			var log bytes.Buffer
			v := newReviewer(f, source)
			v.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
			for range 3 {
				s.step(v)
			}
			if again {
				f.linesErr = nil
				for range 4 {
					s.step(v)
				}
				if len(f.Lines[1]) != 1 || len(f.Lines[2]) != 1 {
					t.Errorf("comments on lines are %+v\n%s", f.Lines, &log)
				}
				return
			}
			for number, head := range map[int64]string{1: hash("1"), 2: hash("2")} {
				if got := withoutAwaited(f.of(head, planContext)); len(got) != 1 || got[0] != "failure: 1 problem" {
					t.Errorf("%d: statuses %q", number, got)
				}
				if len(f.Comments[number]) != 1 || !strings.Contains(f.Comments[number][0].Body, "a.yaml:1") {
					t.Errorf("%d: comments %+v", number, f.Comments[number])
				}
			}
			if said := strings.Count(log.String(), "comments on lines refused"); said != 1 || f.reviews != 2 {
				t.Errorf("said %d times of %d\n%s", said, f.reviews, &log)
			}
			if len(v.Problems()) > 0 {
				t.Errorf("status says %q", v.Problems())
			}
		})
	}
}

// Comments that the forge is not ready for are tried again, a few times.
func TestCommentsOnLinesWaitForTheForge(t *testing.T) {
	s, f, source := withProblems(t, "a.yaml")
	f.linesErr = fmt.Errorf("comment on lines: %w", forge.ErrNotReady)
	v := newReviewer(f, source)
	s.step(v)
	f.linesErr = nil
	s.step(v)
	if len(f.Lines[1]) != 1 || f.reviews != 2 {
		t.Errorf("after %d reviews the comments on lines are %+v", f.reviews, f.Lines)
	}

	*f.Pulls[0] = pullRequest(1, hash("2"))
	f.Comments[1], f.Lines, f.reviews, f.linesErr = nil, nil, 0, forge.ErrNotReady
	for range 60 { // an hour
		s.step(v)
	}
	if f.reviews != 1+maxLineRetries || len(v.Problems()) > 0 {
		t.Errorf("tried %d times, status says %q", f.reviews, v.Problems())
	}
}
