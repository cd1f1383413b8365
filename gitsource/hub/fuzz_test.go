package hub

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/placement/api"
)

// seeds are the files of all scenes.
func seeds(f *testing.F, add func(name string, data []byte)) {
	scenes, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(scenes) == 0 {
		f.Fatalf("%d scenes, %v", len(scenes), err)
	}
	for _, scene := range scenes {
		archive, err := txtar.ParseFile(scene)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if file.Name != "want" {
				add(file.Name, file.Data)
			}
		}
	}
}

// Taking a file apart first and parsing then is the same as parsing it whole,
// where that can be done.
func FuzzSplit(f *testing.F) {
	seeds(f, func(_ string, data []byte) { f.Add(data) })
	f.Fuzz(func(t *testing.T, data []byte) {
		chunks := split(data)
		end := 0
		for _, c := range chunks {
			at := bytes.Index(data[end:], c.text)
			if at < 0 {
				t.Fatalf("chunk %q is not in the rest of the file", c.text)
			}
			if lines := bytes.Count(data[:end+at], []byte("\n")); c.before != lines {
				t.Fatalf("chunk %q is below %d lines, not %d", c.text, lines, c.before)
			}
			end += at + len(c.text)
		}
		whole, ok := values(data)
		if !ok || bytes.Contains(data, []byte("%")) || bytes.Contains(data, byteOrderMark) {
			return
		}
		var parts []any
		for _, c := range chunks {
			part, ok := values(c.text)
			if !ok {
				t.Fatalf("the file can be read, and its chunk %q cannot", c.text)
			}
			parts = append(parts, part...)
		}
		if !reflect.DeepEqual(whole, parts) {
			t.Fatalf("whole %#v, in parts %#v", whole, parts)
		}
	})
}

// values are the documents of a text that hold something.
func values(data []byte) (all []any, ok bool) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			return all, true
		}
		if err != nil {
			return nil, false
		}
		if len(n.Content) == 1 && !isNothing(n.Content[0]) {
			c := &converter{r: &report{}, limits: Limits{}.withDefaults(), words: vocabulary{}}
			v, _ := c.document(n.Content[0])
			all = append(all, v)
		}
	}
}

// Whatever a file holds, it is judged without a crash, and what is found in it
// keeps the promises of a snapshot.
func FuzzParse(f *testing.F) {
	seeds(f, func(name string, data []byte) { f.Add(filepath.Ext(name) == ".json", data) })
	limits := Limits{Depth: 20, Documents: 20, AliasExpansion: 10}.withDefaults()
	f.Fuzz(func(t *testing.T, isJSON bool, data []byte) {
		name := "file.yaml"
		if isJSON {
			name = "file.json"
		}
		got := parseFile(name, data, limits, vocabulary{}, nil)
		for _, p := range got.problems {
			if strings.Contains(p.Message, "makes the parser fail") {
				t.Fatal(p)
			}
			// The decoder found what the shaper did not.
			if strings.Contains(p.Message, "cannot be read: ") || strings.HasPrefix(p.Message, "unknown field \"") || strings.HasPrefix(p.Message, "duplicate field") {
				t.Fatal(p)
			}
			if lines := countLines(data); p.Line < 0 || p.Line > lines {
				t.Fatalf("%v: the file has %d lines", p, lines)
			}
		}
		for _, it := range got.items {
			if it.id.Kind == "" || it.id.Name == "" || it.origin.Path != name {
				t.Fatalf("item %+v", it)
			}
			if it.object != nil {
				checkObject(t, it.object)
			}
		}
		again := parseFile(name, data, limits, vocabulary{}, nil)
		if !reflect.DeepEqual(got.problems, again.problems) || len(got.items) != len(again.items) {
			t.Fatal("the second answer is another one")
		}
	})
}

// countLines counts generously: YAML knows more line ends than editors do.
func countLines(data []byte) int {
	n := 1
	for _, c := range string(data) {
		if strings.ContainsRune("\n"+otherBreaks, c) {
			n++
		}
	}
	return n
}

// checkObject checks that an object is what package unstructured expects, and
// that its JSON is the same object.
func checkObject(t *testing.T, o *api.Object) {
	if got := api.IDOf(o.Object); got != o.ID {
		t.Fatalf("ID %v, and the object says %v", o.ID, got)
	}
	data, err := o.Object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	copied := o.Object.DeepCopy() // panics on types it does not know
	if err := copied.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	if hash, err := hashOf(copied.Object); err != nil || hash != o.Hash {
		t.Fatalf("hash %s, after a round trip %s, %v", o.Hash, hash, err)
	}
}

func FuzzKustomization(f *testing.F) {
	seeds(f, func(name string, data []byte) {
		if slices.Contains(kustomizationNames, filepath.Base(name)) {
			f.Add(data)
		}
	})
	limits := Limits{}.withDefaults()
	f.Fuzz(func(t *testing.T, data []byte) {
		got := parseKustomization("kustomization.yaml", data, limits)
		if hasErrors(got.problems) {
			return
		}
		// What a build would read is what is mentioned: no text that names an
		// address may be missing.
		text, err := json.Marshal(got.spec.Resources)
		if err != nil {
			t.Fatal(err)
		}
		remote := slices.ContainsFunc(got.mentions, func(m mention) bool { return isRemote(m.value) || m.isRepository() })
		if bytes.Contains(text, []byte("://")) && !remote {
			t.Fatalf("%s has an address that is not mentioned", text)
		}
	})
}

// No ignore file takes long or crashes, and a pattern that is taken back at
// once ignores nothing.
func FuzzIgnore(f *testing.F) {
	for _, seed := range []string{"*.yaml\n!a", "a/**/b", "[a-z]*", `\#`, "**/**/**/**/a", "a***b", "[[]", "/", "!/", `\`, "[!]a]"} {
		f.Add(seed, "a/b.yaml", true)
	}
	f.Fuzz(func(t *testing.T, text, name string, dir bool) {
		if len(text) > 1000 || len(name) > 1000 {
			return
		}
		(*ignorer)(nil).with(".", text).ignores(name, dir)
		line, _, _ := strings.Cut(text, "\n")
		line = strings.TrimRight(line, "\r")
		if line == "" || line[0] == '!' || line[0] == '#' {
			return
		}
		if (*ignorer)(nil).with(".", line+"\n!"+line).ignores(name, dir) {
			t.Fatalf("%q is ignored by %q, although that is taken back", name, line)
		}
	})
}
