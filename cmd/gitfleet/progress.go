package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A state is how far a placement is on a cluster. Each cluster is in one.
type state string

const (
	available   state = "available"   // has the newest content, and all of it works
	applied     state = "applied"     // has it, and it does not work yet
	rolling     state = "rolling"     // gets it now
	waiting     state = "waiting"     // its turn has not come
	failed      state = "failed"      // something could not be applied
	unreachable state = "unreachable" // the cluster does not answer
	removing    state = "removing"    // what it holds is being removed
)

// states are all of them, in the order of a bar, with their mark and style.
var states = []struct {
	state
	mark  rune
	style style
}{
	{available, '#', green},
	{applied, '=', cyan},
	{rolling, '>', cyan},
	{waiting, '.', dim},
	{failed, '!', red},
	{unreachable, '?', yellow},
	{removing, '-', dim},
}

func styleOf(s state) style {
	for _, known := range states {
		if known.state == s {
			return known.style
		}
	}
	return plainStyle
}

// stateOf says how far a placement is on a cluster that answers or does not. s
// is what the placement's status says of it; nil if nothing.
func stateOf(c *status.ClusterDetail, s *api.PerClusterPlacementStatus, answers bool) state {
	switch {
	case !answers:
		return unreachable
	case c.Removing:
		return removing
	case refusedBy(s) != "":
		return failed
	case c.Held != "":
		return waiting
	case c.Available:
		return available
	case c.Applied:
		return applied
	}
	return rolling
}

// refusedBy is why something cannot be applied on a cluster; empty if all can.
func refusedBy(s *api.PerClusterPlacementStatus) string {
	if s == nil {
		return ""
	}
	for _, c := range s.Conditions {
		switch c.Reason {
		case api.OverriddenFailed, api.SyncWorkFailed, api.NotAllWorkHaveDiffReported:
			return c.Message
		case api.NotAllWorkHaveBeenApplied:
			return failure(s, c.Message)
		}
	}
	return ""
}

// failure names the first object that is not applied, and counts the others.
func failure(s *api.PerClusterPlacementStatus, otherwise string) string {
	text, more := "", 0
	for i := range s.FailedPlacements {
		f := &s.FailedPlacements[i]
		switch {
		case f.Condition.Type == api.Available:
		case text == "":
			text = resourceName(f.ResourceIdentifier) + ": " + cause(f.Condition.Message)
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

// notAvailable names the first object that does not work yet, and why.
func notAvailable(s *api.PerClusterPlacementStatus) string {
	for i := range s.FailedPlacements {
		if f := &s.FailedPlacements[i]; f.Condition.Type == api.Available {
			return resourceName(f.ResourceIdentifier) + ": " + somePod.ReplaceAllString(cause(f.Condition.Message), "; a pod$1")
		}
	}
	return ""
}

// somePod is a pod that is named: each cluster's has another name, and what is the
// same on many clusters is told once.
var somePod = regexp.MustCompile(`; pod [a-z0-9.-]+([,:] )`)

// resourceName is Kind.group/namespace/name.
func resourceName(r api.ResourceIdentifier) string {
	return api.ID{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}.String()
}

// bar draws which share of the clusters is in each state. What is missing, that
// could not be chosen, is left blank.
func bar(p page, counts map[state]int, missing, width int) string {
	var b strings.Builder
	used := 0
	for i, n := range shares(counts, missing, width) {
		b.WriteString(p.paint(states[i].style, strings.Repeat(string(states[i].mark), n)))
		used += n
	}
	return "[" + b.String() + strings.Repeat(" ", width-used) + "]"
}

// shares are the marks of each state, by the order of states. Every state that
// is there has one; with nothing missing, all together are as many as fit.
func shares(counts map[state]int, missing, width int) []int {
	all, sum := missing, 0
	for _, n := range counts {
		all += n
	}
	out := make([]int, len(states))
	if all == missing {
		return out
	}
	for i, s := range states {
		n := counts[s.state]
		out[i] = max(min(n, 1), n*width/all)
		sum += out[i]
	}
	most := width - missing*width/all
	if missing > 0 {
		most = min(most, width-1) // what is not complete does not look so
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

// answering says which members answer.
func answering(r *status.Report) map[string]bool {
	out := make(map[string]bool, len(r.Clusters))
	for _, c := range r.Clusters {
		out[c.Name] = isReady(c)
	}
	return out
}

func isReady(c *api.MemberCluster) bool {
	for _, a := range c.Status.AgentStatus {
		if conditionOf(a.Conditions, api.Healthy) == string(metav1.ConditionTrue) {
			return true
		}
	}
	return false
}
