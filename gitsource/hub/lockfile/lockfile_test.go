package lockfile

import (
	"reflect"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
)

const hash = "0123456789abcdef0123456789abcdef01234567"

// What is written is sorted, and read again as it was.
func TestText(t *testing.T) {
	f := File{Bases: []Base{{"https://b.example/r", "v2", hash}, {"https://a.example/r", "", hash}}}
	got, problems := Read(Name, f.Text(), limit.Limits{}.WithDefaults())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	f.Bases[0], f.Bases[1] = f.Bases[1], f.Bases[0]
	if !reflect.DeepEqual(got, f) {
		t.Errorf("got %+v", got)
	}
	if c := got.Commit("https://b.example/r", "v2"); c != hash {
		t.Errorf("commit %q", c)
	}
	if c := got.Commit("https://b.example/r", ""); c != "" {
		t.Errorf("commit of the default branch %q", c)
	}
}

// What is wrong is reported with its position.
func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"basis: []\n":         `gitfleet.lock.yaml:1: unknown field "basis"; run gitfleet lock, which writes the file`,
		"bases: [{url: a}]\n": "gitfleet.lock.yaml:1: bases[0]: must have the url of a repository, and a commit of 40 hexadecimal digits; run gitfleet lock",
		"bases:\n- {url: a, commit: " + hash + "}\n- {url: a, commit: " + hash + "}\n": "gitfleet.lock.yaml: a is locked twice; remove one entry, or run gitfleet lock",
	} {
		f, problems := Read(Name, []byte(text), limit.Limits{}.WithDefaults())
		if len(problems) != 1 || problems[0].Error() != want || f.Bases != nil {
			t.Errorf("%q: got %v", text, problems)
		}
	}
}
