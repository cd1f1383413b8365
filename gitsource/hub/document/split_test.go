package document

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/test/repository"
)

// Splitting a file and parsing its parts gives the same values as parsing the whole file, if
// the whole file can be parsed.
func FuzzSplit(f *testing.F) {
	repository.EachFile(f, "../testdata/*/*.txtar", func(_ string, data []byte) { f.Add(data) })
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

// values returns the documents of a text that are not empty.
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
		if n.Content[0].ShortTag() != "!!null" {
			v, _, _ := Decode(&Report{Limits: limit.Limits{AliasExpansion: 100, Depth: 100}}, n.Content[0], math.MaxInt64)
			all = append(all, v)
		}
	}
}
