package diff

import (
	"encoding/json"
	"slices"
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
// exact: for numbers, lists, maps and long texts. list begins with the result of Compare for the
// same arguments. Masked and very large values stay texts only.
func Exact(hub, member *unstructured.Unstructured, opt Options, list []api.Difference) []api.Difference {
	out := slices.Clone(list)
	exact(compare(hub, member, opt), out)
	return out
}

// exact sets the values of differences as JSON where the texts are not exact. list has the changes, in
// the same order.
func exact(changes []change, list []api.Difference) {
	left := exactSize
	for i, c := range changes {
		if i == len(list) || c.detail() != list[i].PatchDetail {
			break // the last of too many differences stands for the rest
		}
		if c.isExact() {
			continue
		}
		hubJSON, memberJSON := c.hub.json(), c.member.json()
		if size := len(hubJSON) + len(memberJSON); size <= left {
			list[i].HubJSON, list[i].MemberJSON, left = hubJSON, memberJSON, left-size
		}
	}
}

// isExact reports whether the texts of a change are exact: both values are texts, neither empty
// nor long.
func (c change) isExact() bool {
	for _, v := range []any{c.hub.shown, c.member.shown} {
		if s, isText := v.(string); !isText || s == "" || len(s) > shortText {
			return false
		}
	}
	return true
}

// json returns a value as JSON; nil if there is none, or if a part of it is masked.
func (s side) json() json.RawMessage {
	if _, masked := visible(s.shown); masked || s.shown == nil {
		return nil
	}
	raw, err := json.Marshal(s.shown)
	if err != nil || strings.Contains(string(raw), Mask) {
		return nil
	}
	return raw
}
