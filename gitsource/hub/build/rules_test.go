package build

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
)

// Nothing that kustomize might fetch passes as a name in the commit.
func TestRemoteReferences(t *testing.T) {
	for value, want := range map[string]struct{ file, directory bool }{
		"app.yaml":                {false, false},
		"../base":                 {false, false},
		"a:b/c":                   {true, true},
		"https://example.com/a":   {true, true},
		" https://example.com/a":  {true, true},
		"git::https://host/a":     {true, true},
		"ssh://git@host/a":        {true, true},
		"file:///a":               {true, true},
		"git@host:org/a":          {false, true},
		"me@127.0.0.1/org/a":      {false, true},
		"github.com/org/a":        {false, true},
		"GitHub.com/org/a":        {false, true},
		"apps/github.com/values":  {false, false},
		"mail@example.yaml":       {false, true},
		"key=https://example.com": {true, true},
	} {
		file := mention{value: value, kind: dataFile}
		directory := mention{value: value, kind: fileOrDirectory}
		if got := isRemote(value) || file.isRepository(); got != want.file {
			t.Errorf("%q as a file is remote: %t, want %t", value, got, want.file)
		}
		if got := isRemote(value) || directory.isRepository(); got != want.directory {
			t.Errorf("%q as a directory is remote: %t, want %t", value, got, want.directory)
		}
	}
}

// The references of a kustomization are found with their fields and lines.
func TestMentions(t *testing.T) {
	k := parsed("kustomization.yaml", `resources: [ns.yaml, ../base]
components:
- ../tls
patches:
- path: patch.yaml
- patch: "[{op: remove, path: /a}]"
  target: {kind: Namespace}
configMapGenerator:
- name: settings
  files: [a.txt, b=c.txt]
  envs: [d.env]
secretGenerator:
- name: keys
  literals: [token=canary]
transformers:
- labels.yaml
- |
  {apiVersion: builtin, kind: ReplacementTransformer, metadata: {name: r}, replacements: [{path: r.yaml}]}
`)
	if k.problems.HasErrors() {
		t.Fatal(k.problems.Err())
	}
	want := []mention{
		{"resources[0]", 1, "ns.yaml", fileOrDirectory}, {"resources[1]", 1, "../base", fileOrDirectory},
		{"components[0]", 3, "../tls", componentDirectory},
		{"patches[0].path", 5, "patch.yaml", textFile},
		{"configMapGenerator[0].files[0]", 10, "a.txt", dataFile}, {"configMapGenerator[0].files[1]", 10, "c.txt", dataFile},
		{"configMapGenerator[0].envs[0]", 11, "d.env", dataFile},
		{"transformers[0]", 16, "labels.yaml", pluginFile}, {"transformers[1]", 17, "r.yaml", textFile},
	}
	if !reflect.DeepEqual(k.mentions, want) {
		t.Errorf("found\n%+v\nwant\n%+v", k.mentions, want)
	}
	if len(k.literals) != 1 || k.literals[0] != "token=canary" || len(k.generators) != 2 || k.generators[1].line != 13 {
		t.Errorf("secrets %v, generators %+v", k.literals, k.generators)
	}
}

