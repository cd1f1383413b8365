package review

import (
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
)

// A Trial asks a member what would happen to some objects, by a dry run.
type Trial struct {
	// Cluster is declared as in the commit in force, and not as in the pull request.
	Cluster *hub.Cluster
	// Works are the works of the cluster after the merge, and Targets the objects to try.
	Works   []*work.Work
	Targets []member.Target
}

// An Answer is the result of a member's trial.
type Answer struct {
	Cluster string
	// Objects is the number of objects in the trial.
	Objects int
	// Err is the reason why the member did not answer; nil if it did.
	Err     error
	Changes []member.Change
}

// Answers are the results of the trials of a plan.
type Answers struct {
	Members []Answer
	// Rest is the number of created or changed objects that were not in any trial.
	Rest int
}

// refused returns the number of objects that would not be applied.
func (a *Answers) refused() int { return a.count(isRefused) }

// count counts the objects for which so is true, on each cluster; zero for nil.
func (a *Answers) count(so func(member.Change) bool) int {
	if a == nil {
		return 0
	}
	n := 0
	for _, m := range a.Members {
		for _, c := range m.Changes {
			if so(c) {
				n++
			}
		}
	}
	return n
}

// isRefused reports whether an object would not be applied: the API server refuses it, or it
// exists and is not taken over.
func isRefused(c member.Change) bool { return c.Effect == member.Fails || c.Refused }
