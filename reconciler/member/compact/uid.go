package compact

import (
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
)

// A UID is a types.UID in less than half the space.
type UID uuid.UUID

// Pack packs a UID. If that is impossible, it returns it as whole: UIDs are UUIDs, but the API
// does not promise that.
func Pack(uid types.UID) (packed UID, whole types.UID) {
	id, err := uuid.Parse(string(uid))
	if err != nil || id == uuid.Nil || id.String() != string(uid) {
		return UID{}, uid
	}
	return UID(id), ""
}

// Unpack returns the UID that was passed to Pack; whole is the second result of Pack.
func (p UID) Unpack(whole types.UID) types.UID {
	if p == (UID{}) {
		return whole
	}
	return types.UID(uuid.UUID(p).String())
}
