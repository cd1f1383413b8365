package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/test/reports"
)

// A daemon is asked only where a name comes next.
func TestCompletionAsksOnlyForNames(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(srv.Close)
	for line, want := range map[string]int{"get ": 0, "describe c": 0, "tree crp/web ": 0, "history crp/web ": 0, "tree ": 1, "get crp ": 1, "describe crp/": 1} {
		asked = 0
		words := strings.Split(line, " ")
		run(slices.Concat([]string{"__complete", words[0], "--server", srv.URL}, words[1:]), &bytes.Buffer{}, &bytes.Buffer{})
		if asked != want {
			t.Errorf("%q: asked %d times, want %d", line, asked, want)
		}
	}
}

// Every key of completers is the path of a command.
func TestCompletersAreForCommands(t *testing.T) {
	root := newRoot()
	for path := range completers {
		cmd, rest, err := root.Find(strings.Fields(path))
		if err != nil || len(rest) > 0 || cmd.CommandPath() != "gitfleet "+path {
			t.Errorf("there is no command %q: %v", path, err)
		}
	}
}

// Completion offers the existing names, and nothing if the daemon does not respond.
func TestCompletion(t *testing.T) {
	_, address := listening(t, reports.Sample())
	nobody := httptest.NewServer(nil)
	nobody.Close()
	for line, want := range map[string]string{
		"tree ":                   "crp/idle crp/web rp/team/db",
		"wait crp/w":              "crp/web",
		"explain crp/web ":        "east west",
		"describe ":               "crp mc rp",
		"describe crp/":           "crp/idle crp/web",
		"drift show ":             "crp/idle crp/web rp/team/db",
		"events crp/i":            "crp/idle",
		"get crp -o js":           "json jsonpath=",
		"wait crp/web --for ":     "applied available",
		"history --kind o":        "object",
		"describe crp ":           "idle web",
		"describe rp ":            "team/db",
		"get clusters ":           "east west",
		"get ":                    "all areq careq crp crpe csur mc placements rp sur",
		"history crp/web ":        "",
		"tree crp/web --cluster ": "east west",
	} {
		for server, names := range map[string]string{address: want, nobody.URL: ""} {
			words := strings.Split(line, " ")
			commandWords := 1
			if words[0] == "drift" {
				commandWords = 2
			}
			args := slices.Concat([]string{"__complete"}, words[:commandWords], []string{"--server", server}, words[commandWords:])
			var out, errOut bytes.Buffer
			run(args, &out, &errOut)
			var got []string
			for l := range strings.Lines(out.String()) {
				if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, ":") && strings.HasPrefix(l, words[len(words)-1]) {
					got = append(got, l)
				}
			}
			if server == nobody.URL && (strings.HasSuffix(want, " rp") || strings.HasPrefix(want, "all ") || strings.Contains(line, " -") && !strings.Contains(line, "--cluster")) {
				names = want // these values do not depend on the daemon
			}
			if strings.Join(got, " ") != names {
				t.Errorf("%q is completed by %q, want %q", line, got, names)
			}
		}
	}
}
