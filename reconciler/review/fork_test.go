package review

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// The label counts for the commit that a pull request from a fork had when it was set, also after a
// restart. When it may be older than the commit it is removed, and the commit says so.
func TestTheLabelOfAForkIsBoundToItsCommit(t *testing.T) {
	type step struct {
		head    string
		labeled bool
		restart bool
		planned bool // afterwards
		keeps   bool // the label
	}
	for name, steps := range map[string][]step{
		"set for a commit":               {{"1", false, false, false, false}, {"1", true, false, true, true}},
		"a push after the label":         {{"1", false, false, false, false}, {"1", true, false, true, true}, {"2", true, false, false, false}, {"2", true, false, true, true}},
		"a push with the label":          {{"1", false, false, false, false}, {"2", true, false, false, false}},
		"a restart":                      {{"1", false, false, false, false}, {"1", true, false, true, true}, {"1", true, true, true, true}},
		"a push while it does not run":   {{"1", false, false, false, false}, {"1", true, false, true, true}, {"2", true, true, false, false}, {"2", true, false, true, true}},
		"a label while it does not run":  {{"1", true, true, false, false}, {"1", true, false, true, true}},
		"removed and set again":          {{"1", false, false, false, false}, {"1", true, false, true, true}, {"2", false, false, false, false}, {"2", true, false, true, true}},
		"pushed back":                    {{"1", false, false, false, false}, {"1", true, false, true, true}, {"2", true, false, false, false}, {"1", true, false, true, true}},
		"back to a commit that had none": {{"1", false, false, false, false}, {"2", false, false, false, false}, {"1", true, false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSimulatedFleet(t)
			s.commit(hash("b"), files(t, small))
			pr := pullRequest(1, hash("1"))
			pr.Fork = true
			f := newForge(pr)
			merged := files(t, small+"configmap web/two v1\n")
			source := fakeSource{merged: map[string]fs.FS{hash("1"): merged, hash("2"): merged}}
			v := newReviewer(f, source)
			v.cfg.ForksLabel = "plan"
			for n, step := range steps {
				if step.restart {
					v = newReviewer(f, source)
					v.cfg.ForksLabel = "plan"
				}
				f.Pulls[0].Head, f.Pulls[0].Labels = hash(step.head), nil
				if step.labeled {
					f.Pulls[0].Labels = []string{"plan"}
				}
				refused := len(f.of(hash(step.head), planContext))
				s.step(v)
				planned := len(f.Comments[1]) > 0 && strings.Contains(f.Comments[1][0].Body, allowedMarker(hash(step.head)))
				if planned != step.planned || (len(f.Pulls[0].Labels) > 0) != step.keeps {
					t.Errorf("step %d: planned: %t, labels %v", n, planned, f.Pulls[0].Labels)
				}
				said := f.of(hash(step.head), planContext)[refused:]
				if wantRefusal := step.labeled && !step.planned; wantRefusal != (len(said) == 1 && strings.HasPrefix(said[0], "pending: not planned: the label")) {
					t.Errorf("step %d: the commit has the statuses %v", n, said)
				}
				s.step(v) // a label that was removed is seen missing
			}
		})
	}
}

// The label counts for its pull request only, also if another one, from another repository, has the same commit. Of one that was
// to be merged elsewhere in the meantime it is not known when it was set.
func TestTheLabelOfAForkIsOfItsPullRequest(t *testing.T) {
	s := newSimulatedFleet(t)
	s.commit(hash("b"), files(t, small))
	fork := func(number int64, head string, labels ...string) forge.PullRequest {
		pr := pullRequest(number, hash(head))
		pr.Fork, pr.Labels = true, labels
		return pr
	}
	f := newForge()
	merged := files(t, small+"configmap web/two v1\n")
	v := newReviewer(f, fakeSource{merged: map[string]fs.FS{hash("1"): merged, hash("2"): merged}})
	v.cfg.ForksLabel = "plan"
	for n, step := range []struct {
		open    []forge.PullRequest
		planned []int64
	}{
		{[]forge.PullRequest{fork(1, "1")}, nil},
		{[]forge.PullRequest{fork(1, "1", "plan"), fork(2, "1", "plan")}, []int64{1}},
		{nil, nil}, // it is to be merged into another branch
		{[]forge.PullRequest{fork(1, "2", "plan")}, nil},
		{[]forge.PullRequest{fork(1, "2")}, nil},
		{[]forge.PullRequest{fork(1, "2", "plan")}, []int64{1}},
	} {
		f.SetPulls(step.open...)
		if s.step(v); !slices.Equal(slices.Sorted(maps.Keys(v.reviews)), step.planned) {
			t.Errorf("step %d: %v are planned, want %v", n, slices.Sorted(maps.Keys(v.reviews)), step.planned)
		}
	}
}

// What a plan quotes of a pull request does not allow another commit.
func TestAQuotedMarkerAllowsNothing(t *testing.T) {
	pr := pullRequest(1, hash("2"))
	pr.Fork, pr.Labels = true, []string{"plan"}
	f := newForge(pr)
	f.Comments[1] = []forge.Comment{{ID: 1, Body: marker("prod") + "\n" + planTitle + "\n`" + allowedMarker(hash("2")) + "`"}}
	v := newReviewer(f, fakeSource{})
	v.cfg.ForksLabel = "plan"
	if err := v.list(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if v.isPlanned(pr) || len(f.Pulls[0].Labels) > 0 {
		t.Errorf("it is planned; labels are %v", f.Pulls[0].Labels)
	}
}
