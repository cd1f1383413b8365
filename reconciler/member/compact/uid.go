package compact

import (
	"encoding/hex"

	"k8s.io/apimachinery/pkg/types"
)

// A UID is a types.UID in less than half the space.
type UID [16]byte

// Pack packs a UID. If that is impossible, it returns it as whole: UIDs are UUIDs, but the API
// does not promise that.
func Pack(uid types.UID) (packed UID, whole types.UID) {
	if len(uid) == 36 {
		digits := []byte(uid[:8] + uid[9:13] + uid[14:18] + uid[19:23] + uid[24:])
		if _, err := hex.Decode(packed[:], digits); err == nil && packed != (UID{}) && packed.Unpack("") == uid {
			return packed, ""
		}
	}
	return UID{}, uid
}

// Unpack returns the UID that was passed to Pack; whole is the second result of Pack.
func (p UID) Unpack(whole types.UID) types.UID {
	if p == (UID{}) {
		return whole
	}
	var out [36]byte
	digits := hex.AppendEncode(make([]byte, 0, 32), p[:])
	copy(out[0:], digits[0:8])
	copy(out[9:], digits[8:12])
	copy(out[14:], digits[12:16])
	copy(out[19:], digits[16:20])
	copy(out[24:], digits[20:])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return types.UID(out[:])
}
