package compact

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func TestUIDsArePackedAndUnpacked(t *testing.T) {
	uids := rapid.OneOf(
		rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`),
		rapid.StringMatching(`[0-9a-fA-F-]{36}`),
		rapid.SampledFrom([]string{"", "00000000-0000-0000-0000-000000000000"}),
		rapid.String(),
	)
	rapid.Check(t, func(t *rapid.T) {
		uid := types.UID(uids.Draw(t, "uid"))
		packed, whole := Pack(uid)
		if got := packed.Unpack(whole); got != uid {
			t.Fatalf("%q became %q", uid, got)
		}
	})
	if packed, whole := Pack("0b5f9a3e-1c2d-4e5f-8a9b-0c1d2e3f4a5b"); packed == (UID{}) || whole != "" {
		t.Errorf("a UUID is not packed: %v, %q", packed, whole)
	}
}
