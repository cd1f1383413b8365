package diff

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Values are given as JSON where their texts are not exact, but never those of Secrets.
func TestExact(t *testing.T) {
	long := strings.Repeat("x", 200)
	object := func(kind string, spec, data map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "a"}, "spec": spec, "data": data,
		}}
	}
	hub := object("X", map[string]any{"n": int64(1), "text": "a", "long": "b", "list": []any{"a"}, "gone": "x", "empty": "x"}, nil)
	member := object("X", map[string]any{"n": int64(2), "text": "5", "long": long, "list": []any{"a", map[string]any{"b": int64(1)}, "c"}, "new": "1", "empty": ""}, nil)
	listed := func(hub, member *unstructured.Unstructured) map[string]string {
		var list []api.Difference
		for _, d := range Compare(hub, member, Options{}) {
			list = append(list, api.Difference{PatchDetail: d})
		}
		out := map[string]string{}
		for _, d := range Exact(hub, member, Options{}, list) {
			out[d.Path+" "+d.ValueInMember] = fmt.Sprintf("%s > %s", d.HubJSON, d.MemberJSON)
		}
		return out
	}
	want := map[string]string{
		"/spec/n 2":             `1 > 2`,
		"/spec/text 5":          ` > `,
		"/spec/long " + long:    `"b" > "` + long + `"`,
		"/spec/list/- map[b:1]": ` > {"b":1}`,
		"/spec/list/- c":        ` > "c"`,
		"/spec/gone ":           `"x" > `,
		"/spec/new 1":           ` > "1"`,
		"/spec/empty ":          `"x" > ""`,
	}
	if got := listed(hub, member); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	secret := func(value string) *unstructured.Unstructured {
		return object("Secret", nil, map[string]any{"a": value, "list": value + value})
	}
	for path, got := range listed(secret("Y2FuYXJ5"), secret("c2VjcmV0")) {
		if got != " > " {
			t.Errorf("%s of a Secret: %s", path, got)
		}
	}
}

// A very large value stays a text.
func TestExactIsBounded(t *testing.T) {
	of := func(value string) *unstructured.Unstructured {
		data := map[string]any{}
		for i := range 12 {
			data[fmt.Sprint("key-", i)] = value
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "a"}, "data": data}}
	}
	hub, member := of("a"), of(strings.Repeat("x", 1<<10))
	var list []api.Difference
	for _, d := range Compare(hub, member, Options{}) {
		list = append(list, api.Difference{PatchDetail: d})
	}
	size := 0
	for _, d := range Exact(hub, member, Options{}, list) {
		size += len(d.HubJSON) + len(d.MemberJSON)
	}
	if size == 0 || size > exactSize {
		t.Errorf("%d bytes", size)
	}
}
