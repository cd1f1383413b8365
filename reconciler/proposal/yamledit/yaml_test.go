package yamledit

import (
	"errors"
	"testing"

	"github.com/gitfleet/gitfleet/test/golden"
)

const deployment = `# The shop.
apiVersion: v1
kind: Namespace
metadata:
  name: shop
---
# Its web server.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web   # in front
  namespace: shop
  labels:
    app: web

    # who is called at night
    team: "shop"

spec:
  replicas: 3
  paused: false
  template:
    metadata: {labels: {app: web, tier: 'front'}}
    spec:
      containers:
      - name: web
        image: nginx:1.28 # pinned
        args: [--port, "80"]
        ports:
        - containerPort: 80
        - {containerPort: 443, name: https}
        env:
          - name: GREETING
            value: 'it''s me'
          - name: EMPTY
            value:
      - image: sidecar:1
        name: sidecar
      nodeSelector: {}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config, namespace: shop}
data:
  motd: |
    hello
    # no comment

    world
  short: >-
    one
    two
  last: x
`

// Each edit changes the lines of its field, and no others.
func TestEdit(t *testing.T) {
	const web = "/spec/template/spec/containers/0"
	tests := map[string]struct {
		line   int
		change FieldEdit
		want   string // removed and added lines
	}{
		"an image, with its comment":       {8, FieldEdit{Path: web + "/image", Value: "nginx:1.29"}, "-        image: nginx:1.28 # pinned\n+        image: nginx:1.29 # pinned"},
		"a number":                         {8, FieldEdit{Path: "/spec/replicas", Value: 5}, "-  replicas: 3\n+  replicas: 5"},
		"a boolean":                        {8, FieldEdit{Path: "/spec/paused", Value: true}, "-  paused: false\n+  paused: true"},
		"a double-quoted text":             {8, FieldEdit{Path: "/metadata/labels/team", Value: "ops"}, `-    team: "shop"` + "\n" + `+    team: "ops"`},
		"a single-quoted text":             {8, FieldEdit{Path: web + "/env/0/value", Value: "it's you"}, "-            value: 'it''s me'\n+            value: 'it''s you'"},
		"a text like a number":             {8, FieldEdit{Path: "/metadata/labels/app", Value: "80"}, "-    app: web\n+    app: \"80\""},
		"a text like a boolean":            {8, FieldEdit{Path: "/metadata/labels/app", Value: "yes"}, "-    app: web\n+    app: \"yes\""},
		"a text with a line end":           {8, FieldEdit{Path: "/metadata/labels/app", Value: "a\nb"}, "-    app: web\n+    app: \"a\\nb\""},
		"a text with a comma in a flow":    {8, FieldEdit{Path: "/spec/template/metadata/labels/app", Value: "a, b"}, "-    metadata: {labels: {app: web, tier: 'front'}}\n+    metadata: {labels: {app: \"a, b\", tier: 'front'}}"},
		"a value that was left out":        {8, FieldEdit{Path: web + "/env/1/value", Value: "full"}, "-            value:\n+            value: full"},
		"an item of a flow list":           {8, FieldEdit{Path: web + "/args/1", Value: "8080"}, "-        args: [--port, \"80\"]\n+        args: [--port, \"8080\"]"},
		"a new key behind a blank line":    {8, FieldEdit{Path: "/metadata/labels/tier", Value: "front"}, "+    tier: front"},
		"a new key at the end":             {8, FieldEdit{Path: "/spec/minReadySeconds", Value: 5}, "+  minReadySeconds: 5"},
		"a new map":                        {8, FieldEdit{Path: "/metadata/annotations", Value: map[string]any{"a": "1", "b": []any{"x"}}}, "+  annotations:\n+    a: \"1\"\n+    b:\n+    - x"},
		"a new key in a flow":              {8, FieldEdit{Path: "/spec/template/metadata/labels/zone", Value: "a"}, "-    metadata: {labels: {app: web, tier: 'front'}}\n+    metadata: {labels: {app: web, tier: 'front', zone: a}}"},
		"a new key in an empty flow":       {8, FieldEdit{Path: "/spec/template/spec/nodeSelector/disk", Value: "ssd"}, "-      nodeSelector: {}\n+      nodeSelector: {disk: ssd}"},
		"a new item":                       {8, FieldEdit{Path: web + "/ports/-", Value: map[string]any{"containerPort": 9115, "name": "probe"}}, "+        - containerPort: 9115\n+          name: probe"},
		"a new item, indented":             {8, FieldEdit{Path: web + "/env/-", Value: map[string]any{"name": "A"}}, "+          - name: A"},
		"a new item in a flow":             {8, FieldEdit{Path: web + "/args/-", Value: "-v"}, "-        args: [--port, \"80\"]\n+        args: [--port, \"80\", -v]"},
		"a key goes":                       {8, FieldEdit{Path: "/metadata/labels/team", Remove: true}, "-    team: \"shop\""},
		"a block goes":                     {8, FieldEdit{Path: web + "/ports", Remove: true}, "-        ports:\n-        - containerPort: 80\n-        - {containerPort: 443, name: https}"},
		"an item goes":                     {8, FieldEdit{Path: web + "/env/0", Remove: true}, "-          - name: GREETING\n-            value: 'it''s me'"},
		"the first key of an item goes":    {8, FieldEdit{Path: "/spec/template/spec/containers/1/image", Remove: true}, "-      - image: sidecar:1\n-        name: sidecar\n+      - name: sidecar"},
		"a key of a flow goes":             {8, FieldEdit{Path: "/spec/template/metadata/labels/app", Remove: true}, "-    metadata: {labels: {app: web, tier: 'front'}}\n+    metadata: {labels: {tier: 'front'}}"},
		"the last key of a flow goes":      {8, FieldEdit{Path: "/spec/template/metadata/labels/tier", Remove: true}, "-    metadata: {labels: {app: web, tier: 'front'}}\n+    metadata: {labels: {app: web}}"},
		"an item of a flow goes":           {8, FieldEdit{Path: web + "/args/1", Remove: true}, "-        args: [--port, \"80\"]\n+        args: [--port]"},
		"a text block":                     {41, FieldEdit{Path: "/data/motd", Value: "hello\n# no comment\n\nthere\n"}, "-    world\n+    there"},
		"a text block without its end":     {41, FieldEdit{Path: "/data/motd", Value: "hello"}, "-  motd: |\n+  motd: |-\n-    # no comment\n-\n-    world"},
		"a folded block":                   {41, FieldEdit{Path: "/data/short", Value: "one\nthree"}, "-    two\n+\n+    three"},
		"a text block goes":                {41, FieldEdit{Path: "/data/motd", Remove: true}, "-  motd: |\n-    hello\n-    # no comment\n-\n-    world"},
		"a new key at the end of the file": {41, FieldEdit{Path: "/data/new", Value: "z"}, "+  new: z"},
		"a map for another":                {8, FieldEdit{Path: "/spec/template/metadata", Value: map[string]any{"labels": map[string]any{"a": "b"}}}, "-    metadata: {labels: {app: web, tier: 'front'}}\n+    metadata:\n+      labels:\n+        a: b"},
		"a map in a flow":                  {8, FieldEdit{Path: "/spec/template/metadata/labels", Value: map[string]any{"a": "b"}}, "-    metadata: {labels: {app: web, tier: 'front'}}\n+    metadata: {labels: {a: b}}"},
		"a list for another":               {8, FieldEdit{Path: web + "/ports", Value: []any{map[string]any{"containerPort": 81}}}, "-        - containerPort: 80\n-        - {containerPort: 443, name: https}\n+        - containerPort: 81"},
		"an item for another":              {8, FieldEdit{Path: web + "/ports/1", Value: map[string]any{"containerPort": 81, "name": "http"}}, "-        - {containerPort: 443, name: https}\n+        - containerPort: 81\n+          name: http"},
		"a number for a list":              {8, FieldEdit{Path: web + "/args", Value: 1}, "-        args: [--port, \"80\"]\n+        args: 1"},
		"a key with a slash":               {2, FieldEdit{Path: "/metadata/annotations", Value: map[string]any{"a/b": "c"}}, "+  annotations:\n+    a/b: c"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := EditAll([]byte(deployment), BeginningOn(test.line), []FieldEdit{test.change})
			if err != nil {
				t.Fatal(err)
			}
			if d := golden.LineDiff(deployment, string(got)); d != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", d, test.want)
			}
		})
	}
}

