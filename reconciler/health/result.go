package health

import "github.com/gitfleet/gitfleet/placement/api"

// A State is the availability of an object, and also the reason of the condition Available.
type State string

// The states.
const (
	Available       State = api.ManifestAvailable
	NotAvailableYet State = api.ManifestNotAvailableYet
	// NotTrackable counts as available: the kind has no health check.
	NotTrackable State = api.ManifestNotTrackable
	// Failed means that the object could not be parsed.
	Failed State = api.ManifestAvailabilityCheckFailed
)

// A Health is a state with a message.
type Health struct {
	State State
	// Message says what is missing, such as "2 of 3 replicas available"; empty if there is
	// nothing to add to the state. An object that is NotTrackable has one while no pod of it has
	// started, so that it may be blocked.
	Message string
	// Unseen says that the controller has not observed the object yet.
	Unseen bool
	// Failure says why the object will not become available by itself, such as a Deployment
	// that exceeded its progress deadline. It is empty if the object is available or may still
	// become available.
	Failure string
}

// Counts reports whether the object counts as available.
func (h Health) Counts() bool { return h.State == Available || h.State == NotTrackable }

// Sentence is what is said around the message of an object that is not available.
func (h Health) Sentence() api.Sentence {
	if h.State == NotAvailableYet {
		return api.SaysNotAvailable
	}
	return api.SaysNotTracked
}
