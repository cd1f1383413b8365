package lockfile

import (
	"reflect"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
)

const (
	hash   = "0123456789abcdef0123456789abcdef01234567"
	digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// What is written is sorted, and read again as it was.
func TestText(t *testing.T) {
	web := Chart{Request: Request{"oci://r.example/charts", "web", "^1"}, Resolved: "1.2.0", Digest: digest}
	api := Chart{Request: Request{"https://c.example", "api", "2.0.0"}, Resolved: "2.0.0", Digest: digest, URL: "https://c.example/api-2.0.0.tgz"}
	f := File{Bases: []Base{{"https://b.example/r", "v2", hash}, {"https://a.example/r", "", hash}}, Charts: []Chart{web, api}}
	got, problems := Read(Name, f.Text(), limit.Limits{}.WithDefaults())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	f.Bases[0], f.Bases[1], f.Charts[0], f.Charts[1] = f.Bases[1], f.Bases[0], api, web
	if !reflect.DeepEqual(got, f) {
		t.Errorf("got %+v", got)
	}
	if c, locked := got.Chart(web.Request); c != web || !locked {
		t.Errorf("chart %v", c)
	}
	if _, locked := got.Chart(Request{"oci://r.example/charts", "web", "^2"}); locked {
		t.Error("another range is locked")
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
		"charts: [{repository: 'oci://a', name: b, version: '1', resolved: '1', digest: 'sha256:1'}]\n": "gitfleet.lock.yaml:1: charts[0]: must have the repository, the name and the versions of a chart, the digest of its archive, and its url unless it is in a registry; run gitfleet lock",
		"bases:\n- {url: a, commit: " + hash + "}\n- {url: a, commit: " + hash + "}\n":                  "gitfleet.lock.yaml: a is locked twice; remove one entry, or run gitfleet lock",
	} {
		f, problems := Read(Name, []byte(text), limit.Limits{}.WithDefaults())
		if len(problems) != 1 || problems[0].Error() != want || f.Bases != nil {
			t.Errorf("%q: got %v", text, problems)
		}
	}
}