// A field that cannot be edited in place is refused with the line and the reason, and nothing
// changes.
func TestEditRefuses(t *testing.T) {
	const text = `apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  labels: &labels
    app: web
  annotations: *labels
spec:
  <<: {x: 1}
  y: 2
  tagged: !!str 5
  long: a text that goes
    on here
  only:
    one: 1
? explained
: one: 1
`
	tests := map[string]struct {
		change FieldEdit
		want   string
	}{
		"an alias":             {FieldEdit{Path: "/metadata/annotations/app", Value: "b"}, "line 7: /metadata/annotations/app: its value comes from the YAML anchor *labels; edit that, or write the value here"},
		"an anchor":            {FieldEdit{Path: "/metadata/labels/app", Value: "b"}, "line 6: /metadata/labels/app: other fields take their value from it through the YAML anchor &labels"},
		"a merge key":          {FieldEdit{Path: "/spec/x", Value: 2}, "line 9: /spec/x: it may come from a YAML merge key (<<)"},
		"a tag":                {FieldEdit{Path: "/spec/tagged", Value: "6"}, "line 11: /spec/tagged: it has the YAML tag !!str"},
		"a text over lines":    {FieldEdit{Path: "/spec/long", Value: "b"}, "line 12: /spec/long: its value spans several lines"},
		"not there":            {FieldEdit{Path: "/spec/no/such", Value: 1}, "line 9: /spec/no/such: it may come from a YAML merge key (<<)"},
		"below a value":        {FieldEdit{Path: "/kind/x", Value: 1}, "line 2: /kind/x: it is not in the manifest"},
		"gone already":         {FieldEdit{Path: "/metadata/other", Remove: true}, "line 4: /metadata/other: it is not in the manifest"},
		"the only key":         {FieldEdit{Path: "/explained/one", Remove: true}, "line 17: /explained/one: it cannot be edited in the form in which it is written"},
		"one of two, and none": {FieldEdit{Path: "/metadata/name/0", Value: 1}, "line 4: /metadata/name/0: it is not in the manifest"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := EditAll([]byte(text), BeginningOn(1), []FieldEdit{{Path: "/spec/y", Value: 3}, test.change})
			var refused *FieldError
			if !errors.As(err, &refused) || err.Error() != test.want || got != nil {
				t.Errorf("%v\nwant: %s", err, test.want)
			}
		})
	}
	if _, err := EditAll([]byte(text), BeginningOn(3), nil); err != nil {
		t.Errorf("no change needs no manifest: %v", err)
	}
	if _, err := EditAll([]byte(text), BeginningOn(3), []FieldEdit{{Path: "/kind", Value: "x"}}); err == nil {
		t.Error("it finds a manifest that begins nowhere")
	}
}

