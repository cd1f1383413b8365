package review

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
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
	"github.com/gitfleet/gitfleet/test/fakeforge"
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

// A simulatedFleet is a fleet with real plans and reports; everything else is simulated.
type simulatedFleet struct {
	t      testing.TB
	now    time.Time
	ledger *ledger.Ledger
	past   map[string]*hub.Snapshot
	memo   *plan.Memo
	report *status.Report
}

func newSimulatedFleet(t testing.TB) *simulatedFleet {
	return &simulatedFleet{t: t, now: noon, ledger: ledger.New(), past: map[string]*hub.Snapshot{}, memo: plan.NewMemo()}
}

// commit puts a commit in force and runs until every cluster has it.
func (s *simulatedFleet) commit(hash string, files fs.FS) {
	s.t.Helper()
	s.begin(hash, files)
	for range 30 {
		s.turn()
		for cluster, works := range s.report.Plan().Works {
			for _, w := range works {
				s.ledger.Fold(protocol.WorkSeen{Cluster: cluster, Placement: w.Placement, At: s.now, WorkState: protocol.WorkState{Revision: w.Revision, Done: !w.Remove, Removed: w.Remove, Total: len(w.Manifests)}})
			}
		}
	}
	s.turn()
}

// begin puts a commit in force that no cluster has yet.
func (s *simulatedFleet) begin(hash string, files fs.FS) {
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

func (s *simulatedFleet) turn() {
	s.now = s.now.Add(2 * time.Minute)
	head := s.past[s.ledger.InForce()]
	for _, m := range head.Clusters {
		s.ledger.Fold(protocol.ClusterSeen{Cluster: m.Name, At: s.now, Healthy: true})
	}
	p := plan.Resolve(plan.Input{InForce: head, Past: s.past, Ledger: s.ledger, Now: s.now, Memo: s.memo, ShortDecisions: true})
	p.UpdateLedger(s.ledger)
	s.report = status.Build(status.Input{Plan: p, InForce: head, Ledger: s.ledger, Now: s.now, Source: status.Source{Newest: head.Commit, InForce: head.Commit}})
}

// A fakeForge is a forge in memory, whose requests are counted and may fail.
type fakeForge struct {
	*fakeforge.Forge
	writes int
	lists  int
	// forgotten counts the calls of ForgetList.
	forgotten int
	err       error
	// raced is a comment that another daemon creates just before ours.
	raced string
	// reviews counts the comments on lines that are written together. linesErr is why they are refused.
	reviews  int
	linesErr error
}

// newForge returns a forge with some pull requests.
func newForge(pulls ...forge.PullRequest) *fakeForge {
	return &fakeForge{Forge: fakeforge.New(pulls...)}
}

func (f *fakeForge) ForgetList() { f.forgotten++ }

func (f *fakeForge) ListOpen(ctx context.Context, base string) ([]forge.PullRequest, error) {
	f.lists++
	open, err := f.Forge.ListOpen(ctx, base)
	return open, cmp.Or(err, f.err)
}

func (f *fakeForge) PullRequest(ctx context.Context, number int64) (forge.PullRequest, error) {
	pr, err := f.Forge.PullRequest(ctx, number)
	return pr, cmp.Or(err, f.err)
}

func (f *fakeForge) FindComment(ctx context.Context, number int64, marker string) (*forge.Comment, error) {
	c, err := f.Forge.FindComment(ctx, number, marker)
	return c, cmp.Or(err, f.err)
}

func (f *fakeForge) AddComment(ctx context.Context, number int64, body string) (forge.Comment, error) {
	if f.raced != "" {
		f.Comments[number] = append(f.Comments[number], forge.Comment{ID: 99, Body: f.raced})
		f.raced = ""
	}
	f.writes++
	c, err := f.Forge.AddComment(ctx, number, body)
	return c, cmp.Or(err, f.err)
}

func (f *fakeForge) EditComment(ctx context.Context, number, id int64, body string) error {
	f.writes++
	return cmp.Or(f.Forge.EditComment(ctx, number, id, body), f.err)
}

func (f *fakeForge) Edit(ctx context.Context, t forge.Thread, e forge.Edit) error {
	return cmp.Or(f.Forge.Edit(ctx, t, e), f.err)
}

func (f *fakeForge) FindLineComments(ctx context.Context, number int64, marker string) ([]string, error) {
	found, err := f.Forge.FindLineComments(ctx, number, marker)
	return found, cmp.Or(err, f.err)
}

func (f *fakeForge) CommentOnLines(ctx context.Context, number int64, head, text string, comments []forge.LineComment) error {
	f.reviews++
	if err := cmp.Or(f.err, f.linesErr); err != nil {
		return err
	}
	return f.Forge.CommentOnLines(ctx, number, head, text, comments)
}

func (f *fakeForge) SetStatus(ctx context.Context, s forge.Status) error {
	if f.err != nil {
		return f.err
	}
	return f.Forge.SetStatus(ctx, s)
}

func (f *fakeForge) FindStatus(ctx context.Context, commit, name string) (*forge.Status, error) {
	s, err := f.Forge.FindStatus(ctx, commit, name)
	return s, cmp.Or(err, f.err)
}

func (f *fakeForge) LineURL(commit, path string, line int) string {
	return f.Forge.LineURL(commit[:4], path, line)
}

// of returns the statuses of a commit in a context, in order.
func (f *fakeForge) of(commit, name string) []string {
	var out []string
	for _, s := range f.Statuses {
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
		Forge: f, Source: s, Loader: hub.NewLoader(hub.Options{}), DeletionLimit: member.DeletionLimit{Percent: 30, Objects: 10},
		Attempt: func(string) (func(), error) { return func() {}, nil },
		Fleet:   "prod", Base: "main", Plans: true, Rollouts: true, Interval: time.Minute, Pause: 0,
		Log: slog.New(slog.DiscardHandler),
	})
}

func pullRequest(number int64, head string) forge.PullRequest {
	return forge.PullRequest{Thread: forge.Thread{Number: number, URL: fmt.Sprint("https://git.example.com/pulls/", number), State: forge.Open}, Base: "main", Branch: "topic", Head: head, HeadRef: fmt.Sprintf("refs/pull/%d/head", number)}
}

// step makes the reviewer process the report once.
func (s *simulatedFleet) step(v *Reviewer) {
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
