package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

func newSync() *cobra.Command {
	var at connection
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "sync [crp/NAME]",
		Short: "Ask the repository now, and have clusters look again at what they hold",
		Long: `Sync polls the repository without waiting for its turn, and has the clusters of
one placement, or all, look again at what they hold and try at once what failed.

With --wait it returns when the newest commit is applied, and says why not if
that will not come by itself: exit code 0 when all is applied, 1 when it is not,
2 when the daemon or the repository could not be asked.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := reconciler.Order{By: person()}
			if len(args) > 0 {
				key, err := api.ParsePlacement(args[0])
				if err != nil {
					return err
				}
				o.Subject = key.String()
			}
			c, err := at.client()
			if err != nil {
				return err
			}
			a, err := c.act(cmd.Context(), "sync", o)
			if err != nil {
				return err
			}
			if a.Trouble != "" {
				return fmt.Errorf("the repository cannot be read: %s", a.Trouble)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the repository is at %s; %s\n", orNone(short(a.Commit)), a.Said)
			if !wait {
				return nil
			}
			return c.await(cmd.Context(), cmd.OutOrStdout(), o.Subject, a.Commit, timeout)
		},
	}
	at.bind(cmd.Flags())
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the newest commit is applied")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait")
	return cmd
}

// await follows the daemon until a commit, or a newer one, is applied.
func (c *client) await(ctx context.Context, out io.Writer, placement, commit string, timeout time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var p progress
	err := c.reports(part{}).follow(waiting, func(r *status.Report) (bool, error) {
		p = progressOf(r, placement, commit)
		return !p.done && !p.stuck, nil
	})
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
		fmt.Fprintf(out, "not applied after %s\n", timeout)
	}
	return exitCode(exitDifferences)
}

// A progress is how far a commit has got.
type progress struct {
	// done says that it is applied, stuck that it will not be by itself.
	done, stuck bool
	lines       []string
}

// progressOf says how far a commit, or a newer one, has got with one placement,
// or with all if none is named.
func progressOf(r *status.Report, placement, commit string) progress {
	s := r.Source
	if s.InForce.Hash == "" || s.Newest.Hash != commit && s.InForce.Hash != commit && s.Git.Head == commit {
		return progress{lines: []string{"commit " + short(commit) + " is being read"}}
	}
	if s.Newest.Hash != s.InForce.Hash && (len(s.Problems) > 0 || s.LoadError != "") {
		return progress{stuck: true, lines: refusedLines(s)}
	}
	p := progress{done: true}
	ahead := false // of something that comes by itself
	statuses := placementStatuses(r)
	for _, d := range r.Details {
		if placement != "" && d.Placement != placement {
			continue
		}
		lines, moving := unfinished(d, statuses[d.Placement])
		p.lines = append(p.lines, lines...)
		p.done = p.done && len(lines) == 0
		ahead = ahead || moving
	}
	if p.stuck = !p.done && !ahead; p.done {
		p.lines = []string{"commit " + short(s.InForce.Hash) + " is applied"}
	}
	return p
}

func refusedLines(s status.Source) []string {
	lines := []string{fmt.Sprintf("commit %s is refused; %s stays in force", short(s.Newest.Hash), orNone(short(s.InForce.Hash)))}
	for _, p := range s.Problems {
		lines = append(lines, "  "+p.Error())
	}
	if s.LoadError != "" {
		lines = append(lines, "  "+s.LoadError)
	}
	return lines
}

// unfinished says what is missing of a placement; moving is false if none of it
// comes by itself.
func unfinished(d *status.Detail, s *api.PlacementStatus) (lines []string, moving bool) {
	if s == nil {
		s = &api.PlacementStatus{} // gone from Git, and being removed
	}
	for _, c := range s.Conditions {
		if strings.HasSuffix(c.Type, api.Scheduled) && c.Status != metav1.ConditionTrue {
			lines = append(lines, d.Placement+": "+c.Message)
			moving = moving || c.Status == metav1.ConditionUnknown
		}
	}
	on := map[string]*api.PerClusterPlacementStatus{}
	for i := range s.PlacementStatuses {
		on[s.PlacementStatuses[i].ClusterName] = &s.PlacementStatuses[i]
	}
	for _, c := range d.Clusters {
		switch {
		case c.Suspended != "" && (c.Held != "" || !c.Applied || c.Removing):
			lines = append(lines, d.Placement+" on "+c.Cluster+": "+c.Suspended)
		case len(c.Braked) > 0:
			lines = append(lines, fmt.Sprintf("%s on %s: %d deletion(s) are held until a commit allows them", d.Placement, c.Cluster, len(c.Braked)))
		case c.Held != "":
			lines = append(lines, d.Placement+" on "+c.Cluster+" waits: "+c.Held)
			moving = moving || d.Stopped == ""
		case c.Removing && len(c.Lingering) > 0:
			lines, moving = append(lines, fmt.Sprintf("%s is being removed from %s, and waits for what was deleted to be gone: %s", d.Placement, c.Cluster, strings.Join(c.Lingering, ", "))), true
		case c.Removing:
			lines, moving = append(lines, d.Placement+" is being removed from "+c.Cluster), true
		case !c.Applied:
			lines = append(lines, d.Placement+" on "+c.Cluster+": "+troubleOn(s, c.Cluster))
			moving = moving || c.Cluster != d.Stopped
		case refusedBy(on[c.Cluster]) != "":
			// What is left out was never sent, since another placement has it or
			// it cannot be made: only a commit changes that.
			lines = append(lines, d.Placement+" on "+c.Cluster+": "+refusedBy(on[c.Cluster]))
		}
	}
	return lines, moving
}

// troubleOn is the first condition of a cluster that is not true.
func troubleOn(s *api.PlacementStatus, cluster string) string {
	i := slices.IndexFunc(s.PlacementStatuses, func(c api.PerClusterPlacementStatus) bool { return c.ClusterName == cluster })
	if i < 0 {
		return "not applied yet"
	}
	one := api.PlacementStatus{PlacementStatuses: s.PlacementStatuses[i : i+1]}
	text := strings.TrimPrefix(firstTrouble(one), cluster+": ")
	if text == "" {
		return "not applied yet"
	}
	return text
}