// Several changes are made one after the other, in files of every shape.
func TestEditShapes(t *testing.T) {
	tests := map[string]struct {
		text    string
		line    int
		changes []FieldEdit
		want    string
	}{
		"JSON": {
			"{\n  \"kind\": \"ConfigMap\",\n  \"data\": {\"a\": \"b\"}\n}\n", 1,
			[]FieldEdit{{Path: "/data/a", Value: "c"}, {Path: "/data/d", Value: "e"}},
			"{\n  \"kind\": \"ConfigMap\",\n  \"data\": {\"a\": \"c\", \"d\": \"e\"}\n}\n",
		},
		"an item of a List": {
			"kind: List\nitems:\n- kind: ConfigMap\n  data: {a: b}\n- kind: ConfigMap\n  data: {a: b}\n", 5,
			[]FieldEdit{{Path: "/data/a", Value: "c"}},
			"kind: List\nitems:\n- kind: ConfigMap\n  data: {a: b}\n- kind: ConfigMap\n  data: {a: c}\n",
		},
		"without a line end": {
			"kind: ConfigMap\ndata:\n  a: b", 1,
			[]FieldEdit{{Path: "/data/c", Value: "d"}, {Path: "/data/a", Value: "x"}},
			"kind: ConfigMap\ndata:\n  a: x\n  c: d",
		},
		"Windows line ends": {
			"kind: ConfigMap\r\ndata:\r\n  a: b\r\n", 1,
			[]FieldEdit{{Path: "/data/a", Value: "c"}},
			"kind: ConfigMap\r\ndata:\r\n  a: c\r\n",
		},
		"letters of several bytes": {
			"kind: ConfigMap\ndata: {ü: é, a: b}\n", 1,
			[]FieldEdit{{Path: "/data/a", Value: "ö"}},
			"kind: ConfigMap\ndata: {ü: é, a: ö}\n",
		},
		"the only key goes": {
			"kind: X\nspec:\n  only: # here\n    one: 1\n  last: 1\n", 1,
			[]FieldEdit{{Path: "/spec/only/one", Remove: true}},
			"kind: X\nspec:\n  only: {}\n  last: 1\n",
		},
		"the only item goes": {
			"kind: X\nonly:\n- 1\n", 1,
			[]FieldEdit{{Path: "/only/0", Remove: true}},
			"kind: X\nonly: []\n",
		},
		"the only key goes, its parent's key stays as it is": {
			"kind: X\n\"only\":\n  'one': 1\n", 1,
			[]FieldEdit{{Path: "/only/one", Remove: true}},
			"kind: X\n\"only\": {}\n",
		},
		"the only key of an item goes": {
			"kind: X\nlist:\n- one: 1\n- two: 2\n", 1,
			[]FieldEdit{{Path: "/list/0/one", Remove: true}},
			"kind: X\nlist:\n- {}\n- two: 2\n",
		},
		"a map for another, whose key stays as it is": {
			"kind: X\n'spec': {a: b}\n", 1,
			[]FieldEdit{{Path: "/spec", Value: map[string]any{"c": []any{"d"}}}},
			"kind: X\n'spec':\n  c:\n    - d\n",
		},
		"removed from the end of a list": {
			"kind: X\nlist:\n- a\n- b\n- c\n", 1,
			[]FieldEdit{{Path: "/list/2", Remove: true}, {Path: "/list/1", Remove: true}},
			"kind: X\nlist:\n- a\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := EditAll([]byte(test.text), BeginningOn(test.line), test.changes)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Reverting an edit restores the file.
func TestEditBack(t *testing.T) {
	paths := map[string][2]any{
		"/spec/replicas":                          {int64(3), int64(9)},
		"/spec/template/spec/containers/0/image":  {"nginx:1.28", "other"},
		"/metadata/labels/team":                   {"shop", "a \"b\" \\ c"},
		"/spec/template/spec/containers/0/args/1": {"80", "[x]"},
		"/spec/template/metadata/labels/tier":     {"front", "'"},
	}
	for path, values := range paths {
		text := []byte(deployment)
		for _, v := range []any{values[1], values[0]} {
			var err error
			if text, err = EditAll(text, BeginningOn(8), []FieldEdit{{Path: path, Value: v}}); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		if string(text) != deployment {
			t.Errorf("%s:\n%s", path, golden.LineDiff(deployment, string(text)))
		}
	}
}

// For any file, path and value, EditAll terminates and returns a file that has the manifest at the same
// position.
func FuzzEdit(f *testing.F) {
	for _, value := range []string{"x", "80", "a: b", "- x", "'", "\"", "#", " ", "", "é\n"} {
		f.Add(deployment, "/spec/template/spec/containers/0/image", value)
		f.Add("kind: X\nspec: {a: [b, 'c']}\n", "/spec/a/1", value)
		f.Add("kind: X\nspec:\n  a: |\n    x\n", "/spec/a", value)
		f.Add("kind: X\n", "kind", value)
	}
	f.Fuzz(func(t *testing.T, text, path, value string) {
		for _, c := range []FieldEdit{{Path: path, Value: value}, {Path: path, Remove: true}} {
			for _, line := range []int{1, 8} {
				out, err := EditAll([]byte(text), BeginningOn(line), []FieldEdit{c})
				if err != nil {
					continue
				}
				if _, err := ManifestAt(out, line); err != nil {
					t.Errorf("%q: %v", out, err)
				}
			}
		}
	})
}

// A document is removed with the comments before it; the other documents stay as they are.
func TestWithoutDocument(t *testing.T) {
	const three = "# one\na: 1\n---\n# two\nb: 2\n---\nc: 3\n"
	tests := map[string]struct {
		text string
		line int
		want string
	}{
		"the first":                 {three, 2, "# two\nb: 2\n---\nc: 3\n"},
		"one in the middle":         {three, 5, "# one\na: 1\n---\nc: 3\n"},
		"the last":                  {three, 7, "# one\na: 1\n---\n# two\nb: 2\n"},
		"the only one":              {"a: 1\n", 1, "nothing"},
		"not where a document is":   {three, 6, "the object is not a document of its own"},
		"an item of a list":         {"kind: List\nitems:\n- a: 1\n", 3, "the object is not a document of its own"},
		"a separator with a remark": {"a: 1\n--- # next\nb: 2\n", 3, "a: 1\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			left, err := WithoutDocument([]byte(test.text), test.line)
			got := string(left)
			switch {
			case err != nil:
				got = err.Error()
			case left == nil:
				got = "nothing"
			}
			if got != test.want {
				t.Errorf("left is %q, want %q", got, test.want)
			}
		})
	}
}
