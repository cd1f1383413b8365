package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Drift is the record of an object that others have changed after it was applied. It is kept
// after the drift was reverted. Values of Secrets are masked.
type Drift struct {
	ID       api.ID
	Version  string
	Envelope *api.EnvelopeIdentifier `json:",omitempty"`
	State    api.DriftState
	// Addition says that Paths are what others have added beside what the manifest sets. Such a record of an
	// object is kept beside that of its other drift.
	Addition bool   `json:",omitempty"`
	Rule     string `json:"Mode,omitempty"` // the drift rule by which it is held or an addition is offered; empty if it is not
	// Message says what happens with the drift and what would end it, if State does not say
	// enough.
	Message string `json:",omitempty"`
	Count   int    // how many times the object has drifted since FirstSeen
	// FirstSeen is the time of the first drift. LastSeen is the time when the object drifted
	// last or was last seen drifted.
	FirstSeen, LastSeen time.Time
	// Since is the time when the present drift began; earlier ones had ended by then. It is
	// zero in records of old versions.
	Since time.Time `json:",omitzero"`
	// Generation and Paths are the generation of the live object (zero if it was gone) and the
	// fields that differed when it was last seen. Deleted says that it was gone then.
	Generation int64            `json:",omitempty"`
	Deleted    bool             `json:",omitempty"`
	Paths      []api.Difference `json:",omitempty"`
	// Digest identifies the fields and values of which Paths has only a part; empty if it has all.
	Digest string `json:",omitempty"`
	// By are the actors who changed the object, the newest first; empty if they are not known,
	// as for a deletion.
	By []api.Actor `json:",omitempty"`
}

// A DriftDecision is the decision about one held drift: an object that others have changed and
// that the member leaves as it is until there is a decision.
type DriftDecision struct {
	// Fingerprint is the fingerprint of the drift. The decision does not apply to other drift
	// of the same object.
	Fingerprint  string
	PutBack      bool   // the drift is reverted
	CompareAgain bool   // the object is compared again, since its drift rule has ended
	Message      string // why, or what the drift waits for
}

// A DriftKey names drift of an object of a placement on one cluster.
type DriftKey struct {
	Placement api.PlacementKey
	ID        api.ID
	// Addition says that it is about what others have added, not about other drift.
	Addition bool
}

// DriftDecisions are the decisions about the held drift of one cluster.
type DriftDecisions map[DriftKey]DriftDecision

// Fingerprint returns a hash of a change of an object: the fields and the values on both sides,
// but not the actors and times. The arguments are the Paths and the Digest of its drift.
func Fingerprint(paths []api.Difference, digest string) string {
	var details []any
	for _, p := range paths {
		details = append(details, p.PatchDetail)
		if p.MemberJSON != nil {
			details = append(details, p.MemberJSON)
		}
	}
	if digest != "" {
		details = append(details, digest)
	}
	text, _ := json.Marshal(details) // encoding strings cannot fail
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:10])
}
