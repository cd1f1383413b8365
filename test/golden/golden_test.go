package golden

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

const archived = "-- greet you --\nhello you\n-- input --\ntext\n-- want --\nall\n"

// playGreeting compares an archive with the output of a command that greets in one of two ways.
func playGreeting(t *testing.T, path, greeting string) (failures string) {
	t.Helper()
	r := &recorder{TB: t}
	Archive(t, path, func(t *testing.T, a *txtar.Archive) {
		commands := &txtar.Archive{Files: a.Files[:2]}
		Steps(r, commands, func(words []string, text string) (string, bool) {
			if words[0] == "input" {
				if text != "text\n" {
					t.Errorf("the input is %q", text)
				}
				return "", false
			}
			return greeting + " " + words[1] + "\n", true
		})
		Answer(r, a, "want", "all\n")
	})
	return r.failures
}

func TestArchiveReportsTheFirstDifferentLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txtar")
	write(t, path, archived)
	if failures := playGreeting(t, path, "hello"); failures != "" {
		t.Errorf("the same output fails: %s", failures)
	}
	if failures := playGreeting(t, path, "bye"); !strings.Contains(failures, `line 1: got "bye you", want "hello you"`) {
		t.Errorf("the failure of another output is %q", failures)
	}
}

func TestUpdateRewritesTheOutputInAnArchive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txtar")
	write(t, path, archived)
	setUpdate(t)
	if failures := playGreeting(t, path, "bye"); failures != "" {
		t.Error(failures)
	}
	expectText(t, path, strings.Replace(archived, "hello you", "bye you", 1))
}

func TestUpdateAddsAMissingAnswer(t *testing.T) {
	a := &txtar.Archive{}
	setUpdate(t)
	Answer(t, a, "want", "all\n")
	if got := Text(a, "want") + Text(a, "other"); got != "all\n" {
		t.Errorf("got %q", got)
	}
}

func TestFileReportsTheFirstDifferentLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "want.txt")
	write(t, path, "one\n")
	for got, want := range map[string]string{
		"one\n":      "",
		"one\ntwo\n": `line 2: got "two", want ""`,
		"one":        `line 2: got no such line, want ""`,
	} {
		r := &recorder{TB: t}
		File(r, path, got)
		if (want == "") != (r.failures == "") || !strings.Contains(r.failures, want) {
			t.Errorf("%q fails with %q, want %q", got, r.failures, want)
		}
	}
}

func TestUpdateWritesAFileOnlyIfTheTestHasNotFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "want.txt")
	setUpdate(t)
	File(t, path, "right\n")
	File(&recorder{TB: t, failures: "earlier"}, path, "wrong\n")
	expectText(t, path, "right\n")
}

// If only some subtests were run, -update rewrites what they have compared. Otherwise it removes what nothing was compared with.
func TestUpdateRewritesABook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book.txt")
	setUpdate(t)
	run := flag.Lookup("test.run")
	defer run.Value.Set(run.Value.String())
	for _, test := range []struct{ run, want string }{
		{"TestGreetings/you", "-- all --\nhello all\n-- you --\nbye you\n"},
		{"TestGreetings", "-- you --\nbye you\n"},
	} {
		write(t, path, "-- all --\nhello all\n-- you --\nhello you\n")
		if err := run.Value.Set(test.run); err != nil {
			t.Fatal(err)
		}
		t.Run(test.run, func(t *testing.T) { Open(t, path).Compare(t, "you", "bye you") })
		expectText(t, path, test.want)
	}
}

func setUpdate(t *testing.T) {
	t.Helper()
	was := *update
	*update = true
	t.Cleanup(func() { *update = was })
}

func expectText(t *testing.T, path, want string) {
	t.Helper()
	if text, err := os.ReadFile(path); err != nil || string(text) != want {
		t.Errorf("the file is %q (%v), want %q", text, err, want)
	}
}

// A recorder records failures instead of reporting them.
type recorder struct {
	testing.TB
	failures string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures += fmt.Sprintf(format, args...)
}

func (r *recorder) Failed() bool { return r.failures != "" }
