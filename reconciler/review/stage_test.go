package review

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// planContext and rolloutContext are the names of the statuses if there is only one fleet.
const (
	planContext    = "gitfleet/plan"
	rolloutContext = "gitfleet/rollout"
)

// hash returns a commit hash that is easy to read.
func hash(digit string) string { return strings.Repeat(digit, 40) }

// A stage is a fleet with real plans and reports; everything else is simulated.
type stage struct {
	t      testing.TB
	now    time.Time
	ledger *ledger.Ledger
	past   map[string]*hub.Snapshot
	memo   *plan.Memo
	report *status.Report
}

func newStage(t testing.TB) *stage {
	return &stage{t: t, now: noon, ledger: ledger.New(), past: map[string]*hub.Snapshot{}, memo: plan.NewMemo()}
}

// commit puts a commit in force and runs until every cluster has it.
func (s *stage) commit(hash string, files fs.FS) {
	s.t.Helper()
	s.begin(hash, files)
	for range 30 {
		s.turn()
		for cluster, works := range s.report.Plan().Works {
			for _, w := range works {
				s.ledger.Fold(protocol.WorkSeen{Cluster: cluster, Placement: w.Placement, At: s.now, Revision: w.Revision, Done: !w.Remove, Removed: w.Remove, Total: len(w.Manifests)})
			}
		}
	}
	s.turn()
}

// begin puts a commit in force that no cluster has yet.
func (s *stage) begin(hash string, files fs.FS) {
	s.t.Helper()
	c := hub.Commit{Hash: hash, Author: "ada", Subject: "change", Time: s.now}
	head, err := hub.NewLoader(hub.Options{}).Load(c, files)
	if err != nil {
		s.t.Fatal(err)
	}
	s.past[hash] = head
	for _, m := range head.Clusters {
		s.ledger.Fold(protocol.ClusterSeen{Cluster: m.Name, At: s.now, Healthy: true})
	}
	s.ledger.SetInForce(hash)
}

func (s *stage) turn() {
	s.now = s.now.Add(2 * time.Minute)
	head := s.past[s.ledger.InForce()]
	for _, m := range head.Clusters {
		s.ledger.Fold(protocol.ClusterSeen{Cluster: m.Name, At: s.now, Healthy: true})
	}
	p := plan.Resolve(plan.Input{InForce: head, Past: s.past, Ledger: s.ledger, Now: s.now, Memo: s.memo, ShortDecisions: true})
	p.UpdateLedger(s.ledger)
	s.report = status.Build(status.Input{Plan: p, InForce: head, Ledger: s.ledger, Now: s.now, Source: status.Source{Newest: head.Commit, InForce: head.Commit}})
}

// A fakeForge is a forge with pull requests, comments and statuses.
type fakeForge struct {
	open     []forge.PullRequest
	comments map[int64][]forge.Comment
	statuses []forge.Status
	writes   int
	lists    int
	// forgotten counts the calls of ForgetList.
	forgotten int
	err       error
	// raced is a comment that another daemon creates just before ours.
	raced string
	// lines are the comments on lines, by their pull request, and reviews counts those written
	// together. linesErr is why they are refused.
	lines    map[int64][]forge.LineComment
	reviews  int
	linesErr error
}

func (f *fakeForge) ForgetList() { f.forgotten++ }

func (f *fakeForge) ListOpen(context.Context, string) ([]forge.PullRequest, error) {
	f.lists++
	return f.open, f.err
}

func (f *fakeForge) PullRequest(_ context.Context, number int64) (forge.PullRequest, error) {
	for _, pr := range f.open {
		if pr.Number == number {
			return pr, f.err
		}
	}
	return forge.PullRequest{}, fmt.Errorf("there is no pull request %d", number)
}

func (f *fakeForge) FindComment(_ context.Context, number int64, marker string) (*forge.Comment, error) {
	for _, c := range f.comments[number] {
		if strings.Contains(c.Body, marker) {
			return &c, f.err
		}
	}
	return nil, f.err
}

func (f *fakeForge) AddComment(_ context.Context, number int64, body string) (forge.Comment, error) {
	if f.raced != "" {
		f.comments[number] = append(f.comments[number], forge.Comment{ID: 99, Body: f.raced})
		f.raced = ""
	}
	c := forge.Comment{ID: int64(len(f.comments[number]) + 1), Body: body}
	f.comments[number] = append(f.comments[number], c)
	f.writes++
	return c, f.err
}

func (f *fakeForge) EditComment(_ context.Context, number, id int64, body string) error {
	f.writes++
	for i, c := range f.comments[number] {
		if c.ID == id {
			f.comments[number][i].Body = body
			return f.err
		}
	}
	return fmt.Errorf("there is no comment %d", id)
}

