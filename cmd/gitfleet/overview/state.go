package overview

import (
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A State is the state of a placement on a cluster, or of a member.
type State = status.State

// states are all states in the order of the bar, with their marks and styles.
var states = []struct {
	State
	mark  rune
	style output.Style
}{
	{status.StateAvailable, '#', output.Green},
	{status.StateProgressing, '=', output.Cyan},
	{status.StateRolling, '>', output.Cyan},
	{status.StateWaiting, '.', output.Dim},
	{status.StateFailed, '!', output.Red},
	{status.StateHeld, 'x', output.Yellow},
	{status.StateUnreachable, '?', output.Yellow},
	{status.StateForbidden, '/', output.Red},
	{status.StateRemoving, '-', output.Dim},
}

// StyleOf returns the style of a state.
func StyleOf(s State) output.Style {
	for _, known := range states {
		if known.State == s {
			return known.style
		}
	}
	return output.Plain
}

// bar draws the numbers of clusters by state. The part for clusters that could not be selected
// is blank.
func bar(p output.Page, counts map[State]int, missing, width int) string {
	var b strings.Builder
	used := 0
	for i, n := range shares(counts, missing, width) {
		b.WriteString(p.Paint(states[i].style, strings.Repeat(string(states[i].mark), n)))
		used += n
	}
	return "[" + b.String() + strings.Repeat(" ", width-used) + "]"
}

// shares returns the number of marks for each state, in the order of states. Every state that
// occurs has at least one mark. If no clusters are missing, the marks fill the bar.
func shares(counts map[State]int, missing, width int) []int {
	all, sum := missing, 0
	for _, n := range counts {
		all += n
	}
	out := make([]int, len(states))
	if all == missing {
		return out
	}
	for i, s := range states {
		n := counts[s.State]
		out[i] = max(min(n, 1), n*width/all)
		sum += out[i]
	}
	most := width - missing*width/all
	if missing > 0 {
		most = min(most, width-1) // an incomplete bar must not look complete
	}
	largest := func() int { return slices.Index(out, slices.Max(out)) }
	for ; sum > most; sum-- {
		out[largest()]--
	}
	for ; sum < most; sum++ {
		out[largest()]++
	}
	return out
}

// A Stage is the progress of a placement on one cluster.
type Stage struct {
	Cluster string
	State   State
	Why     string
	// NotDeleted are objects whose deletion the cluster refuses, and objects that were deleted
	// but still exist.
	NotDeleted []string
}

// StagesOf returns the progress of a placement on each of its clusters.
func StagesOf(r *status.Report, placement string) []Stage {
	statuses, members := status.PlacementStatuses(r), status.MemberStatesOf(r)
	var out []Stage
	for _, d := range r.Details {
		if d.Placement != placement {
			continue
		}
		on := status.PerCluster(statuses[placement])
		for j := range d.Clusters {
			c := &d.Clusters[j]
			s := Stage{Cluster: c.Cluster, State: status.StateOf(c, on[c.Cluster], members)}
			switch s.State {
			case status.StateWaiting:
				s.Why = c.Waits
			case status.StateFailed:
				s.Why = status.FailureOf(c, on[c.Cluster])
			case status.StateUnreachable, status.StateForbidden:
				if at := slices.IndexFunc(r.Clusters, func(m *api.MemberCluster) bool { return m.Name == c.Cluster }); at >= 0 {
					s.Why = NewMember(r.Clusters[at]).Reason
				}
			}
			s.NotDeleted = append(s.NotDeleted, c.DeletionErrors...)
			for _, text := range c.Lingering {
				s.NotDeleted = append(s.NotDeleted, text+": deleted, and not gone yet")
			}
			out = append(out, s)
		}
	}
	return out
}
