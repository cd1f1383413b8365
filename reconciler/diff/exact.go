package diff

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The limits of the values of one object that are given as JSON, and of a text that is given in
// full.
const (
	exactSize = 8 << 10
	shortText = 160
)

// Exact adds values as JSON to the differences that Compare has listed, where the texts are not
// exact: for numbers, lists, maps and long texts. The arguments are those of Compare. Masked
// and very large values stay texts only.
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

// says reports whether the texts of a difference are exact: both values are texts, neither
// empty nor long.
func says(before, after any, d api.PatchDetail) bool {
	for _, v := range []any{before, after} {
		if s, isText := v.(string); !isText || s == "" || len(s) > shortText {
			return false
		}
	}
	return text(before) == d.ValueInHub && text(after) == d.ValueInMember
}

// exactly returns a value as JSON; nil if the value is not the one that the difference shows,
// or if a part of it is masked.
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

// valueAt returns the value at a JSON pointer; nil if there is none.
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
