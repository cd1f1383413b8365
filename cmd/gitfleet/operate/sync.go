package operate

import (
	"cmp"
	"context"
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
		Use:   "sync [PLACEMENT]",
		Short: "Poll the repository and reconcile now",
		Long: `Sync polls the repository now, and has the clusters of one placement, or all,
compare their objects with Git and retry at once what failed.

With --wait it returns when the newest commit is applied and available, or when
that cannot happen unless a user acts, with the reason. Until then it shows what
is in progress. If the daemon stops responding, the request is repeated until
the timeout. The result also says how many objects differ from Git all the same,
for example by a field that Git has removed and that somebody else owns.

Exit code 0 when everything is available, 1 when it is not, 2 when the daemon or
the repository could not be reached.`,
		Args: cobra.MaximumNArgs(1),
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			var o reconciler.Order
			if len(args) > 0 {
				var err error
				if o.Subject, err = c.Placement(cmd.Context(), args[0]); err != nil {
					return err
				}
			}
			a, err := c.Act(cmd.Context(), "sync", o)
			if err != nil {
				return err
			}
			if a.PollError != "" {
				return fmt.Errorf("the repository cannot be read: %s", a.PollError)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the repository is at %s; %s\n", cmp.Or(output.ShortHash(a.Commit), "<none>"), a.Message)
			if !wait {
				return nil
			}
			return await(cmd.Context(), c, cmd.OutOrStdout(), cmd.ErrOrStderr(), o.Subject, a.Commit, timeout)
		}),
	}
	at.Bind(cmd.Flags())
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the newest commit is applied and available")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait")
	return cmd
}

// await waits until a commit, or a newer one, is available. It prints the progress to errOut, and
// the result to out.
func await(ctx context.Context, c *client.Client, out, errOut io.Writer, placement, commit string, timeout time.Duration) error {
	var lines []string
	v, _, err := waitFor(ctx, c.Reports(client.Subject{}), timeout, errOut, func(r *status.Report) (v outcome, now string) {
		v, lines, now = progressOf(r, placement, commit)
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

// progressOf returns whether a commit, or a newer one, is available, for one placement, or for all
// if placement is empty. lines are the result, and now describes in one line what is in progress.
func progressOf(r *status.Report, placement, commit string) (v outcome, lines []string, now string) {
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
	ahead := false // something still changes by itself
	more := 0
	denied := missingPermissionsByMember(r)
	incomplete := map[string]bool{} // by cluster
	statuses, members := overview.PlacementStatuses(r), overview.MemberStatesOf(r)
	for _, d := range r.Details {
		if placement != "" && d.Placement != placement {
			continue
		}
		left, moving := remaining(d, statuses[d.Placement], members, incomplete)
		lines = append(lines, left...)
		ahead = ahead || moving
		switch {
		case moving && now == "":
			o := overview.NewPlacement(d, statuses[d.Placement], members)
			now = o.Sentence() + absences(d, r)
		case len(left) > 0:
			more++
		}
	}
	if len(lines) == 0 {
		return met, []string{"commit " + output.ShortHash(s.InForce.Hash) + " is applied and available" + differing(r, placement)}, now
	}
	for _, cluster := range slices.Sorted(maps.Keys(incomplete)) {
		if why := denied[cluster]; why != "" {
			lines = append(lines, cluster+": "+why)
		}
	}
	if !ahead {
		return impossible, lines, now
	}
	if more > 0 && now != "" {
		now += fmt.Sprintf("; and %d more placements", more)
	}
	return pending, lines, now
}

// differing says how many objects differ from Git although they are applied, such as by a field
// that Git has removed and that somebody else owns; empty if none does.
func differing(r *status.Report, placement string) string {
	n := 0
	for i := range r.Drifts {
		if d := &r.Drifts[i]; (placement == "" || d.Placement == placement) && d.Differs() {
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

// remaining returns a line for each thing that is not done yet for a placement, and marks its
// clusters as incomplete. moving is false if nothing more happens until a user acts.
func remaining(d *status.Detail, s *api.PlacementStatus, members overview.MemberStates, incomplete map[string]bool) (lines []string, moving bool) {
	if s == nil {
		s = &api.PlacementStatus{} // removed from Git, and being removed from the clusters
	}
	if c := status.FirstUntrue(s.Conditions, api.Scheduled); c != nil {
		lines, moving = append(lines, d.Placement+": "+c.Message), c.Status == metav1.ConditionUnknown
	}
	on := overview.PerCluster(s)
	for i := range d.Clusters {
		c := &d.Clusters[i]
		at, before := d.Placement+" on "+c.Cluster, len(lines)
		byItself := true
		switch why := overview.FailureOf(c, on[c.Cluster]); {
		case c.Suspended != "" && (c.Waits != "" || !c.Available || c.Removing):
			lines, byItself = append(lines, at+": "+c.Suspended), false
		case len(c.Braked) > 0:
			lines, byItself = append(lines, at+": "+overview.HeldText(d.Placement, c.Braked)), false
		case len(c.DeletionErrors) > 0:
			for _, text := range c.DeletionErrors {
				lines = append(lines, at+": cannot delete "+text)
			}
			byItself = false
		case why != "":
			lines, byItself = append(lines, at+" failed: "+why), false
		case c.Deleting > 0:
			lines = append(lines, fmt.Sprintf("%s: deleting %s, which a commit allows", at, output.Count(c.Deleting, "object")))
		case c.Waits != "":
			lines, byItself = append(lines, at+" waits: "+c.Waits), d.Stopped == ""
		case c.Removing && len(c.Lingering) > 0:
			lines = append(lines, fmt.Sprintf("%s is being removed from %s, and waits for what was deleted to be gone: %s", d.Placement, c.Cluster, strings.Join(c.Lingering, ", ")))
		case c.Removing:
			lines = append(lines, d.Placement+" is being removed from "+c.Cluster)
		case len(c.Lingering) > 0:
			lines = append(lines, at+" waits for what was deleted to be gone: "+strings.Join(c.Lingering, ", "))
		case c.Progressing:
			lines = append(lines, at+" is progressing: "+cmp.Or(overview.NotAvailable(on[c.Cluster]), "not available yet"))
		case !c.Available:
			lines = append(lines, at+": "+problemOf(on[c.Cluster]))
		}
		if len(lines) > before {
			incomplete[c.Cluster] = true
			// A member that lacks permissions waits until somebody grants them.
			moving = moving || byItself && members.Of(c.Cluster) != overview.Forbidden
		}
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
	first := status.FirstUntrue(c.Conditions)
	switch {
	case first == nil:
		return unknown
	case len(c.FailedPlacements) > 0:
		f := &c.FailedPlacements[0]
		return f.ID().String() + ": " + overview.Cause(f.Condition.Message)
	}
	return cmp.Or(first.Message, unknown)
}
