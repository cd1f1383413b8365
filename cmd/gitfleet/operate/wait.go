package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// NewWait returns the command wait.
func NewWait() *cobra.Command {
	var at client.Connection
	var w condition
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait [PLACEMENT...]",
		Short: "Wait until placements are applied or available",
		Long: `Wait until the named placements, or all, have their newest content on every
cluster that their policies ask for, and it is available there.

With --commit wait until that commit, or one that descends from it, is in force
as well. If a newer commit comes meanwhile, its content is what is waited for.

A cluster that does not answer, or cannot be chosen because it is not connected,
is waited for. A placement whose policy matches no cluster, or whose selectors
match no object, has nothing to wait for, and the result says so.

Exit codes: 0 available; 1 not available in time, or it cannot become so: the
commit is refused or no longer in the history, deletions are blocked, a cluster
is suspended, too few clusters can be chosen, or nothing is left to wait for but
members on which permissions are missing or that another fleet has claimed; 2
error.`,
		Example: `  gitfleet wait crp/web --for=available --commit "$(git rev-parse HEAD)"
  gitfleet wait crp/web rp/shop/web --for=applied --timeout 10m
  gitfleet wait --commit "$(git rev-parse HEAD)"`,
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			if err := w.validate(); err != nil {
				return err
			}
			var err error
			if w.placements, err = placementsOf(cmd.Context(), c, args); err != nil {
				return err
			}
			return w.wait(cmd.Context(), c, timeout, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	at.Bind(cmd.Flags())
	cmd.Flags().StringVar(&w.state, "for", "available", "applied or available")
	cmd.Flags().SetAnnotation("for", output.ValuesAnnotation, []string{"applied", "available"})
	cmd.Flags().StringVar(&w.commit, "commit", "", "commit that has to be in force, or a descendant of it: its hash, full or abbreviated")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait")
	return cmd
}

// A condition is the condition that the command waits for.
type condition struct {
	placements    []string // all if it is empty
	state, commit string

	inForce bool     // the commit, or a descendant, has been in force before
	unmet   []string // the placements that were last pending
}

// minHash is the minimum length of an abbreviated hash.
const minHash = 7

func (w *condition) validate() error {
	w.commit = strings.ToLower(w.commit)
	switch {
	case w.state != "applied" && w.state != "available":
		return fmt.Errorf("--for=%s: use applied or available", w.state)
	case w.commit != "" && len(w.commit) < minHash:
		return fmt.Errorf("--commit %s: needs at least %d digits of the hash", w.commit, minHash)
	}
	return nil
}

// wait prints to errOut what it waits for, whenever that changes, and the result to out.
func (w *condition) wait(ctx context.Context, c *client.Client, timeout time.Duration, out, errOut io.Writer) error {
	v, message, err := waitFor(ctx, w.reports(c), timeout, errOut, w.evaluate)
	switch {
	case err != nil:
		return err
	case v == met:
		_, err := fmt.Fprintln(out, message)
		return err
	case v == invalid:
		return errors.New(message)
	case v == pending:
		message = fmt.Sprintf("%s not %s after %s", w.subject(), w.state, timeout)
	}
	fmt.Fprintln(errOut, message)
	return exit.Attention
}

// subject names what was last pending, with its verb.
func (w *condition) subject() string {
	names := w.unmet
	if len(names) == 0 {
		names = w.placements
	}
	switch len(names) {
	case 0:
		return "the commit is"
	case 1:
		return names[0] + " is"
	}
	return forecast.FewOf(names) + " are"
}

// waitFor evaluates each value of a feed until the outcome is not pending, or the timeout is over.
// It shows on errOut what is pending. If the daemon stops responding, the request is repeated; the
// error is that of the last request, or of one that the daemon refuses.
func waitFor[T any](ctx context.Context, ask client.Feed[T], timeout time.Duration, errOut io.Writer, evaluate func(*T) (outcome, string)) (v outcome, message string, err error) {
	first, number, err := ask(ctx, "") // without the timeout, so that the state is known even if the timeout is very short
	if err != nil {
		return pending, "", err
	}
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	shown := output.NewProgressLine(errOut)
	defer shown.End()
	ends := func(now *T) bool {
		if v, message = evaluate(now); v == pending {
			shown.Show(message)
		}
		return v != pending
	}
	if ends(first) {
		return v, message, nil
	}
	for now, failure := range ask.All(waiting, number) {
		switch err = failure; {
		case client.IsRefusal(err):
			return pending, message, err
		case err != nil:
			shown.Show(err.Error())
		case ends(now):
			return v, message, nil
		}
	}
	return pending, message, cmp.Or(ctx.Err(), err)
}

// A waitReport has the parts of a report that a condition depends on.
type waitReport struct {
	*status.Report
	// inForce and newest say whether the commit in force, and the newest one, is the wanted commit
	// or a descendant of it.
	inForce, newest bool
}

// reports returns a feed of reports about the placement if it is only one, or of whole reports otherwise and while it does
// not exist.
func (w *condition) reports(c *client.Client) client.Feed[waitReport] {
	known := map[string]bool{} // by head, whether its history contains the commit
	contains := func(ctx context.Context, head string) (bool, error) {
		if answer, ok := known[head]; ok {
			return answer, nil
		}
		answer, err := c.Contains(ctx, head, w.commit)
		if err == nil {
			known[head] = answer
		}
		return answer, err
	}
	return func(ctx context.Context, after string) (*waitReport, string, error) {
		var of client.Subject
		if len(w.placements) == 1 {
			of.Placement = w.placements[0]
		}
		r, number, err := c.Reports(of)(ctx, after)
		if answer, ok := errors.AsType[*client.ResponseError](err); ok && answer.Code == http.StatusNotFound {
			r, number, err = c.Reports(client.Subject{})(ctx, after)
		}
		if err != nil {
			return nil, "", err
		}
		now := &waitReport{Report: r}
		if now.inForce, err = contains(ctx, r.Source.InForce.Hash); err != nil {
			return nil, "", err
		}
		now.newest, err = contains(ctx, r.Source.Newest.Hash)
		return now, number, err
	}
}

// An outcome is the state of a condition.
type outcome int

const (
	pending outcome = iota // not yet
	met
	impossible // it cannot become true
	invalid    // the placement does not exist
)

// evaluate returns the state of a condition, and describes it.
func (w *condition) evaluate(now *waitReport) (outcome, string) {
	w.unmet = nil
	if v, message := w.evaluateCommit(now); v != met {
		return v, message
	}
	r, goal := now.Report, status.ToBeAvailable
	if w.state == "applied" {
		goal = status.ToBeApplied
	}
	left, commit := newRemainder(r, goal), w.describeCommits(r.Source.InForce.Hash)
	messages := map[outcome][]string{}
	judge := func(name string, v outcome, message string) {
		messages[v] = append(messages[v], message)
		if v == pending {
			w.unmet = append(w.unmet, name)
		}
	}
	for _, d := range r.Details {
		_, declared := left.statuses[d.Placement]
		if all := len(w.placements) == 0; all || declared && slices.Contains(w.placements, d.Placement) {
			v, message := w.evaluatePlacement(left, d, r, commit)
			judge(d.Placement, v, message)
		}
	}
	for _, name := range w.placements {
		planned := slices.ContainsFunc(r.Details, func(d *status.Detail) bool { return d.Placement == name })
		switch _, declared := left.statuses[name]; {
		case !declared:
			judge(name, invalid, fmt.Sprintf("there is no placement %s at commit %s", name, output.ShortHash(r.Source.InForce.Hash)))
		case !planned:
			judge(name, pending, name+" is not planned yet")
		}
	}
	for _, v := range []outcome{invalid, pending, impossible} {
		if n := len(messages[v]); v == pending && n > 1 {
			return v, messages[v][0] + "; and " + output.Count(n-1, "more placement")
		} else if n > 0 {
			return v, strings.Join(messages[v], "\n")
		}
	}
	if len(messages[met]) == 0 {
		return met, "there are no placements at commit " + commit + ": there is nothing to wait for"
	}
	return met, strings.Join(messages[met], "\n")
}

// describeCommits names the commit in force, and the wanted one if it is a different one.
func (w *condition) describeCommits(hash string) string {
	if strings.HasPrefix(hash, w.commit) {
		return output.ShortHash(hash)
	}
	return fmt.Sprintf("%s, which came after %s", output.ShortHash(hash), output.ShortHash(w.commit))
}

// evaluateCommit returns whether the commit, or a descendant of it, is in force.
func (w *condition) evaluateCommit(now *waitReport) (outcome, string) {
	s := now.Source
	problem := ""
	if refused := overview.NewRefused(s).Problems; len(refused) > 0 {
		problem = refused[0]
	}
	switch {
	case s.InForce.Hash == "" && (w.commit == "" || w.inForce): // gitfleet was just restarted
		return pending, "no commit is in force yet"
	case now.inForce:
		w.inForce = true
		return met, ""
	case w.inForce:
		return impossible, fmt.Sprintf("commit %s is no longer in force: %s is, which does not descend from it", output.ShortHash(w.commit), output.ShortHash(s.InForce.Hash))
	case strings.HasPrefix(s.Newest.Hash, w.commit) && problem != "":
		return impossible, fmt.Sprintf("commit %s is refused: %s", output.ShortHash(w.commit), problem)
	case now.newest && problem != "":
		return pending, fmt.Sprintf("commit %s came after %s and is refused: %s", output.ShortHash(s.Newest.Hash), output.ShortHash(w.commit), problem)
	}
	return pending, fmt.Sprintf("commit %s is not in force yet: %s is", output.ShortHash(w.commit), cmp.Or(output.ShortHash(s.InForce.Hash), "<none>"))
}

// evaluatePlacement returns whether a placement has what is waited for. What was refused or has failed is retried, and waited for.
func (w *condition) evaluatePlacement(left *remainder, d *status.Detail, r *status.Report, commit string) (outcome, string) {
	lines, missing := left.of(d)
	switch nothing := wantsNothing(d); {
	case missing.Continues() || missing.Failed > 0:
		return pending, left.progress(d, r, lines)
	case !missing.Fulfilled():
		why := strings.TrimPrefix(strings.TrimPrefix(lines[0], d.Placement), ":")
		return impossible, fmt.Sprintf("%s is not %s:%s", d.Placement, w.state, why)
	case nothing != "":
		return met, d.Placement + " " + nothing + "; at commit " + commit
	}
	return met, fmt.Sprintf("%s is %s on %s at commit %s", d.Placement, w.state, output.Count(len(d.Clusters), "cluster"), commit)
}

// placementsOf returns the full names of placements, each once, in their order.
func placementsOf(ctx context.Context, c *client.Client, args []string) ([]string, error) {
	var names []string
	for _, arg := range args {
		name, err := c.Placement(ctx, arg)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// wantsNothing says why a placement that is fulfilled has nothing on any cluster; empty if it has something.
func wantsNothing(d *status.Detail) string {
	switch {
	case len(d.Clusters) == 0:
		return "selects no cluster, so that nothing of it is anywhere; gitfleet explain " + d.Placement + " says why"
	case d.Selected == 0:
		return "selects no object, so that nothing of it is on its " + output.Count(len(d.Clusters), "cluster")
	}
	return ""
}
