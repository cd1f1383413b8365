package proposal

import (
	"context"
	"io/fs"
	"log/slog"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A Forge is one repository on a forge; see [forge.Shared].
type Forge interface {
	ForgetList()
	ListOpen(ctx context.Context, base string) ([]forge.PullRequest, error)
	FindPullRequest(ctx context.Context, base, branch string) (*forge.PullRequest, error)
	OpenPullRequest(ctx context.Context, p forge.NewPullRequest) (forge.PullRequest, error)
	Edit(ctx context.Context, t forge.Thread, e forge.Edit) error
	Close(ctx context.Context, t forge.Thread, comment, body string) error
	ListIssues(ctx context.Context, label string, state forge.State) ([]forge.Thread, error)
	Issue(ctx context.Context, number int64) (*forge.Thread, error)
	OpenIssue(ctx context.Context, i forge.NewIssue) (forge.Thread, error)
	FindComment(ctx context.Context, number int64, marker string) (*forge.Comment, error)
	AddComment(ctx context.Context, number int64, body string) (forge.Comment, error)
	RequestReviewers(ctx context.Context, number int64, names []string) (refused []string, err error)
	EnsureLabels(ctx context.Context, labels []forge.Label) error
	LineURL(commit, path string, line int) string
}

// Branches are those of the repository; see [gitsource.Publisher].
type Branches interface {
	Publish(ctx context.Context, c gitsource.BranchCommit) (gitsource.BranchState, error)
	Remove(ctx context.Context, branch, marker string) error
	List(ctx context.Context, prefix string) ([]string, error)
}

// Config configures a Proposer. All fields must be set, except Reviewers, OwnersFiles and Undo, and Forge and Branches: without these
// no pull request is opened, and drift that an edit of the files could express stays on the
// cluster.
type Config struct {
	Forge    Forge
	Branches Branches
	// Fleet is the name of the fleet. Pull requests of other fleets are left alone.
	Fleet string
	// Base is the tracked branch.
	Base string
	// Files returns the tree of a commit.
	Files func(ctx context.Context, commit string) (fs.FS, error)
	// Load loads the tree of a commit.
	Load func(fs.FS) (*hub.Snapshot, error)
	// Undo returns what undoing all changes after one commit up to another does to the files of head. If it is nil, nothing is
	// offered to undo content that has failed in an update run.
	Undo func(ctx context.Context, head, later, earlier string) (*gitsource.Undone, error)
	// Contains reports whether commit is head or an ancestor of head.
	Contains func(ctx context.Context, head, commit string) (bool, error)
	// SetDriftDecisions receives the decisions about all held drift, by cluster. It never blocks.
	SetDriftDecisions func(map[string]protocol.DriftDecisions)
	// MinAge is how long drift has to last before a pull request is opened for it.
	MinAge time.Duration
	// ExpireAfter is how long a pull request or an issue waits for a decision before it is closed, and the object stays as it
	// is; zero if it waits for ever.
	ExpireAfter time.Duration
	// ByPlacement makes one pull request have all changes of a placement, instead of one change each.
	ByPlacement bool
	// Record adds what people decided to the history.
	Record func(...history.Entry)
	// Opened, if set, is called after a pull request was opened. It never blocks.
	Opened func()
	// Reviewers are the users and teams whose reviews of pull requests are requested, besides the owners of the changed files
	// in the first of OwnersFiles that the repository has.
	Reviewers, OwnersFiles []string
	// MaxOpen is the maximum number of pull requests and issues of the fleet that are open at
	// once.
	MaxOpen int
	// Interval is the time between two checks of the open pull requests.
	Interval time.Duration
	Log      *slog.Logger
}
