package work

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// For every patch, the object keeps its name or there is an error, the shared object is not
// modified, and the result is always the same.
func FuzzPatch(f *testing.F) {
	for _, seed := range [][3]string{
		{"add", "/spec/replicas", "3"}, {"remove", "/spec", ""}, {"replace", "/metadata/name", `"x"`},
		{"add", "/spec/list/-", `{"a": "${MEMBER-CLUSTER-NAME}"}`}, {"add", "/spec/list/-1", "1"}, {"remove", "/spec/list/99", ""},
		{"add", "", "{}"}, {"replace", "", "null"}, {"add", "/", "1"}, {"add", "/a~1b~0", "[]"}, {"copy", "/spec", "1"},
		{"add", "/metadata/labels", `"${MEMBER-CLUSTER-LABEL-KEY-env}"`}, {"add", "/spec", `${MEMBER-CLUSTER-LABEL-KEY-env`},
		{"test", "/spec", "{}"}, {"add", "/metadata", "[1]"}, {"add", "/spec/list/0/x", "1"}, {"replace", "/spec/list", "null"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	const object = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec: {replicas: 1, list: [1, {b: c}, [x]]}`
	c := placement.Cluster{Name: "east", Labels: map[string]string{"env": "prod"}}
	f.Fuzz(func(t *testing.T, op, path, value string) {
		o := patching("ro", nil, value)
		o.Spec.Policy.OverrideRules[0].JSONPatchOverrides[0].Operator = api.JSONPatchOverrideOperator(op)
		o.Spec.Policy.OverrideRules[0].JSONPatchOverrides[0].Path = path
		selected := objects(t, object)
		before := encoded(t, selected)
		r := NewRenderer(api.PlacementKey{Name: "crp"}, selected, nil, []*api.ResourceOverride{o}, nil)
		out, err := r.For(c)
		if encoded(t, selected) != before {
			t.Fatal("the shared object was changed")
		}
		if again, _ := r.For(c); again.Hash != out.Hash {
			t.Fatal("asked again, the answer is another")
		}
		if err != nil {
			return
		}
		m := out.Manifests[0]
		if id := api.IDOf(m.Object.Content); id != selected[0].ID || id != m.ID {
			t.Fatalf("it became %s", id)
		}
		if _, err := json.Marshal(m.Object.Content.Object); err != nil {
			t.Fatalf("it is no JSON any more: %v", err)
		}
	})
}

// Expanding variables replaces all known ones and nothing else, and never panics.
func FuzzVariables(f *testing.F) {
	for _, seed := range []string{
		"${MEMBER-CLUSTER-NAME}", "${MEMBER-CLUSTER-LABEL-KEY-env}", "${MEMBER-CLUSTER-LABEL-KEY-${MEMBER-CLUSTER-NAME}}",
		"${MEMBER-CLUSTER-LABEL-KEY-", "$${MEMBER-CLUSTER-NAME}}", "plain", "${MEMBER-CLUSTER-LABEL-KEY-env}${MEMBER-CLUSTER-LABEL-KEY-none}",
	} {
		f.Add(seed)
	}
	c := placement.Cluster{Name: "east", Labels: map[string]string{"env": "prod", "east": "own"}}
	f.Fuzz(func(t *testing.T, value string) {
		got, err := expandVariables(value, c)
		hasVariables := strings.Contains(value, nameVariable) || strings.Contains(value, labelVariable)
		switch {
		case err != nil && !hasVariables:
			t.Fatalf("%q has no variable, and fails: %v", value, err)
		case err == nil && !hasVariables && got != value:
			t.Fatalf("%q has no variable, and becomes %q", value, got)
		case err == nil && strings.Contains(got, labelVariable) && !strings.Contains(strings.ReplaceAll(value, nameVariable, ""), "${"):
			t.Fatalf("%q leaves a variable: %q", value, got)
		}
	})
}

// documents neither loses nor adds a line with content.
func FuzzDocuments(f *testing.F) {
	for _, seed := range []string{"a: 1\n---\nb: 2", "---\n---", "--- # x\na", "-----BEGIN", "a: |\n  ---\n", "\r\n---\r\nx", "# only"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		docs := documents(text)
		joined := strings.Join(docs, "")
		for line := range strings.Lines(text) {
			if separator.MatchString(line) {
				continue
			}
			if s := strings.TrimSpace(line); s != "" && s[0] != '#' && !strings.Contains(joined, strings.TrimSpace(line)) {
				t.Fatalf("%q is lost: %q", line, docs)
			}
		}
	})
}
