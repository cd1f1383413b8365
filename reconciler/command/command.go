// Package command executes the commands that people write in comments on pull requests, such as
// "/gitfleet hold".
//
// A [Commander] reads recent comments, as long as there is a pull request on which commands have an effect. It executes a
// command of a user who may write to the repository, and answers it with a comment. The answer contains the ID of the comment
// that has the command, so that a command is not executed again once it is answered, also after a restart. If the process ends
// before it could answer, it executes the command again: therefore executing a command twice has the same effect as executing it
// once. The history records what was done, and for whom.
package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/reconciler/approval"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/poll"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Forge is one repository on a forge.
type Forge interface {
	ListRemarks(ctx context.Context, since time.Time) ([]forge.Remark, error)
	MayWrite(ctx context.Context, r forge.Remark) (bool, error)
	PullRequest(ctx context.Context, number int64) (forge.PullRequest, error)
	FindComment(ctx context.Context, number int64, marker string) (*forge.Comment, error)
	AddComment(ctx context.Context, number int64, body string) (forge.Comment, error)
}

// Proposals are the pull requests of drift; see [proposal.Proposer].
type Proposals interface {
	Follows() bool
	Hold(ctx context.Context, name string, number int64, by string, on bool) (answer string, err error)
	Revert(ctx context.Context, name string, number int64, by string) (answer string, err error)
}

// Plans are those of open pull requests; see the Reviewer of package review.
type Plans interface {
	Follows() bool
	// PlanAgain makes a pull request be planned again, and reports whether it is planned at all.
	PlanAgain(number int64) bool
}

// Runs are the update runs whose stages may be approved; see the Approver of package approval.
type Runs interface {
	Follows() bool
	// Comment approves a stage of the runs with the content of a pull request, as the arguments of a command say.
	Comment(ctx context.Context, pr forge.PullRequest, author forge.Remark, by, args string) (answer string, err error)
}

// Config configures a Commander.
type Config struct {
	Forge     Forge
	Proposals Proposals
	// Plans is nil if pull requests are not planned.
	Plans Plans
	Runs  Runs
	// Fleet is the name of the fleet, and Base the tracked branch.
	Fleet, Base string
	// Record adds what people did to the history.
	Record func(...history.Entry)
	// Interval is the time between two lists of comments.
	Interval time.Duration
	Log      *slog.Logger
}

const (
	// word begins a command. It is the first word of a comment. approve is the only command with arguments.
	word    = "/gitfleet"
	approve = "approve"
	// maxAge is how old a command may be, for instance after gitfleet has not run for a while.
	maxAge = time.Hour
	// overlap is the time of which comments are read again, since those of one moment may not be listed in order.
	overlap = 10 * time.Minute
	// maxCommands is the maximum number of commands that are executed in one pass.
	maxCommands = 20
	// maxAttempts is how often a command is tried that fails on the forge, and refusalTimeout how long one is that is refused for
	// now.
	maxAttempts    = 5
	refusalTimeout = 30 * time.Minute
)

// A Commander executes commands.
type Commander struct {
	cfg  Config
	loop poll.Loop

	// The fields below belong to Run's goroutine.

	// since is the time from which comments are read.
	since time.Time
	// done are the comments that need nothing more, and failed has the backoff of commands that could not be executed.
	done   map[int64]time.Time
	failed map[int64]*poll.Backoff
	retry  poll.Backoff
	// hidden says that the token may not ask who may write to the repository.
	hidden bool
}

// New returns a Commander that does nothing until it runs.
func New(cfg Config) *Commander {
	return &Commander{cfg: cfg, loop: poll.NewLoop(), done: map[int64]time.Time{}, failed: map[int64]*poll.Backoff{}}
}

// Wake causes comments to be read soon. It never blocks, and any goroutine may call it. On a nil Commander it does nothing.
func (c *Commander) Wake() {
	if c != nil {
		c.loop.Wake()
	}
}

// Run works until ctx is done. An error of the forge does not end it: it is logged, and the request is tried again.
func (c *Commander) Run(ctx context.Context) error {
	c.loop.Run(ctx, c.cfg.Interval, c.pass)
	return nil
}

// pass executes the commands in comments that are new, and returns how long the next pass has to wait.
func (c *Commander) pass(ctx context.Context, now time.Time) time.Duration {
	if c.retry.Wait(now) <= 0 && (c.cfg.Proposals.Follows() || c.cfg.Plans != nil && c.cfg.Plans.Follows() || c.cfg.Runs.Follows()) {
		c.retry.Record(ctx, c.read(ctx, now), now, c.cfg.Log, "commands in comments are not executed", "commands in comments are executed again")
	}
	return c.retry.Wait(now)
}

