package gitsource

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// later is a deadline that no test meets.
func later() time.Time { return time.Now().Add(time.Hour) }

// What merges line by line merges to the same text in git, and hardly anything that git merges
// does not.
func TestLinesMergeAsInGit(t *testing.T) {
	for name, words := range map[string]int{"hardly a line twice": 1000, "some lines twice": 30, "most lines twice": 6} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, uint64(words)))
			dir := t.TempDir()
			both, onlyGit, neither := 0, 0, 0
			for range 80 {
				base := randomLines(random, words)
				one, other := editedLines(random, base, words), editedLines(random, base, words)
				got, ok := mergeLines([]byte(base), []byte(one), []byte(other), later())
				want, clean := gitMergeFile(t, dir, base, one, other)
				switch {
				case ok && !clean:
					t.Errorf("merged here, and git has a conflict\n--- base\n%s--- one\n%s--- other\n%s--- got\n%s", base, one, other, got)
				case ok && string(got) != want:
					t.Errorf("--- base\n%s--- one\n%s--- other\n%s--- got\n%s--- want\n%s", base, one, other, got, want)
				case ok:
					both++
				case clean:
					onlyGit++
				default:
					neither++
				}
			}
			t.Logf("%d merge, %d only in git, %d nowhere", both, onlyGit, neither)
			if words > 10 && (both < 20 || onlyGit*5 > both || neither < 10) {
				t.Errorf("%d merge, %d only in git, %d nowhere", both, onlyGit, neither)
			}
		})
	}
}

// gitMergeFile merges with git merge-file, and reports whether there is no conflict.
func gitMergeFile(t *testing.T, dir, base, one, other string) (merged string, clean bool) {
	t.Helper()
	for name, text := range map[string]string{"base": base, "one": one, "other": other} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("git", "merge-file", "-p", "one", "base", "other")
	cmd.Dir = dir
	out, err := cmd.Output()
	exit := (*exec.ExitError)(nil)
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() < 0 || exit.ExitCode() > 127) {
		t.Fatal(err)
	}
	return string(out), err == nil
}

func randomLines(r *rand.Rand, words int) string {
	var b strings.Builder
	for range 10 + r.IntN(20) {
		fmt.Fprintf(&b, "line %d\n", r.IntN(words))
	}
	text := b.String()
	if r.IntN(4) == 0 {
		text = strings.TrimSuffix(text, "\n")
	}
	return text
}

// editedLines adds, removes and replaces a few lines.
func editedLines(r *rand.Rand, text string, words int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		switch r.IntN(20) {
		case 0:
		case 1:
			fmt.Fprintf(&out, "line %d\n", r.IntN(words))
		case 2:
			fmt.Fprintf(&out, "%sline %d\n", strings.TrimSuffix(line, "\n")+"\n", r.IntN(words))
		default:
			out.WriteString(line)
		}
	}
	return out.String()
}

// Some texts are not merged by lines.
func TestWhatIsNotMergedByLines(t *testing.T) {
	long := []byte(strings.Repeat("line\n", maxDiffLines))
	large := bytes.Repeat([]byte("x"), maxDiffBytes+1)
	text := []byte("1\n2\n3\n4\n5\n")
	one, other := []byte("one\n2\n3\n4\n5\n"), []byte("1\n2\n3\n4\nfive\n")
	tests := map[string]struct {
		base, one, other []byte
		deadline         time.Time
		want             string // empty for a conflict
	}{
		"lines apart":       {text, one, other, later(), "one\n2\n3\n4\nfive\n"},
		"the same change":   {text, one, one, later(), string(one)},
		"lines beside":      {text, []byte("1\n2\nthree\n4\n5\n"), []byte("1\n2\n3\nfour\n5\n"), later(), ""},
		"equal lines added": {[]byte("a\na\na\n"), []byte("a\na\na\na\n"), []byte("b\na\na\n"), later(), ""},
		"binary":            {text, one, []byte("1\n2\n3\n4\n\x00\n"), later(), ""},
		"too many lines":    {long, append([]byte("first\n"), long...), append(bytes.Clone(long), "last\n"...), later(), ""},
		"too large":         {large, append([]byte("first\n"), large...), append(bytes.Clone(large), "\nlast\n"...), later(), ""},
		"out of time":       {text, one, other, time.Now().Add(-time.Second), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := mergeLines(test.base, test.one, test.other, test.deadline)
			if ok != (test.want != "") || string(got) != test.want {
				t.Errorf("merges to %q, %v", got, ok)
			}
		})
	}
}

// A file that both sides have changed in other lines has the changes of both, and the mode that
// one of them has given it.
func TestFilesMergeByLines(t *testing.T) {
	g := gitrepo.New(t)
	ancestor := "1\n2\n3\n4\n5\n"
	g.Commit("ancestor", map[string]string{"a/x": ancestor, "b": ancestor})
	g.Git("checkout", "-q", "-b", "topic")
	if err := os.Chmod(filepath.Join(g.Dir, "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	head := g.Commit("topic", map[string]string{"a/x": strings.Replace(ancestor, "1", "one", 1)})
	g.Git("checkout", "-q", "-f", "main")
	base := g.Commit("main", map[string]string{"a/x": strings.Replace(ancestor, "5", "five", 1), "b": "changed\n"})
	r := start(t, config(t, g.Dir))
	r.wantHead(base)
	if err := r.FetchRef(t.Context(), "refs/heads/topic", head); err != nil {
		t.Fatal(err)
	}
	files, err := r.Merge(t.Context(), base, head)
	if err != nil {
		t.Fatal(err)
	}
	const want = "one\n2\n3\n4\nfive\n"
	if got, err := fs.ReadFile(files, "a/x"); err != nil || string(got) != want {
		t.Errorf("a/x is %q, %v", got, err)
	}
	if info, err := fs.Stat(files, "a/x"); err != nil || info.Size() != int64(len(want)) {
		t.Errorf("a/x is %v, %v", info, err)
	}
	if info, err := fs.Stat(files, "b"); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("b is %v, %v", info, err)
	} else if got, err := fs.ReadFile(files, "b"); err != nil || string(got) != "changed\n" {
		t.Errorf("b has %q, %v", got, err)
	}
	cmd := exec.Command("git", "merge-tree", "--write-tree", base, head)
	cmd.Dir = g.Dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if hash, err := files.(hasher).Hash("."); err != nil || hash != strings.TrimSpace(string(out)) {
		t.Errorf("it merges to %s, %v, and in git to %s", hash, err, out)
	}
}
