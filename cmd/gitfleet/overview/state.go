package overview

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A State is the state of a placement on a cluster. Each cluster is in exactly one.
type State string

// The states.
const (
	Available   State = "available"   // has the newest content, which is available
	progressing State = "progressing" // has the newest content, which is not available yet
	rolling     State = "rolling"     // is being updated
	waiting     State = "waiting"     // its update has not begun
	failed      State = "failed"      // something was refused, or will not become available
	Unreachable State = "unreachable" // the cluster does not answer
	Forbidden   State = "forbidden"   // the cluster cannot be used: permissions are missing
	foreign     State = "foreign"     // another fleet or member holds the cluster; only for members
	removing    State = "removing"    // its content is being removed
	held        State = "held"        // its deletions wait for a commit that allows them
)

// states are all states in the order of the bar, with their marks and styles.
var states = []struct {
	State
	mark  rune
	style output.Style
}{
	{Available, '#', output.Green},
	{progressing, '=', output.Cyan},
	{rolling, '>', output.Cyan},
	{waiting, '.', output.Dim},
	{failed, '!', output.Red},
	{held, 'x', output.Yellow},
	{Unreachable, '?', output.Yellow},
	{Forbidden, '/', output.Red},
	{removing, '-', output.Dim},
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

// StateOf returns the state of a placement on a cluster. s is the status of the placement
// there; nil if there is none.
func StateOf(c *status.ClusterDetail, s *api.PerClusterPlacementStatus, members MemberStates) State {
	switch away := members.Of(c.Cluster); {
	case away != Available:
		return away
	case c.Removing && len(c.Braked) > 0:
		return held
	case c.Removing:
		return removing
	case FailureOf(c, s) != "":
		return failed
	case c.Waits != "":
		return waiting
	case len(c.Braked) > 0:
		return held
	case c.Available:
		return Available
	case c.Applied || c.Progressing:
		return progressing
	}
	return rolling
}

// FailureOf returns why content will not become available by itself; empty if it may, or if an
// update is due.
func FailureOf(c *status.ClusterDetail, s *api.PerClusterPlacementStatus) string {
	refused := refusedBy(s)
	switch {
	case c.Progressing:
		return ""
	case refused == "" && c.Waits == "":
		return somePod.ReplaceAllString(withoutWrapping(c.Failure), "$1 a pod$2")
	}
	return refused
}

// refusedBy returns why something cannot be applied on a cluster; empty if everything can.
func refusedBy(s *api.PerClusterPlacementStatus) string {
	c := status.Refusal(s)
	switch {
	case c == nil:
		return ""
	case c.Reason == api.NotAllWorkHaveBeenApplied:
		return failure(s, c.Message)
	}
	return c.Message
}

// failure names the first object that is not applied, and counts the others.
func failure(s *api.PerClusterPlacementStatus, otherwise string) string {
	text, more := "", 0
	for i := range s.FailedPlacements {
		f := &s.FailedPlacements[i]
		switch {
		case f.Condition.Type == api.Available:
		case text == "":
			text = f.ID().String() + ": " + Cause(f.Condition.Message)
		default:
			more++
		}
	}
	switch {
	case text == "":
		return otherwise
	case more > 0:
		return fmt.Sprintf("%s (and %d more)", text, more)
	}
	return text
}

// NotAvailable names the first object that is not available, and why.
func NotAvailable(s *api.PerClusterPlacementStatus) string {
	if s == nil || len(s.FailedPlacements) == 0 {
		return ""
	}
	f := &s.FailedPlacements[0]
	return f.ID().String() + ": " + somePod.ReplaceAllString(Cause(f.Condition.Message), "$1 a pod$2")
}

// somePod matches the name of a pod, which is different on each cluster. Without it equal
// reasons can be grouped.
var somePod = regexp.MustCompile(`([;:]) pod [a-z0-9.-]+([,:] )`)

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

// MemberStates are the states of the members: available, unreachable or forbidden.
type MemberStates map[string]State

// MemberStatesOf returns the states of the members of a report.
func MemberStatesOf(r *status.Report) MemberStates {
	out := make(MemberStates, len(r.Clusters))
	for _, c := range r.Clusters {
		out[c.Name] = MemberStateOf(c)
	}
	return out
}

// Of returns the state of a member; unreachable if there is no member of that name.
func (m MemberStates) Of(name string) State {
	if at, ok := m[name]; ok {
		return at
	}
	return Unreachable
}

// MemberStateOf returns whether a member can be used, and if not, why.
func MemberStateOf(c *api.MemberCluster) State {
	switch {
	case status.IsHealthy(c):
		return Available
	case status.MissingPermissions(c) != nil:
		return Forbidden
	}
	return Unreachable
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
	statuses, members := status.PlacementStatuses(r), MemberStatesOf(r)
	var out []Stage
	for _, d := range r.Details {
		if d.Placement != placement {
			continue
		}
		on := status.PerCluster(statuses[placement])
		for j := range d.Clusters {
			c := &d.Clusters[j]
			s := Stage{Cluster: c.Cluster, State: StateOf(c, on[c.Cluster], members)}
			switch s.State {
			case waiting:
				s.Why = c.Waits
			case failed:
				s.Why = FailureOf(c, on[c.Cluster])
			case Unreachable, Forbidden:
				if at := slices.IndexFunc(r.Clusters, func(m *api.MemberCluster) bool { return m.Name == c.Cluster }); at >= 0 {
					s.Why = Absence(r.Clusters[at]).Reason
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