// read reads the comments, and executes the commands in them. It returns only errors that every request is likely to meet.
func (c *Commander) read(ctx context.Context, now time.Time) error {
	if oldest := now.Add(-maxAge); c.since.Before(oldest) {
		c.since = oldest
	}
	list, err := c.cfg.Forge.ListRemarks(ctx, c.since)
	if err != nil {
		return err
	}
	executed, waiting := 0, map[int64]bool{}
	for _, r := range list {
		if _, known := c.done[r.ID]; known {
			continue
		}
		if verb, is := parse(r.Body); is {
			if failed := c.failed[r.ID]; waiting[r.Number] || failed != nil && failed.Wait(now) > 0 {
				waiting[r.Number] = true // the commands on one pull request are executed in their order
				continue
			}
			if executed++; executed > maxCommands {
				return nil // the others in the next pass
			}
			err := c.execute(ctx, r, verb)
			if err != nil && (ctx.Err() != nil || forge.IsGeneral(err)) {
				return err
			}
			if err != nil && !c.givesUp(ctx, r, err, now) {
				waiting[r.Number] = true
				continue
			}
		}
		delete(c.failed, r.ID)
		c.done[r.ID] = r.At
		if from := r.At.Add(-overlap); from.After(c.since) && len(waiting) == 0 {
			c.since = from
		}
	}
	for id, at := range c.done {
		if at.Before(c.since) {
			delete(c.done, id)
		}
	}
	return nil
}

// givesUp records that a command could not be executed, and reports whether it is not tried again. Then the pull request says
// so, if its author may give commands.
func (c *Commander) givesUp(ctx context.Context, r forge.Remark, err error, now time.Time) bool {
	failed := c.failed[r.ID]
	if failed == nil {
		failed = &poll.Backoff{}
		c.failed[r.ID] = failed
	}
	if failed.Fail(err, now) {
		c.cfg.Log.Warn("a command in a comment is not executed; trying again", "pullRequest", r.Number, "by", r.Author, "err", err)
	}
	refused, _ := errors.AsType[*proposal.RefusedError](err)
	if refused != nil && now.Sub(r.At) < refusalTimeout || refused == nil && failed.Failures() < maxAttempts {
		return false
	}
	c.cfg.Log.Warn("a command in a comment is given up", "pullRequest", r.Number, "by", r.Author, "err", err)
	if tried, ok := errors.AsType[*executionError](err); ok {
		if err := c.answer(ctx, r, "Nothing was done, also after several attempts: "+markdown.Code(tried.Error())); err != nil {
			c.cfg.Log.Warn("that a command was given up is not written to the pull request", "pullRequest", r.Number, "err", err)
		}
	}
	return true
}

// An executionError is why the command of a user who may give one could not be executed.
type executionError struct{ error }

func (e *executionError) Unwrap() error { return e.error }

// answer answers a command.
func (c *Commander) answer(ctx context.Context, r forge.Remark, text string) error {
	_, err := c.cfg.Forge.AddComment(ctx, r.Number, text+"\n\n"+c.answerMarker(r)+"\n")
	return err
}

// answerMarker identifies the answer to a command.
func (c *Commander) answerMarker(r forge.Remark) string {
	return fmt.Sprintf("<!-- gitfleet: answers %s %d -->", c.cfg.Fleet, r.ID)
}

// sayHidden says that no command can be executed, since the token may not ask who may write to the repository: in the log once,
// and once on a pull request on which somebody gives a command.
func (c *Commander) sayHidden(ctx context.Context, r forge.Remark, err error) error {
	if !c.hidden {
		c.hidden = true
		c.cfg.Log.Warn("commands in comments are not executed, since the token may not ask who may write to the repository", "err", err)
	}
	marker := fmt.Sprintf("<!-- gitfleet: executes no commands %s -->", c.cfg.Fleet)
	if found, err := c.cfg.Forge.FindComment(ctx, r.Number, marker); err != nil || found != nil {
		return err
	}
	_, err = c.cfg.Forge.AddComment(ctx, r.Number, "Commands in comments are not executed here: the token of gitfleet may not ask who may write to the repository. "+
		"Use `gitfleet proposals`, close or merge the pull request, or set its labels.\n\n"+marker+"\n")
	return err
}

// parse returns the command in a comment: what follows the word at its beginning.
func parse(body string) (verb string, is bool) {
	line, _, _ := strings.Cut(strings.TrimSpace(body), "\n")
	words := strings.Fields(line)
	if len(words) == 0 || words[0] != word {
		return "", false
	}
	return strings.Join(words[1:], " "), true
}

// A call is a command on a pull request.
type call struct {
	remark forge.Remark
	pr     forge.PullRequest
	// change names the change of a pull request of drift; empty for others.
	change string
	// by is who wrote it, and where.
	by string
}

// commands are all commands.
var commands = []struct {
	verb string
	// drift says that it is for pull requests of drift only, and open that it is for open ones only.
	drift, open bool
	does        string
	do          func(c *Commander, ctx context.Context, x call) (answer string, err error)
}{
	{"plan", false, false, "plans the pull request again", (*Commander).plan},
	{"hold", true, true, "keeps the object as it is, until `/gitfleet unhold`", func(c *Commander, ctx context.Context, x call) (string, error) {
		return c.cfg.Proposals.Hold(ctx, x.change, x.pr.Number, x.by, true)
	}},
	{"unhold", true, false, "removes the label that keeps the object as it is", func(c *Commander, ctx context.Context, x call) (string, error) {
		return c.cfg.Proposals.Hold(ctx, x.change, x.pr.Number, x.by, false)
	}},
	{"revert", true, true, "closes the pull request and reverts the change on the clusters", func(c *Commander, ctx context.Context, x call) (string, error) {
		return c.cfg.Proposals.Revert(ctx, x.change, x.pr.Number, x.by)
	}},
}

