package review

import (
	"context"
	"io/fs"
	"log/slog"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/member"
)

// A Forge is one repository on a forge, accessed as one user.
type Forge interface {
	// ForgetList makes the next ListOpen request a new list.
	ForgetList()
	// ListOpen lists the open pull requests to a base branch, also those from forks.
	ListOpen(ctx context.Context, base string) ([]forge.PullRequest, error)
	// PullRequest returns the pull request with a number.
	PullRequest(ctx context.Context, number int64) (forge.PullRequest, error)
	// FindComment returns the first comment of that user with a marker; nil if there is none.
	FindComment(ctx context.Context, number int64, marker string) (*forge.Comment, error)
	AddComment(ctx context.Context, number int64, body string) (forge.Comment, error)
	EditComment(ctx context.Context, number, id int64, body string) error
	Edit(ctx context.Context, t forge.Thread, e forge.Edit) error
	// EnsureLabels creates the labels that the repository does not have.
	EnsureLabels(ctx context.Context, labels []forge.Label) error
	// FindLineComments returns the bodies of the comments on lines of that user with a marker.
	FindLineComments(ctx context.Context, number int64, marker string) ([]string, error)
	CommentOnLines(ctx context.Context, number int64, head, text string, comments []forge.LineComment) error
	SetStatus(ctx context.Context, s forge.Status) error
	// FindStatus returns the status of a commit with a name; nil if there is none.
	FindStatus(ctx context.Context, commit, name string) (*forge.Status, error)
	// LineURL returns the address at which a browser shows a line of a file of a commit.
	LineURL(commit, path string, line int) string
}

// A Source has the commits of pull requests.
type Source interface {
	// FetchRef fetches the commit of a reference.
	FetchRef(ctx context.Context, ref, commit string) error
	// Merge returns the files of a merge of two commits.
	Merge(ctx context.Context, base, head string) (fs.FS, error)
	// HeadLines returns where the head has lines of these files.
	HeadLines(ctx context.Context, base, head string, merged fs.FS, positions []gitsource.Position) ([]gitsource.HeadLine, error)
	Commit(ctx context.Context, hash string) (gitsource.Commit, error)
}

// Config configures a Reviewer.
type Config struct {
	Forge  Forge
	Source Source
	// Loader loads the merged files, with the limits of any commit. Only the Reviewer uses it.
	Loader *hub.Loader
	// FetchBase and FetchChart fetch a remote base and a chart that a pull request locks newly into the cache of Loader. If they
	// are nil, nothing is fetched.
	FetchBase  func(ctx context.Context, url, commit string) error
	FetchChart func(ctx context.Context, chart hub.RemoteChart) error
	// Attempt records that planning a commit begins, and returns the function to call when it
	// has ended. An error says that planning the commit has crashed the process before.
	Attempt func(commit string) (end func(), err error)
	// Try runs a trial on a member; nil runs none.
	Try func(ctx context.Context, t Trial) ([]member.Change, error)
	// DeletionLimit decides which deletions members block.
	DeletionLimit forecast.DeletionLimit
	// Fleet is the name of the fleet, and Base the tracked branch.
	Fleet, Base string
	// StatusFleet is part of the names of commit statuses, so that fleets that use the same
	// repository do not overwrite each other's; empty if there is only one.
	StatusFleet string
	// Plans enables plans on pull requests, and Rollouts statuses on the commits of the base.
	Plans, Rollouts bool
	// ForksLabel is the label with which a maintainer allows the present head of a pull request from a
	// fork to be planned. If it is empty, none from a fork is planned.
	ForksLabel string
	// AuthorSetsLabels says that on this forge the author of a pull request can set its labels, so
	// that none from a fork is planned.
	AuthorSetsLabels bool
	// Interval is the time between two lists of open pull requests, and Pause the time between
	// two plans.
	Interval, Pause time.Duration
	Log             *slog.Logger
}
