package listitem

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"
)

func decoded[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// A list has a key if all items have it, with different values.
func TestKey(t *testing.T) {
	for text, want := range map[string]string{
		"[{name: a}, {name: b}]":                                    "name",
		"[{name: a}, {name: a}]":                                    "",
		"[{name: a}, {image: b}]":                                   "",
		"[{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]":    "",
		"[{containerPort: 80}, {containerPort: 81, name: metrics}]": "containerPort",
		"[{host: a.example.com}, {host: b.example.com}]":            "host",
		"[{name: {a: b}}]":                                          "",
		"[a, b]":                                                    "",
		"[]":                                                        "",
	} {
		if got := Key(decoded[[]any](t, text)); got != want {
			t.Errorf("the key of %s is %q, want %q", text, got, want)
		}
	}
}

// A pointer passes items only in lists: a number may also be the key of a map.
func TestSteps(t *testing.T) {
	object := decoded[any](t, "{spec: {containers: [{name: a, env: [{name: X}, {name: Y}]}], args: [p]}, data: {0: [q]}}")
	for pointer, want := range map[string][]string{
		"/spec/containers/0/env/1/value": {"/spec/containers/0", "/spec/containers/0/env/1"},
		"/spec/containers/1/image":       nil,
		"/spec/args/0":                   {"/spec/args/0"},
		"/spec/args/-":                   nil,
		"/data/0":                        nil,
		"/data/0/0":                      {"/data/0/0"},
	} {
		var got []string
		for _, s := range Steps(object, pointer) {
			got = append(got, s.Path)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s passes %q, want %q", pointer, got, want)
		}
	}
}

// An index means another item if somebody has added, removed or renamed one, but not if its other fields changed.
func TestMoved(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		index         int
		want          string
	}{
		"one in front":         {"[{name: web}]", "[{name: log}, {name: web}]", 0, `the item at index 0 of the list has the name "log" now, and had "web"; "web" is at index 1`},
		"one behind":           {"[{name: web}]", "[{name: web}, {name: log}]", 0, ""},
		"another field":        {"[{name: web, image: a}]", "[{name: web, image: b}]", 0, ""},
		"renamed":              {"[{name: web}]", "[{name: www}]", 0, `the item at index 0 of the list has the name "www" now, and had "web"`},
		"removed":              {"[{name: log}, {name: web}]", "[{name: web}]", 1, `the list has no item at index 1 any more; "web" is at index 0`},
		"values, one in front": {"[a, b]", "[x, a, b]", 1, "the item at index 1 of the list is another one now; the earlier one is at index 2"},
		"values, edited":       {"[a, b]", "[a, c]", 1, ""},
		"values, removed":      {"[a, b, c]", "[b, c]", 0, "the item at index 0 of the list is another one now"},
		"behind the last":      {"[a]", "[a, b]", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := Of(decoded[[]any](t, test.before)), Of(decoded[[]any](t, test.after))
			if got := before.Moved(after, test.index); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
