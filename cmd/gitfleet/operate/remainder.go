package operate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/fulfilment"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A remainder finds what keeps the placements of a report from reaching a goal, and describes it for people.
type remainder struct {
	judge    *status.Judge
	statuses map[string]*api.PlacementStatus
	members  status.MemberStates
	away     map[string]overview.Member // the members that cannot be used
	clusters map[string]bool            // on which something was not done
}

func newRemainder(r *status.Report, goal status.Goal) *remainder {
	w := &remainder{
		judge: status.NewJudge(r, goal), statuses: status.PlacementStatuses(r), members: status.MemberStatesOf(r),
		away: map[string]overview.Member{}, clusters: map[string]bool{},
	}
	for _, c := range r.Clusters {
		if m := overview.NewMember(c); m.State != status.StateAvailable {
			w.away[c.Name] = m
		}
	}
	return w
}

// of returns a line for each thing that is not done yet for a placement, and how far it is fulfilled.
func (w *remainder) of(d *status.Detail) (lines []string, missing fulfilment.Tally) {
	s := w.statuses[d.Placement] // nil if it was removed from Git, and is being removed from the clusters
	missing, verdicts := w.judge.Placement(d, s)
	o := overview.NewPlacement(d, s, w.members)
	if o.ScheduleProblem != "" {
		lines = append(lines, d.Placement+": "+o.ScheduleProblem)
	}
	for _, a := range o.Absent {
		lines = append(lines, d.Placement+" is "+overview.AbsentText(a))
	}
	on := status.PerCluster(s)
	for i := range d.Clusters {
		if c := &d.Clusters[i]; verdicts[i].Reason != "" {
			lines = append(lines, w.onCluster(d.Placement, c, on[c.Cluster], verdicts[i].Reason)...)
			w.clusters[c.Cluster] = true
		}
	}
	return lines, missing
}

// progress describes in one line what a placement waits for. lines are those of of.
func (w *remainder) progress(d *status.Detail, r *status.Report, lines []string) string {
	o := overview.NewPlacement(d, w.statuses[d.Placement], w.members)
	away := absences(d, r)
	text := o.Sentence() + away
	if o.Unexplained() && away == "" && len(lines) > 0 { // such as a deletion that does not end
		text += ";" + strings.TrimPrefix(strings.TrimPrefix(lines[0], d.Placement), ":")
	}
	return text
}

// onCluster says why a placement is not done on a cluster.
func (w *remainder) onCluster(placement string, c *status.ClusterDetail, s *api.PerClusterPlacementStatus, why fulfilment.Reason) []string {
	at := placement + " on " + c.Cluster
	switch why {
	case fulfilment.Suspended:
		at += ": " + c.Suspended
	case fulfilment.DeletionsBlocked:
		at += ": " + overview.BlockedText(placement, c.BlockedDeletions)
	case fulfilment.DeletionRefused:
		var lines []string
		for _, text := range c.DeletionErrors {
			lines = append(lines, at+": cannot delete "+text)
		}
		return lines
	case fulfilment.ContentFailed:
		at += " failed: " + status.FailureOf(c, s)
	case fulfilment.Deleting:
		at += fmt.Sprintf(": deleting %s, which a commit allows", output.Count(c.Deleting, "object"))
	case fulfilment.Waiting:
		at += ": " + c.Waits
	case fulfilment.Removing:
		at = placement + " is being removed from " + c.Cluster
		if len(c.Lingering) > 0 {
			at += ", and waits for what was deleted to be gone: " + strings.Join(c.Lingering, ", ")
		}
	case fulfilment.Lingering:
		at += " waits for what was deleted to be gone: " + strings.Join(c.Lingering, ", ")
	case fulfilment.Incomplete:
		if c.Progressing {
			at += " is progressing: " + cmp.Or(c.Cause, "not available yet")
		} else {
			at += ": " + problemOf(c, s)
		}
	case fulfilment.Unconfirmed:
		at += ": it was available, and the cluster cannot be asked now"
	}
	return []string{at}
}

// why says of the clusters on which something was not done why they cannot be used, or what they lack.
func (w *remainder) why() (lines []string) {
	for _, cluster := range slices.Sorted(maps.Keys(w.clusters)) {
		if m, away := w.away[cluster]; away {
			lines = append(lines, cluster+": "+m.Reason)
		}
	}
	return lines
}

// problemOf returns why something is not applied on a cluster, or not available: the first object
// that fails, or else the message of the first condition that is not true.
func problemOf(c *status.ClusterDetail, s *api.PerClusterPlacementStatus) string {
	const unknown = "not applied yet"
	if s == nil {
		return unknown
	}
	first := status.FirstUntrue(s.Conditions)
	if first == nil {
		return unknown
	}
	return cmp.Or(c.Cause, first.Message, unknown)
}

// absences describes which clusters of a placement cannot be used or reached, and why; empty if
// there are none.
func absences(d *status.Detail, r *status.Report) string {
	all := map[overview.State][]overview.Reason{}
	for _, c := range r.Clusters {
		holds := slices.ContainsFunc(d.Clusters, func(on status.ClusterDetail) bool { return on.Cluster == c.Name })
		if away := status.MemberStateOf(c); holds && away != status.StateAvailable {
			all[away] = overview.AddReason(all[away], c.Name, overview.NewMember(c).Reason)
		}
	}
	message := ""
	for _, away := range []status.State{status.StateForbidden, status.StateUnreachable} {
		if why := all[away]; len(why) > 0 {
			message += fmt.Sprintf("; %s: %s: %s", away, forecast.FewOf(why[0].Clusters), why[0].Reason)
		}
	}
	return message
}
