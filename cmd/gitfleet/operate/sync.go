package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// NewSync returns the command sync.
func NewSync() *cobra.Command {
	var at client.Connection
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "sync [crp/NAME]",
		Short: "Poll the repository and reconcile now",
		Long: `Sync polls the repository now, and has the clusters of one placement, or all,
compare their objects with Git and retry at once what failed.

With --wait it returns when the newest commit is applied and available, and says
why if that will not happen by itself. Until then it shows what is in progress.
Exit code 0 when everything is available, 1 when it is not, 2 when the daemon or
the repository could not be reached.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := reconciler.Order{By: client.User()}
			c, err := at.Client()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if o.Subject, err = c.Placement(cmd.Context(), args[0]); err != nil {
					return err
				}
			}
			a, err := c.Act(cmd.Context(), "sync", o)
			if err != nil {
				return err
			}
			if a.Trouble != "" {
				return fmt.Errorf("the repository cannot be read: %s", a.Trouble)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the repository is at %s; %s\n", cmp.Or(output.ShortHash(a.Commit), "<none>"), a.Said)
			if !wait {
				return nil
			}
			return await(cmd.Context(), c, cmd.OutOrStdout(), cmd.ErrOrStderr(), o.Subject, a.Commit, timeout)
		},
	}
	at.Bind(cmd.Flags())
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the newest commit is applied and available")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait")
	return cmd
}

// await waits until a commit, or a newer one, is available. It prints the progress to errOut, and
// the result to out.
func await(ctx context.Context, c *client.Client, out, errOut io.Writer, placement, commit string, timeout time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var p progress
	shown := output.NewProgressLine(errOut)
	err := c.Reports(client.Part{}).Follow(waiting, func(r *status.Report) (bool, error) {
		if p = progressOf(r, placement, commit); p.done || p.stuck {
			return false, nil
		}
		shown.Show(p.now)
		return true, nil
	})
	shown.End()
	late := errors.Is(waiting.Err(), context.DeadlineExceeded)
	if err != nil && !late {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, line := range p.lines {
		fmt.Fprintln(out, line)
	}
	if p.done {
		return nil
	}
	if late && !p.stuck {
		fmt.Fprintf(out, "not available after %s\n", timeout)
	}
	return exit.Differences
}

// A progress is the progress of the rollouts of a commit.
type progress struct {
	// done says that it is available, and stuck that it will not become available by itself.
	done, stuck bool
	// lines are the result, and now describes in one line what is in progress.
	lines []string
	now   string
}

// progressOf returns the progress of a commit, or of a newer one, for one placement, or for all
// if placement is empty.
func progressOf(r *status.Report, placement, commit string) progress {
	s := r.Source
	if s.InForce.Hash == "" || s.Newest.Hash != commit && s.InForce.Hash != commit && s.Git.Head == commit {
		reading := "commit " + output.ShortHash(commit) + " is being read"
		return progress{lines: []string{reading}, now: reading}
	}
	if s.Newest.Hash != s.InForce.Hash && (len(s.Problems) > 0 || s.LoadError != "") {
		return progress{stuck: true, lines: refusedLines(s)}
	}
	p := progress{done: true}
	ahead := false // something still changes by itself
	more := 0
	denied := missingPermissionsByMember(r)
	incomplete := map[string]bool{} // by cluster
	statuses, members := overview.PlacementStatuses(r), overview.MemberStatesOf(r)
	for _, d := range r.Details {
		if placement != "" && d.Placement != placement {
			continue
		}
		lines, moving := remaining(d, statuses[d.Placement], members, incomplete)
		p.lines = append(p.lines, lines...)
		p.done = p.done && len(lines) == 0
		ahead = ahead || moving
		switch {
		case moving && p.now == "":
			o := overview.NewPlacement(d, statuses[d.Placement], members)
			p.now = o.Sentence() + absences(d, r)
		case len(lines) > 0:
			more++
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(incomplete)) {
		if why := denied[cluster]; why != "" {
			p.lines = append(p.lines, cluster+": "+why)
		}
	}
	if more > 0 && p.now != "" {
		p.now += fmt.Sprintf("; and %d more placements", more)
	}
	if p.stuck = !p.done && !ahead; p.done {
		p.lines = []string{"commit " + output.ShortHash(s.InForce.Hash) + " is applied and available"}
	}
	return p
}

// missingPermissionsByMember returns the missing permissions, by member.
func missingPermissionsByMember(r *status.Report) map[string]string {
	out := map[string]string{}
	for _, c := range r.Clusters {
		if cond := overview.MissingPermissions(c); cond != nil {
			out[c.Name] = cond.Message
		}
	}
	return out
}

// refusedLines describes the refused commit and its problems, one line for each.
func refusedLines(s status.Source) []string {
	lines := []string{overview.RefusedText(s)}
	for _, p := range s.Problems {
		lines = append(lines, "  "+p.Marked())
	}
	if s.LoadError != "" {
		lines = append(lines, "  "+s.LoadError)
	}
	return lines
}

// remaining returns a line for each thing that is not done yet for a placement, and marks its
// clusters as incomplete. moving is false if nothing more happens until a user acts.
func remaining(d *status.Detail, s *api.PlacementStatus, members overview.MemberStates, incomplete map[string]bool) (lines []string, moving bool) {
	if s == nil {
		s = &api.PlacementStatus{} // removed from Git, and being removed from the clusters
	}
	for _, c := range s.Conditions {
		if strings.HasSuffix(c.Type, api.Scheduled) && c.Status != metav1.ConditionTrue {
			lines = append(lines, d.Placement+": "+c.Message)
			moving = moving || c.Status == metav1.ConditionUnknown
		}
	}
	on, at := overview.PerCluster(s), " on "
	for i := range d.Clusters {
		c := &d.Clusters[i]
		before := len(lines)
		usable := members.Of(c.Cluster) != overview.Forbidden // until somebody grants permissions
		switch why := overview.FailureOf(c, on[c.Cluster]); {
		case c.Suspended != "" && (c.Held != "" || !c.Available || c.Removing):
			lines = append(lines, d.Placement+at+c.Cluster+": "+c.Suspended)
		case len(c.Braked) > 0:
			lines = append(lines, d.Placement+at+c.Cluster+": "+overview.HeldText(d.Placement, c.Braked))
		case len(c.DeletionErrors) > 0:
			for _, text := range c.DeletionErrors {
				lines = append(lines, d.Placement+at+c.Cluster+": cannot delete "+text)
			}
		case why != "":
			lines = append(lines, d.Placement+at+c.Cluster+" failed: "+why)
		case c.Deleting > 0:
			lines, moving = append(lines, fmt.Sprintf("%s on %s: deleting %s, which a commit allows", d.Placement, c.Cluster, output.Count(c.Deleting, "object"))), moving || usable
		case c.Held != "":
			lines = append(lines, d.Placement+at+c.Cluster+" waits: "+c.Held)
			moving = moving || d.Stopped == "" && usable
		case c.Removing && len(c.Lingering) > 0:
			lines, moving = append(lines, fmt.Sprintf("%s is being removed from %s, and waits for what was deleted to be gone: %s", d.Placement, c.Cluster, strings.Join(c.Lingering, ", "))), moving || usable
		case c.Removing:
			lines, moving = append(lines, d.Placement+" is being removed from "+c.Cluster), moving || usable
		case len(c.Lingering) > 0:
			lines, moving = append(lines, fmt.Sprintf("%s%s%s waits for what was deleted to be gone: %s", d.Placement, at, c.Cluster, strings.Join(c.Lingering, ", "))), moving || usable
		case c.Progressing:
			lines, moving = append(lines, d.Placement+at+c.Cluster+" is progressing: "+cmp.Or(overview.NotAvailable(on[c.Cluster]), "not available yet")), moving || usable
		case !c.Available:
			lines, moving = append(lines, d.Placement+at+c.Cluster+": "+problemOf(on[c.Cluster])), moving || usable
		}
		incomplete[c.Cluster] = incomplete[c.Cluster] || len(lines) > before
	}
	return lines, moving
}

// problemOf returns why something is not applied on a cluster, or not available: the first object
// that fails, or else the message of the first condition that is not true.
func problemOf(c *api.PerClusterPlacementStatus) string {
	const unknown = "not applied yet"
	if c == nil {
		return unknown
	}
	i := slices.IndexFunc(c.Conditions, func(one metav1.Condition) bool { return one.Status != metav1.ConditionTrue })
	switch {
	case i < 0:
		return unknown
	case len(c.FailedPlacements) > 0:
		f := &c.FailedPlacements[0]
		return f.ID().String() + ": " + overview.Cause(f.Condition.Message)
	}
	return cmp.Or(c.Conditions[i].Message, unknown)
}
