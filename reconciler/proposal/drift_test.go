package proposal

import (
	"fmt"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A drift becomes a change only if the file has the value that the drift names as that of
// Git, and if the text in the drift determines the value of the member.
func TestChanges(t *testing.T) {
	const text = `kind: Deployment
metadata:
  labels: {app: web}
spec:
  replicas: 3
  name: web
  args: [a, b]
`
	tests := map[string]struct {
		path, hub, member string
		want              string
	}{
		"a number":                    {"/spec/replicas", "3", "5", "5 int64"},
		"a text that is a number":     {"/spec/name", "web", "5", "5 string"},
		"a field goes":                {"/spec/name", "web", "", "removed"},
		"a new label":                 {"/metadata/labels/tier", "", "5", "5 string"},
		"a new text":                  {"/spec/image", "", "nginx", "nginx string"},
		"a new number, or a text":     {"/spec/port", "", "80", "line 5: /spec/port: whether its value is a text is not known; add it by hand, with the value of the member"},
		"a new list":                  {"/spec/list", "", "[a b]", "line 5: /spec/list: whether its value is a text is not known; add it by hand, with the value of the member"},
		"a new map":                   {"/spec/map", "", "map[a:b]", "line 5: /spec/map: its value is a list or a map; edit it by hand, with the value of the member"},
		"a list":                      {"/spec/args", "[a b]", "[a]", "line 7: /spec/args: its value is a list or a map; edit it by hand, with the value of the member"},
		"a value that is cut":         {"/spec/name", "web", "long…", "line 6: /spec/name: its value is longer than gitfleet remembers; edit it by hand, with the value of the member"},
		"changed in the file":         {"/spec/replicas", "2", "5", `line 5: /spec/replicas: the file has "3"; Git wants "2"`},
		"set by something else":       {"/spec/other", "2", "5", `line 5: /spec/other: the file has no such field; Git wants "2"`},
		"in the file, and not in Git": {"/spec/name", "", "5", "line 6: /spec/name: the file has it already"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			list, err := Changes([]byte(text), 1, []api.PatchDetail{{Path: test.path, ValueInHub: test.hub, ValueInMember: test.member}})
			got := fmt.Sprint(err)
			switch {
			case err == nil && list[0].Remove:
				got = "removed"
			case err == nil:
				got = fmt.Sprintf("%v %[1]T", list[0].Value)
			}
			if got != test.want {
				t.Errorf("%s\nwant: %s", got, test.want)
			}
		})
	}
}
