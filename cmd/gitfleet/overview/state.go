package overview

import (
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
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
	{status.StateDeletionsBlocked, 'x', output.Yellow},
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
