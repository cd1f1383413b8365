package edit

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// An entry in images is edited only if it sets the image, and can express the new one.
func TestImageEntries(t *testing.T) {
	tests := map[string]struct {
		entry         imageEntry
		before, after string
		want          string
	}{
		"a tag":                      {imageEntry{Name: "nginx"}, "nginx:1", "nginx:2", "[{/images/0/newTag 2 false}]"},
		"a tag behind a port":        {imageEntry{Name: "r.example.com:5000/nginx"}, "r.example.com:5000/nginx:1", "r.example.com:5000/nginx:2", "[{/images/0/newTag 2 false}]"},
		"a digest":                   {imageEntry{Name: "nginx"}, "nginx@sha256:1", "nginx@sha256:2", "[{/images/0/digest sha256:2 false}]"},
		"a name":                     {imageEntry{Name: "nginx", NewName: "mine/nginx"}, "mine/nginx:1", "other/nginx:1", "[{/images/0/newName other/nginx false}]"},
		"a name and a tag":           {imageEntry{Name: "nginx"}, "nginx:1", "mine/nginx:2", "[{/images/0/newName mine/nginx false} {/images/0/newTag 2 false}]"},
		"another image":              {imageEntry{Name: "redis"}, "nginx:1", "nginx:2", "[]"},
		"renamed to something else":  {imageEntry{Name: "nginx", NewName: "mine/nginx"}, "nginx:1", "nginx:2", "[]"},
		"a digest instead of a tag":  {imageEntry{Name: "nginx"}, "nginx:1", "nginx@sha256:2", "[]"},
		"neither a tag nor a digest": {imageEntry{Name: "nginx"}, "nginx:1", "nginx", "[]"},
		"the same image":             {imageEntry{Name: "nginx"}, "nginx:1", "nginx:1", "[]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(test.entry.edits("/images/0/", imageOf(test.before), imageOf(test.after))); got != test.want {
				t.Errorf("the changes are %s, want %s", got, test.want)
			}
		})
	}
}

// A field of an object is found in a strategic merge patch by the keys of the items around it.
func TestFieldsInMergePatches(t *testing.T) {
	decoded := func(text string) (v any) {
		t.Helper()
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	object := decoded("{spec: {replicas: 1, containers: [{name: a, image: x}, {name: b, image: y}], args: [p, q]}}")
	patch := decoded("{spec: {replicas: 2, containers: [{name: b, image: z}], args: [q]}}")
	for path, want := range map[string]string{
		"spec replicas": "[spec replicas] true", "spec containers 1 image": "[spec containers 0 image] true", "spec args 1": "[spec args 0] true",
		"spec containers 0 image": "[] false", "spec paused": "[] false", "spec containers 1 name x": "[] false", "spec args 0": "[] false",
	} {
		at, there := findInMergePatch(object, patch, strings.Fields(path))
		if got := fmt.Sprint(at, there); got != want {
			t.Errorf("%s is at %s, want %s", path, got, want)
		}
	}
}