func (f *fakeForge) Edit(_ context.Context, t forge.Thread, e forge.Edit) error {
	for i, pr := range f.open {
		if pr.Number == t.Number {
			f.open[i].Labels = slices.DeleteFunc(slices.Clone(pr.Labels), func(label string) bool { return slices.Contains(e.RemoveLabels, label) })
		}
	}
	return f.err
}

func (f *fakeForge) EnsureLabels(context.Context, []forge.Label) error { return nil }

func (f *fakeForge) FindLineComments(_ context.Context, number int64, marker string) ([]string, error) {
	var found []string
	for _, c := range f.lines[number] {
		if strings.Contains(c.Body, marker) {
			found = append(found, c.Body)
		}
	}
	return found, f.err
}

func (f *fakeForge) CommentOnLines(_ context.Context, number int64, _, _ string, comments []forge.LineComment) error {
	f.reviews++
	if err := cmp.Or(f.err, f.linesErr); err != nil {
		return err
	}
	if f.lines == nil {
		f.lines = map[int64][]forge.LineComment{}
	}
	f.lines[number] = append(f.lines[number], comments...)
	return nil
}

func (f *fakeForge) SetStatus(_ context.Context, s forge.Status) error {
	if f.err == nil {
		f.statuses = append(f.statuses, s)
	}
	return f.err
}

func (f *fakeForge) FindStatus(_ context.Context, commit, name string) (*forge.Status, error) {
	for _, s := range slices.Backward(f.statuses) {
		if s.Commit == commit && s.Context == name {
			return &s, f.err
		}
	}
	return nil, f.err
}

func (f *fakeForge) LineURL(commit, path string, line int) string {
	return fmt.Sprintf("https://git.example.com/%s/%s#L%d", commit[:4], url.PathEscape(path), line)
}

// of returns the statuses of a commit in a context, in order.
func (f *fakeForge) of(commit, name string) []string {
	var out []string
	for _, s := range f.statuses {
		if s.Commit == commit && s.Context == name {
			out = append(out, string(s.State)+": "+s.Description)
		}
	}
	return out
}

// A fakeSource has the files of merges, by head.
type fakeSource struct {
	merged map[string]fs.FS
	errs   map[string]error
	// parents are the parents of commits.
	parents map[string]string
	// headLines are lines of merged files that the head has elsewhere, or adds.
	headLines map[gitsource.Position]gitsource.HeadLine
}

func (s fakeSource) FetchRef(context.Context, string, string) error { return nil }

func (s fakeSource) Merge(_ context.Context, _, head string) (fs.FS, error) {
	return s.merged[head], s.errs[head]
}

func (s fakeSource) HeadLines(_ context.Context, _, _ string, _ fs.FS, positions []gitsource.Position) ([]gitsource.HeadLine, error) {
	out := make([]gitsource.HeadLine, len(positions))
	for i, p := range positions {
		out[i] = s.headLines[p]
	}
	return out, nil
}

func (s fakeSource) Commit(_ context.Context, hash string) (gitsource.Commit, error) {
	c := gitsource.Commit{Hash: hash, Author: "eve", Time: noon}
	if parent := s.parents[hash]; parent != "" {
		c.Parents = []string{parent}
	}
	return c, nil
}

func newReviewer(f Forge, s Source) *Reviewer {
	return New(Config{
		Forge: f, Source: s, Loader: hub.NewLoader(hub.Options{}), Brake: member.Brake{Percent: 30, Objects: 10},
		Attempt: func(string) (func(), error) { return func() {}, nil },
		Fleet:   "prod", Base: "main", Plans: true, Rollouts: true, Interval: time.Minute, Pause: 0,
		Log: slog.New(slog.DiscardHandler),
	})
}

func pullRequest(number int64, head string) forge.PullRequest {
	return forge.PullRequest{Thread: forge.Thread{Number: number, URL: fmt.Sprint("https://git.example.com/pulls/", number), State: forge.Open}, Base: "main", Branch: "topic", Head: head, HeadRef: fmt.Sprintf("refs/pull/%d/head", number)}
}

// step makes the reviewer process the report once.
func (s *stage) step(v *Reviewer) {
	s.t.Helper()
	v.report = s.report
	s.now = s.now.Add(time.Minute)
	v.pass(s.t.Context(), s.now)
}

func files(t testing.TB, text string) fstest.MapFS { return world.Files(t, text) }

// withoutAwaited leaves out the statuses of plans that were awaited.
func withoutAwaited(statuses []string) []string {
	return slices.DeleteFunc(slices.Clone(statuses), func(s string) bool { return strings.HasPrefix(s, "pending: not planned yet") })
}
