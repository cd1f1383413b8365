package edit

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/proposal/yamledit"
)

// Drift can be converted into changes only if the manifest has the value that the drift gives
// as that of Git, and the value of the member is known.
func TestChanges(t *testing.T) {
	var manifest map[string]any
	text := `{"kind": "Deployment", "metadata": {"labels": {"app": "web"}}, "spec": {"replicas": 3, "name": "web", "args": ["a", "b"], "cpu": "1000m", "item": {"a": 1}}}`
	if err := json.Unmarshal([]byte(text), &manifest); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		path, hub, member   string
		hubJSON, memberJSON string
		want                string
	}{
		"a number":                   {"/spec/replicas", "3", "5", "3", "5", "/spec/replicas 5 int64"},
		"a number that is not known": {"/spec/replicas", "3", "5", "", "", "/spec/replicas: its value is not known exactly; edit it by hand, with the value of the member"},
		"a text that is a number":    {"/spec/name", "web", "5", "", "", "/spec/name 5 string"},
		"a field goes":               {"/spec/name", "web", "", `"web"`, "", "/spec/name goes"},
		"a text becomes empty":       {"/spec/name", "web", "", `"web"`, `""`, "/spec/name  string"},
		"a new label":                {"/metadata/labels/tier", "", "5", "", `"5"`, "/metadata/labels/tier 5 string"},
		"a new annotation":           {"/metadata/annotations/a~1b", "", "5", "", `"5"`, "/metadata/annotations map[a/b:5] map[string]interface {}"},
		"a new text":                 {"/spec/image", "", "nginx", "", `"nginx"`, "/spec/image nginx string"},
		"a new number, or a text":    {"/spec/port", "", "80", "", "", "/spec/port: its value is not known exactly; edit it by hand, with the value of the member"},
		"a new number":               {"/spec/port", "", "80", "", "80", "/spec/port 80 int64"},
		"a new list":                 {"/spec/list", "", "[a b]", "", `["a","b"]`, "/spec/list [a b] []interface {}"},
		"an item":                    {"/spec/args/-", "", "c", "", `"c"`, "/spec/args/- c string"},
		"an item goes":               {"/spec/args/1", "b", "", `"b"`, "", "/spec/args/1 goes"},
		"a map with defaults":        {"/spec/item", "map[a:1 b:2]", "x", `{"a":1,"b":2}`, `"x"`, "/spec/item x string"},
		"a value that is cut":        {"/spec/name", "web", "long…", "", "", "/spec/name: its value is longer than gitfleet remembers; edit it by hand, with the value of the member"},
		"a quantity":                 {"/spec/cpu", "1", "2", "", `"2"`, "/spec/cpu 2 string"},
		"a Secret":                   {"/spec/name", "web", "(redacted for security reasons)", "", "", "/spec/name: values of Secrets do not leave the cluster"},
		"changed in Git":             {"/spec/replicas", "2", "5", "2", "5", `/spec/replicas: the manifest has "3"; Git wants "2"`},
		"set by something else":      {"/spec/other", "2", "5", "2", "5", `/spec/other: the manifest has no such field; Git wants "2"`},
		"in Git already":             {"/spec/replicas", "2", "3", "2", "3", "the manifest has it already"},
		"gone in Git already":        {"/spec/other", "2", "", "2", "", "the manifest has it already"},
		"in the manifest by mistake": {"/spec/name", "", "x", "", `"x"`, `/spec/name: the manifest has "web"; Git wants nothing`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := api.Difference{PatchDetail: api.PatchDetail{Path: test.path, ValueInHub: test.hub, ValueInMember: test.member}}
			if test.hubJSON != "" {
				d.HubJSON = json.RawMessage(test.hubJSON)
			}
			if test.memberJSON != "" {
				d.MemberJSON = json.RawMessage(test.memberJSON)
			}
			list, err := fieldEdits(manifest, []api.Difference{d})
			got := fmt.Sprint(err)
			switch {
			case err == nil && list[0].Remove:
				got = list[0].Path + " goes"
			case err == nil:
				got = fmt.Sprintf("%s %v %[2]T", list[0].Path, list[0].Value)
			}
			if got != test.want {
				t.Errorf("%s\nwant: %s", got, test.want)
			}
		})
	}
}

// What others have added beside a manifest is added to it: to lists that it has, and to lists and maps that it
// does not have yet.
func TestFieldEditsOfAdditions(t *testing.T) {
	manifest := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "env": []any{map[string]any{"name": "A"}}}}}}
	add := func(path, value string) api.Difference {
		return api.Difference{PatchDetail: api.PatchDetail{Path: path, ValueInMember: value}, MemberJSON: json.RawMessage(value)}
	}
	edits, err := fieldEdits(manifest, []api.Difference{
		add("/metadata/labels/team", `"blue"`), add("/spec/containers/0/env/-", `{"name":"B"}`), add("/spec/containers/-", `{"name":"side"}`),
		add("/spec/volumes/-", `{"name":"one"}`), add("/spec/volumes/-", `{"name":"two"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := yamledit.WithEdits(manifest, edits)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(got)
	const want = `{"metadata":{"labels":{"team":"blue"}},"spec":{"containers":[{"env":[{"name":"A"},{"name":"B"}],"name":"web"},{"name":"side"}],"volumes":[{"name":"one"},{"name":"two"}]}}`
	if string(text) != want {
		t.Errorf("%s\nwant %s", text, want)
	}
}
