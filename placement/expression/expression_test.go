package expression

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

const gadget = `
apiVersion: example.com/v1
kind: Gadget
metadata: {name: a, generation: 3}
spec: {replicas: 2, ratio: 0.5}
status:
  phase: Running
  ready: 2
  conditions: [{type: Synced, status: "True"}, {type: Warm, status: "False"}]
`

func object(t *testing.T) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(gadget), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u.Object
}

func TestHolds(t *testing.T) {
	tests := map[string]struct {
		text string
		want bool
		err  string
	}{
		"a value":                       {`object.status.phase == "Running"`, true, ""},
		"numbers":                       {`object.status.ready >= object.spec.replicas`, true, ""},
		"no":                            {`object.status.ready > object.spec.replicas`, false, ""},
		"a condition":                   {`object.status.conditions.exists(c, c.type == "Synced" && c.status == "True")`, true, ""},
		"all of them":                   {`object.status.conditions.all(c, c.status == "True")`, false, ""},
		"a field that may not be there": {`has(object.status.since)`, false, ""},
		"or else":                       {`object.?status.?since.orValue("") == ""`, true, ""},
		"a field that is not there":     {`object.status.since == ""`, false, "no such key: since"},
		"another type":                  {`object.status.phase`, false, "must give a bool"},
		"too costly": {
			`[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, a+b+c+d+e < 100)))))`,
			false, "costs more than",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := Compile(test.text)
			if err != nil {
				t.Fatal(err)
			}
			o := object(t)
			got, err := e.Holds(o)
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%t, %v; want %t, %q", got, err, test.want, test.err)
			}
			if !reflect.DeepEqual(o, object(t)) {
				t.Error("the object was changed")
			}
		})
	}
}

func TestCompileSaysWhatIsWrong(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"nothing":             {" ", "it is empty"},
		"half of it":          {`object.status.`, "line 1, column "},
		"an unknown name":     {`objekt.status.ready`, "line 1, column 1: undeclared reference to 'objekt'; did you mean object?"},
		"a misspelt function": {`object.status.phase.startWith("a")`, "undeclared reference to 'startWith'; did you mean startsWith?"},
		"an assignment":       {`object.status.phase = "a"`, "; write == to compare"},
		"an unknown function": {`object.status.ready.atLeast(1)`, "undeclared reference to 'atLeast'"},
		"no question":         {`1 + 1`, "it gives an int, and must give a bool"},
		"a book":              {strings.Repeat(" ", Longest) + "true", "it has 4100 bytes, more than 4096"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(test.text)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q, want %q", err, test.want)
			}
		})
	}
}

// For every expression and object, the evaluation ends with a result within the limits.
func TestAnythingMayBeAsked(t *testing.T) {
	words := []string{"object", ".status", ".ready", " == ", "1", "'x'", "(", ")", "[", "]", ".all(c, ", "has(", " && ", "!", ".matches('", "')", " + ", "{", "}", ".?a", ".orValue("}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 9).Draw(t, "text"), "")
		e, err := Compile(text)
		if err != nil {
			return
		}
		e.Holds(map[string]any{"status": map[string]any{"ready": int64(1), "a": []any{"x"}}})
	})
}
