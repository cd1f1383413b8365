package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

const told = "-- greet you --\nhello you\n-- say nothing --\ninput\n-- want --\nall\n"

// What is not as expected fails, and says where; with -update it is taken over.
func TestArchiveIsHeldTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txtar")
	write(t, path, told)
	play := func(greeting string) func(*testing.T, *txtar.Archive) {
		return func(t *testing.T, a *txtar.Archive) {
			last := a.Files[2]
			a.Files = a.Files[:2]
			r := &recorder{TB: t}
			Steps(r, a, func(words []string, text string) (string, bool) {
				if words[0] == "say" {
					if text != "input\n" {
						t.Errorf("the input is %q", text)
					}
					return "", false
				}
				return greeting + " " + words[1] + "\n", true
			})
			a.Files = append(a.Files, last)
			Answer(r, a, "want", "all\n")
			if wrong := greeting != "hello"; (r.failures == "") == wrong && !*update {
				t.Errorf("greeted with %q: %q", greeting, r.failures)
			}
			if greeting != "hello" && !*update && !strings.Contains(r.failures, `line 1: got "bye you", want "hello you"`) {
				t.Errorf("the failure says %q", r.failures)
			}
		}
	}
	Archive(t, path, play("hello"))
	Archive(t, path, play("bye"))

	*update = true
	defer func() { *update = false }()
	Archive(t, path, play("bye"))
	if text, err := os.ReadFile(path); err != nil || string(text) != strings.Replace(told, "hello you", "bye you", 1) {
		t.Errorf("after -update: %v\n%s", err, text)
	}
}

func TestFileIsHeldTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "want.txt")
	*update = true
	File(t, path, "as it is\n")
	*update = false
	r := &recorder{TB: t}
	if File(r, path, "as it is\n"); r.failures != "" {
		t.Errorf("the same text fails: %s", r.failures)
	}
	if File(r, path, "as it is\nand more\n"); !strings.Contains(r.failures, `line 2: got "and more", want ""`) {
		t.Errorf("another text: %q", r.failures)
	}
}

func TestText(t *testing.T) {
	a := txtar.Parse([]byte(told))
	if got := Text(a, "want") + Text(a, "not there"); got != "all\n" {
		t.Errorf("got %q", got)
	}
}

// A recorder keeps failures for itself.
type recorder struct {
	testing.TB
	failures string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures += fmt.Sprintf(format, args...)
}
