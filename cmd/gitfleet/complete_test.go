package main

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"
)

// The shell is offered the names that there are, and nothing if nobody answers.
func TestCompletion(t *testing.T) {
	_, address := listening(t, told())
	nobody := httptest.NewServer(nil)
	nobody.Close()
	for line, want := range map[string]string{
		"tree ":                   "crp/idle crp/web rp/team/db",
		"wait crp/w":              "crp/web",
		"explain crp/web ":        "east west",
		"describe ":               "crp rp clusters",
		"describe crp ":           "idle web",
		"describe rp ":            "team/db",
		"get clusters ":           "east west",
		"get ":                    "crp rp clusters",
		"history crp/web ":        "",
		"tree crp/web --cluster ": "east west",
	} {
		for server, names := range map[string]string{address: want, nobody.URL: ""} {
			words := strings.Split(line, " ")
			args := append([]string{"__complete", words[0], "--server", server}, words[1:]...)
			var out, errOut bytes.Buffer
			run(args, &out, &errOut)
			var got []string
			for l := range strings.Lines(out.String()) {
				if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, ":") && strings.HasPrefix(l, words[len(words)-1]) {
					got = append(got, l)
				}
			}
			if server == nobody.URL && (want == "crp rp clusters") {
				names = want // these are always the same
			}
			if strings.Join(got, " ") != names {
				t.Errorf("%q is completed by %q, want %q", line, got, names)
			}
		}
	}
}
