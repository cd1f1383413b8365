package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Resolution says what becomes of one drift that is held: an object that others
// changed and that a member leaves as it is until this is decided.
type Resolution struct {
	// Fingerprint is that of the drift. A drift that has another one by now is not meant.
	Fingerprint string
	// PutBack says that the object is put back.
	PutBack bool
	// Message says why, or what is waited for.
	Message string
}

// A DriftKey names an object of a placement on one cluster.
type DriftKey struct {
	Placement api.PlacementKey
	ID        api.ID
}

// Resolutions are those of one cluster.
type Resolutions map[DriftKey]Resolution

// Fingerprint identifies a change of an object: the fields and the values on both sides,
// and not who made it or when.
func Fingerprint(paths []api.Difference) string {
	var details []any
	for _, p := range paths {
		details = append(details, p.PatchDetail)
		if p.MemberJSON != nil {
			details = append(details, p.MemberJSON)
		}
	}
	text, _ := json.Marshal(details) // strings can always be encoded
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:10])
}
