package placement

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Decision is the scheduling result for one cluster and one placement.
type Decision struct {
	Cluster string
	// Score is nil for a cluster that was not scored. Like KubeFleet, PickAll gives the clusters that
	// it selects a score of zero.
	Score *Score
	// Reason is a sentence, never empty. Picked says that it is only that the policy has picked the cluster, followed by Note:
	// properties that could not be read.
	Reason string
	Note   string

	Selected, Picked bool
}

// ScheduledMessage is the message of a placement's condition Scheduled.
func ScheduledMessage(fulfilled bool, found int) string {
	n := strconv.Itoa(found)
	if fulfilled {
		return "found all cluster needed as specified by the scheduling policy, found " + n + " cluster(s)"
	}
	return "could not find all clusters needed as specified by the scheduling policy, found " + n + " cluster(s) instead"
}

// ScheduledReason is the reason of a placement's condition Scheduled.
func ScheduledReason(fulfilled bool) string {
	if fulfilled {
		return api.SchedulingPolicyFulfilled
	}
	return api.SchedulingPolicyUnfulfilled
}

// pickedReason is the reason of a selected cluster; without a score it was named by the policy.
func pickedReason(cluster string, s *Score) string {
	text := "Successfully scheduled resources for placement in " + quote(cluster)
	if s != nil {
		text += scores(s)
	}
	return text + ": picked by scheduling policy"
}

func scores(s *Score) string {
	return " (affinity score: " + strconv.Itoa(int(s.Affinity)) + ", topology spread score: " + strconv.Itoa(int(s.Spread)) + ")"
}

// withNote adds a note, which may be empty, to a reason.
func withNote(reason, note string) string {
	if note == "" {
		return reason
	}
	return reason + "; " + note
}

// firstFew lists the first few names.
func firstFew(list []string) string {
	const few = 5
	if len(list) <= few {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:few], ", "), len(list)-few)
}

func list(words []string) string { return strings.Join(words, " and ") }

func quote(s string) string { return `"` + s + `"` }