// execute executes a command unless it was answered before, and answers it. A comment on a pull request that is none of the
// fleet's, or by somebody who may not write to the repository, is left alone.
func (c *Commander) execute(ctx context.Context, r forge.Remark, verb string) error {
	pr, err := c.cfg.Forge.PullRequest(ctx, r.Number)
	if err != nil {
		return err
	}
	x := call{remark: r, pr: pr, change: proposal.ChangeOf(pr, c.cfg.Fleet), by: fmt.Sprintf("%s (%s)", r.Author, pr.URL)}
	if !c.concerns(x, verb) {
		return nil
	}
	may, err := c.cfg.Forge.MayWrite(ctx, r)
	if errors.Is(err, forge.ErrPermissionsHidden) {
		return c.sayHidden(ctx, r, err)
	}
	if err != nil {
		return err
	}
	if c.hidden = false; !may {
		c.cfg.Log.Info("command in a comment left alone: its author may not write to the repository", "url", pr.URL, "by", r.Author)
		return nil
	}
	if found, err := c.cfg.Forge.FindComment(ctx, r.Number, c.answerMarker(r)); err != nil || found != nil {
		return err
	}
	answer, err := c.run(ctx, x, verb)
	if err != nil {
		return &executionError{err}
	}
	c.cfg.Log.Info("command in a comment executed", "url", pr.URL, "command", verb, "by", r.Author)
	return c.answer(ctx, r, answer)
}

// concerns reports whether a command is looked at on a pull request: on one of drift of this fleet, or on an open one that may be
// planned.
func (c *Commander) concerns(x call, verb string) bool {
	open := x.pr.State == forge.Open
	switch name, _, _ := strings.Cut(verb, " "); {
	case x.pr.Base != c.cfg.Base:
		return false
	case name == approve:
		return true
	case x.change == "":
		return open && c.cfg.Plans != nil && !proposal.IsOfDrift(x.pr)
	}
	for _, command := range commands {
		if command.verb == verb && command.open {
			return open
		}
	}
	return true
}

// run executes a command, and returns the answer. An error is one of the forge; a refusal is an answer.
func (c *Commander) run(ctx context.Context, x call, verb string) (string, error) {
	if verb == "help" {
		return help(x), nil
	}
	if name, args, _ := strings.Cut(verb, " "); name == approve {
		text, err := c.cfg.Runs.Comment(ctx, x.pr, x.remark, x.by, args)
		if refused, ok := errors.AsType[*approval.RefusedError](err); ok {
			return "Nothing was done: " + markdown.Code(refused.Error()), nil
		}
		return text, err
	}
	for _, command := range commands {
		if command.verb != verb {
			continue
		}
		if command.drift && x.change == "" {
			return fmt.Sprintf("%s is only for pull requests of drift.\n\n%s", markdown.Code(word+" "+verb), help(x)), nil
		}
		text, err := command.do(c, ctx, x)
		refused, _ := errors.AsType[*proposal.RefusedError](err)
		_, unknown := errors.AsType[*status.UnknownError](err)
		switch {
		case unknown:
			return "Nothing was done: no cluster holds this change any more.", nil
		case refused != nil && !refused.Temporary:
			return "Nothing was done: " + markdown.Code(err.Error()), nil
		}
		return text, err
	}
	return fmt.Sprintf("There is no command %s.\n\n%s", markdown.Code(forge.Shorten(word+" "+verb, 100)), help(x)), nil
}

// help lists the commands that have an effect on a pull request.
func help(x call) string {
	lines := []string{"The commands, for users who may write to the repository:", ""}
	for _, command := range commands {
		if !command.drift || x.change != "" {
			lines = append(lines, fmt.Sprintf("- %s %s", markdown.Code(word+" "+command.verb), command.does))
		}
	}
	lines = append(lines, fmt.Sprintf("- %s once it is merged, approves a stage of the update runs with its content; with `--reject --reason TEXT` it rejects them", markdown.Code(word+" "+approve+" --stage NAME")))
	return strings.Join(lines, "\n")
}

// plan makes a pull request be planned again.
func (c *Commander) plan(_ context.Context, x call) (string, error) {
	if c.cfg.Plans == nil || !c.cfg.Plans.PlanAgain(x.pr.Number) {
		return "Nothing was done: this pull request is not planned.", nil
	}
	c.cfg.Record(history.Entry{Kind: history.Action, Event: history.PlanRequested, By: x.by, Message: x.pr.URL})
	return "It is planned again.", nil
}
