package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Resolution is the decision about one held drift: an object that others have changed and
// that the member does not restore until there is a decision.
type Resolution struct {
	// Fingerprint is the fingerprint of the drift. The resolution does not apply to other drift
	// of the same object.
	Fingerprint string
	// PutBack says that the object is restored.
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

// Resolutions are the resolutions for one cluster.
type Resolutions map[DriftKey]Resolution

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
