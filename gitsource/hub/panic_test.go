package hub

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// panicking is a file system that panics when a file is opened.
type panicking struct{ fs.FS }

func (panicking) Open(string) (fs.File, error) { panic("index out of range") }

// A panic while a commit is loaded refuses the commit, and does not affect the next one. The panic itself is written to the log only.
func TestAPanicRefusesTheCommit(t *testing.T) {
	files := fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")}}
	for name, logged := range map[string]bool{"with a log": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			var o Options
			var log string
			if logged {
				o.LogPanic = func(commit Commit, value, stack string) { log = commit.Hash + ": " + value + "\n" + stack }
			}
			l := NewLoader(o)
			for range 2 {
				if s, err := l.Load(Commit{Hash: "good"}, files); err != nil || len(s.Objects) != 1 {
					t.Fatalf("%v, %v", s, err)
				}
				log = ""
				s, err := l.Load(Commit{Hash: "bad"}, panicking{files})
				bad, refused := errors.AsType[*LoadError](err)
				if s != nil || !refused || !bad.Internal || strings.Contains(err.Error(), "index out of range") == logged {
					t.Errorf("%v, %v", s, err)
				}
				if logged && (!strings.HasPrefix(log, "bad: index out of range") || !strings.Contains(log, "panicking.Open")) {
					t.Errorf("the log has %q", log)
				}
			}
		})
	}
}
