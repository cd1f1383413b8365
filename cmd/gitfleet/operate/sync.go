package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/fulfilment"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// NewSync returns the command sync.
func NewSync() *cobra.Command {
	var at client.Connection
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "sync [PLACEMENT...]",
		Short: "Poll the repository and reconcile now",
		Long: `Sync polls the repository now, and has the clusters of the named placements, or
of all, compare their objects with Git and retry at once what failed.

With --wait it returns when the newest commit is applied and available on every
cluster that the placements ask for, or when that cannot happen unless a user
acts, with the reason. Until then it shows what is in progress. A cluster that
does not answer, or cannot be chosen because it is not connected, is waited for;
one that another fleet has claimed is not available. If the daemon stops
responding, the request is repeated until the timeout.

The result also says which placements select no cluster or no object, and how
many objects differ from Git all the same, for example by a field that Git has
removed and that somebody else owns.

Exit code 0 when everything is available, or nothing is asked for; 1 when it is
not; 2 when the daemon or the repository could not be reached.`,
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			names, err := placementsOf(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			orders := []reconciler.Order{{}} // all placements
			if len(names) > 0 {
				orders = nil
			}
			for _, name := range names {
				orders = append(orders, reconciler.Order{Subject: name})
			}
			commit := ""
			for _, o := range orders {
				a, err := c.Act(cmd.Context(), "sync", o)
				if err != nil {
					return err
				}
				if a.PollError != "" {
					return fmt.Errorf("the repository cannot be read: %s", a.PollError)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "the repository is at %s; %s\n", cmp.Or(output.ShortHash(a.Commit), "<none>"), a.Message)
				commit = a.Commit
			}
			if !wait {
				return nil
			}
			return await(cmd.Context(), c, cmd.OutOrStdout(), cmd.ErrOrStderr(), names, commit, timeout)
		}),
	}
	at.Bind(cmd.Flags())
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the newest commit is applied and available")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait")
	return cmd
}

// await waits until a commit, or a newer one, is available. It prints the progress to errOut, and
// the result to out.
func await(ctx context.Context, c *client.Client, out, errOut io.Writer, placements []string, commit string, timeout time.Duration) error {
	var lines []string
	v, _, err := waitFor(ctx, syncReports(c, commit), timeout, errOut, func(r *syncReport) (v outcome, now string) {
		if r.before {
			lines = []string{"commit " + output.ShortHash(commit) + " is not in force yet: " + cmp.Or(output.ShortHash(r.Source.InForce.Hash), "<none>") + " is"}
			return pending, lines[0]
		}
		v, lines, now = progressOf(r.Report, placements, commit)
		return v, now
	})
	if err != nil {
		return err
	}
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
	switch v {
	case met:
		return nil
	case pending:
		fmt.Fprintf(out, "not available after %s\n", timeout)
	}
	return exit.Attention
}

// A syncReport is a report, which may be from before the commit that is waited for.
type syncReport struct {
	*status.Report
	// before says that the newest commit of the report is an ancestor of the one that is waited for: another replica may
	// have answered.
	before bool
}

// syncReports returns a feed of reports. Commits are compared, not their times: two may be pushed within a second.
func syncReports(c *client.Client, commit string) client.Feed[syncReport] {
	ancestors := map[string]bool{} // whether a commit is an ancestor of the one that is waited for
	return func(ctx context.Context, after string) (*syncReport, string, error) {
		r, number, err := c.Reports(client.Subject{})(ctx, after)
		if err != nil {
			return nil, "", err
		}
		newest := r.Source.Newest.Hash
		if newest == "" || newest == commit || r.Source.InForce.Hash == commit {
			return &syncReport{Report: r}, number, nil
		}
		before, known := ancestors[newest]
		if !known {
			before, err = c.Contains(ctx, commit, newest)
			if answer, ok := errors.AsType[*client.ResponseError](err); ok && answer.Code == server.StatusUnknownCommit {
				return &syncReport{r, true}, number, nil // it does not have the commit yet
			}
			if err != nil {
				return nil, "", err
			}
			ancestors[newest] = before
		}
		return &syncReport{r, before}, number, nil
	}
}

// progressOf returns whether a commit, or a newer one, is available, for some placements, or for all
// if none is named. lines are the result, and now describes in one line what is in progress.
func progressOf(r *status.Report, placements []string, commit string) (v outcome, lines []string, now string) {
	s := r.Source
	if s.InForce.Hash == "" || s.Newest.Hash != commit && s.InForce.Hash != commit && s.Git.Head == commit {
		reading := "commit " + output.ShortHash(commit) + " is being read"
		return pending, []string{reading}, reading
	}
	if problems := overview.NewRefused(s).Problems; s.Newest.Hash != s.InForce.Hash && len(problems) > 0 {
		lines = append(lines, overview.RefusedText(s))
		for _, p := range problems {
			lines = append(lines, "  "+p)
		}
		return impossible, lines, ""
	}
	if s.Newest.Hash != s.InForce.Hash && len(s.Fetches) > 0 {
		waits := overview.RefusedText(s)
		return pending, []string{waits}, waits
	}
	var missing fulfilment.Tally
	more := 0
	w := newRemainder(r, status.ToBeAvailable)
	var done []*status.Detail
	for _, d := range r.Details {
		if len(placements) > 0 && !slices.Contains(placements, d.Placement) {
			continue
		}
		left, of := w.of(d)
		missing.Merge(of)
		lines = append(lines, left...)
		switch {
		case of.Fulfilled():
			done = append(done, d)
		case of.Continues() && now == "":
			now = w.progress(d, r, left)
		default:
			more++
		}
	}
	if missing.Fulfilled() {
		return met, doneText(r, placements, done), now
	}
	lines = append(lines, w.why()...)
	if !missing.Continues() {
		return impossible, lines, now
	}
	if more > 0 && now != "" {
		now += "; and " + output.Count(more, "more placement")
	}
	return pending, lines, now
}

// doneText says that the commit in force is applied and available, and which placements have nothing to apply.
func doneText(r *status.Report, placements []string, done []*status.Detail) []string {
	var nothing []string
	for _, d := range done {
		if why := wantsNothing(d); why != "" {
			nothing = append(nothing, d.Placement+" "+why)
		}
	}
	for _, name := range placements {
		if !slices.ContainsFunc(done, func(d *status.Detail) bool { return d.Placement == name }) {
			nothing = append(nothing, name+" is no longer in the repository, and nothing of it is left")
		}
	}
	text := "commit " + output.ShortHash(r.Source.InForce.Hash) + " is applied and available"
	switch {
	case len(done) == 0 && len(placements) == 0:
		text = "commit " + output.ShortHash(r.Source.InForce.Hash) + " is in force, and has no placements: there is nothing to apply"
	case len(nothing) == max(len(done), len(placements)):
		text = "commit " + output.ShortHash(r.Source.InForce.Hash) + " is in force, and there is nothing to apply"
	}
	return append([]string{text + differing(r, placements)}, nothing...)
}

// differing says how many objects differ from Git although they are applied, such as by a field
// that Git has removed and that somebody else owns; empty if none does.
func differing(r *status.Report, placements []string) string {
	n := 0
	for i := range r.Drifts {
		if d := &r.Drifts[i]; (len(placements) == 0 || slices.Contains(placements, d.Placement)) && d.Differs() {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 object differs from Git, see gitfleet drift list"
	}
	return fmt.Sprintf("; %d objects differ from Git, see gitfleet drift list", n)
}
