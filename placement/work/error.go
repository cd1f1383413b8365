package work

import (
	"fmt"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An EnvelopeError has the problems of a placement's envelopes. No cluster gets the content:
// WorkSynchronized is False, and each keeps what it holds.
type EnvelopeError struct {
	// Problems are all problems, by envelope and key.
	Problems []error
	// Overlays says that the problems are only those of what overlays and variables are for the cluster, so that other
	// clusters may get the content.
	Overlays bool
}

// Error returns the problems in one line, as in the WorkSynchronized condition after "Failed to
// synchronize the work to the latest: ".
func (e *EnvelopeError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the problems.
func (e *EnvelopeError) Unwrap() []error { return e.Problems }

// An unclosedError quotes a whole value, which may come from a Secret.
type unclosedError struct{ value string }

func (e unclosedError) Error() string {
	return fmt.Sprintf("input %s is missing the closing bracket `}`", e.value)
}

// A Refused is an object that is sent to no cluster.
type Refused struct {
	*Manifest
	// Reason is api.Duplicated or api.FoundGenerateName.
	Reason string
	// Cause is the cause of the object's Applied condition.
	Cause string
}

// Message is the message of the object's Applied condition.
func (r Refused) Message() string { return api.SaysNotApplied.Message(r.Cause) }
