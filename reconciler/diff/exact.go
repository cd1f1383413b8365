package diff

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The bounds of the values that differences of one object have as JSON, and of a text
// that is told whole.
const (
	exactSize = 8 << 10
	shortText = 160
)

// Exact adds to differences that Compare listed the values as JSON, where their texts do
// not say what they are: numbers, lists, maps and long texts. The arguments are those of
// Compare. Values that are masked, and what is too large, stay texts only.
func Exact(hub, member *unstructured.Unstructured, opt Options, list []api.Difference) []api.Difference {
	if hub == nil || member == nil || len(list) == 0 {
		return list
	}
	secrets := SecretsOf(hub, member)
	h, m := sides(Normalize(hub), member, opt)
	shownHub, shownMember := redacted(h, secrets), redacted(m, secrets)
	out, added, left := slices.Clone(list), map[string]int{}, exactSize
	for i := range out {
		d := &out[i]
		atHub, atMember := d.Path, d.Path
		if list, isAdd := strings.CutSuffix(d.Path, "/-"); isAdd {
			items, _ := valueAt(shownHub, list).([]any)
			atMember = list + "/" + strconv.Itoa(len(items)+added[list])
			added[list]++
		}
		before, after := valueAt(shownHub, atHub), valueAt(shownMember, atMember)
		if says(before, after, d.PatchDetail) {
			continue
		}
		hubJSON, memberJSON := exactly(before, d.ValueInHub), exactly(after, d.ValueInMember)
		if size := len(hubJSON) + len(memberJSON); size <= left {
			d.HubJSON, d.MemberJSON, left = hubJSON, memberJSON, left-size
		}
	}
	return out
}

// says reports whether the texts of a difference are all there is to say: both values are
// texts, neither empty nor long.
func says(before, after any, d api.PatchDetail) bool {
	for _, v := range []any{before, after} {
		if s, isText := v.(string); !isText || s == "" || len(s) > shortText {
			return false
		}
	}
	return text(before) == d.ValueInHub && text(after) == d.ValueInMember
}

// exactly is a value as JSON; nil if it is not what the difference is about, or has
// something masked in it.
func exactly(v any, shown string) json.RawMessage {
	if _, masked := visible(v); masked || v == nil || text(v) != shown {
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil || strings.Contains(string(raw), Mask) {
		return nil
	}
	return raw
}

// valueAt follows a JSON pointer; nil if it leads nowhere.
func valueAt(v any, pointer string) any {
	for _, key := range api.SplitPointer(pointer) {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			i, ok := index(key, len(in))
			if !ok {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}