// A message of kustomize has no secret value, in any spelling, and none of its internals.
func TestClean(t *testing.T) {
	const canary = "hunter\"two"
	k := &kustomization{literals: []string{"password=" + canary}, files: []reference{{path: "token.txt", data: true}, {path: "app.yaml"}}}
	b := &builder{
		Target: Target{graph: &Graph{tree: &tree.Tree{}}, parts: []*kustomization{k}}, secrets: []string{base64.StdEncoding.EncodeToString([]byte("open sesame"))},
		texts: map[string][]byte{"token.txt": []byte("first\nkey=second\n"), "app.yaml": []byte("replicas")},
	}
	for message, want := range map[string]string{
		"bad value " + canary:         "bad value ***",
		`bad value hunter\"two`:       "bad value ***",
		"bad line key=second":         "bad line ***",
		"bad value open sesame":       "bad value ***",
		"no replicas in app.yaml":     "no replicas in app.yaml",
		"cannot read /repository/a/b": "cannot read a/b",
		"'/repository' must be":       "'.' must be",
		"in  two \t words":            "in two words",
		"accumulating resources: accumulation err='accumulating resources from 'values.yaml': missing Resource metadata': must build at directory: '/repository/app/values.yaml': file is not directory": "app/values.yaml is not a Kubernetes object; leave it out of the resources",
		"at 0xc000123456 of &{a b}":                                   "at … of",
		"first line\nwith the manifest":                               "*** line",
		"base64 " + base64.StdEncoding.EncodeToString([]byte(canary)): "base64 ***",
		`resid.ResId{Gvk:resid.Gvk{Group:"", Version:"v1", Kind:"Pod", isClusterScoped:false}, Name:"web", Namespace:""} is twice`: "Pod web is twice",
	} {
		if got := b.clean(message); got != want {
			t.Errorf("%q becomes %q, want %q", message, got, want)
		}
	}
	if exact := strings.Repeat("x", maxMessage); (&builder{}).clean(exact) != exact {
		t.Error("a message of the maximum length is cut")
	}
	if got := (&builder{}).clean("one\n" + strings.Repeat("x", maxMessage)); !strings.HasPrefix(got, "one x") || len([]rune(got)) != maxMessage+2 {
		t.Errorf("a long message without secrets becomes %q", got)
	}
}

// An object is attributed to the document of its kind whose name is most like its own.
func TestNearest(t *testing.T) {
	positions := []sourcePosition{
		{kind: "ConfigMap", name: "web", line: 1}, {kind: "ConfigMap", name: "web-cache", line: 2}, {kind: "Service", name: "web", line: 3},
	}
	for _, test := range []struct {
		kind, name string
		line       int
	}{
		{"ConfigMap", "prod-web-x7", 1}, {"ConfigMap", "prod-web-cache", 2}, {"ConfigMap", "other", 0},
		{"Service", "other", 3}, {"Secret", "web", 0},
	} {
		got, found := nearest(positions, test.kind, test.name)
		if got.line != test.line || found != (test.line > 0) {
			t.Errorf("%s %s comes from line %d, %t; want %d", test.kind, test.name, got.line, found, test.line)
		}
	}
}

// Plugins name files in fields of either case, and in one field or the other.
func TestFieldsOfPlugins(t *testing.T) {
	config := map[string]any{"Files": []any{"a", nil}, "files": "b", "file": "c", "number": 3}
	for name, want := range map[string][]string{"files": {"a", "b"}, "file": {"c"}, "number": {"3"}, "none": nil} {
		if got := texts(field(config, name)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// A build finds its files by any spelling of their paths, cannot change them, and ends when the
// file system is closed.
func TestBuildFiles(t *testing.T) {
	f := newBuildFiles()
	f.add("/repository/app/my file.txt", []byte("text"))
	for _, name := range []string{"/repository/app/my file.txt", "repository/app/my file.txt", "/repository/app/../app/my file.txt"} {
		data, err := f.ReadFile(name)
		if err != nil || string(data) != "text" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
		data[0] = 'x'
	}
	dir, file, err := f.CleanedAbs("/repository/app/my file.txt")
	if dir != "/repository/app" || file != "my file.txt" || err != nil {
		t.Errorf("directory %q, file %q, %v", dir, file, err)
	}
	if dir, file, err := f.CleanedAbs("/repository/app/"); dir != "/repository/app" || file != "" || err != nil {
		t.Errorf("directory %q, file %q, %v", dir, file, err)
	}
	if _, _, err := f.CleanedAbs("/etc"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("/etc: %v", err)
	}
	if _, err := f.ReadFile("/repository/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	f.closed.Store(true)
	if _, err := f.ReadFile("/repository/app/my file.txt"); !errors.Is(err, errClosed) {
		t.Errorf("a closed one: %v", err)
	}
}
