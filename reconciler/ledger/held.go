package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A DriftDecision is the decision about one held drift: an object that others have changed and
// that the member leaves as it is until there is a decision.
type DriftDecision struct {
	// Fingerprint is the fingerprint of the drift. The decision does not apply to other drift
	// of the same object.
	Fingerprint string
	// PutBack says that the drift is reverted.
	PutBack bool
	// Again says that the object is compared again, since its drift rule has ended.
	Again bool
	// Message says why, or what the drift waits for.
	Message string
}

// A DriftKey names an object of a placement on one cluster.
type DriftKey struct {
	Placement api.PlacementKey
	ID        api.ID
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
