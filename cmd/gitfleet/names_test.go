package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/reports"
)

// recorded returns the address of a daemon with a report and a history.
func recorded(t *testing.T, r *status.Report, entries ...history.Entry) string {
	t.Helper()
	daemon := server.New(nil)
	daemon.Mount("GET /history", historyOf(t, entries...))
	overview.Serve(daemon, nil, nil)
	daemon.Publish(r)
	srv := httptest.NewServer(daemon.Handler())
	t.Cleanup(srv.Close)
	return srv.URL
}

// column returns the names in one column of a command's output.
func column(t *testing.T, i int, args ...string) []string {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := run(args, &out, &errOut); code == exit.Failed {
		t.Fatalf("%v: exit code %d: %s", args, code, &errOut)
	}
	var names []string
	for line := range strings.Lines(out.String()) {
		if cells := strings.Fields(line); len(cells) > i && !slices.Contains(names, cells[i]) {
			names = append(names, cells[i])
		}
	}
	if len(names) == 0 {
		t.Fatalf("%v prints no names:\n%s", args, &out)
	}
	return names
}

// Every name that a command prints is accepted by all commands.
func TestNamesRoundTrip(t *testing.T) {
	address := recorded(t, driftingFleet(t).Report, years()...)
	to := []string{"--server", address}
	names := map[string][]string{
		"placement": append(column(t, 0, append([]string{"get", "crp", "--no-headers"}, to...)...), column(t, 0, append([]string{"get", "crp", "-o", "name"}, to...)...)...),
		"cluster":   append(column(t, 0, append([]string{"get", "mc", "--no-headers"}, to...)...), column(t, 0, append([]string{"get", "mc", "-o", "name"}, to...)...)...),
		"object":    column(t, 0, append([]string{"drift", "list", "--no-headers"}, to...)...),
	}
	for _, name := range column(t, 0, append([]string{"get", "all", "--no-headers"}, to...)...) {
		kind := "placement"
		if strings.HasPrefix(name, "mc/") {
			kind = "cluster"
		}
		names[kind] = append(names[kind], name)
	}
	names["object"] = append(names["object"], "ConfigMap/web/one", "configmap/web/one", "cm/web/one", "configmaps/web/one")
	names["object"] = append(names["object"], offlineNames(t)...)
	takers := map[string][]string{
		"placement": {"tree NAME", "explain NAME", "describe NAME", "get NAME", "get NAME -o yaml", "events NAME", "drift list NAME", "drift show NAME", "wait NAME --timeout 1ms", "history NAME"},
		"cluster":   {"describe NAME", "get NAME", "get NAME -o json", "events NAME", "explain web NAME", "tree web --cluster NAME", "drift list --cluster NAME", "history --cluster NAME", "history NAME"},
		"object":    {"drift show NAME", "history --object NAME"},
	}
	for kind, all := range names {
		for _, taker := range takers[kind] {
			for _, name := range all {
				var out, errOut bytes.Buffer
				code := run(append(strings.Fields(strings.ReplaceAll(taker, "NAME", name)), "--server", address), &out, &errOut)
				if code == exit.Failed || strings.Contains(errOut.String(), "there is no") {
					t.Errorf("%s: exit code %d: %s", strings.ReplaceAll(taker, "NAME", name), code, &errOut)
				}
			}
		}
	}
}

// offlineNames returns the names of an object in the output of plan and validate.
func offlineNames(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "one.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: web}\n")
	write(t, dir, "broken/one.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: web}\n")
	placement := func(of string) string {
		return "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacement\nmetadata: {name: " + of + "}\n" +
			"spec: {resourceSelectors: [{group: '', version: v1, kind: Namespace, name: " + of + "}]}\n"
	}
	write(t, dir, "placed/placement.yaml", placement("web"))
	write(t, dir, "other/placement.yaml", placement("other")+"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n---\n"+
		"apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberCluster\nmetadata: {name: ams}\nspec: {identity: {kind: User, name: gitfleet}}\n")
	var names []string
	for _, line := range []string{"plan", "validate", "validate --set limits.objects=1000"} {
		switch line {
		case "plan": // without the copy
			write(t, dir, ".gitfleetignore", "broken/\n")
		case "validate": // without the placement
			write(t, dir, ".gitfleetignore", "broken/\nplaced/\n")
		default: // defined twice
			write(t, dir, ".gitfleetignore", "")
		}
		_, out, errOut := command(append(strings.Fields(line), dir)...)
		found := ""
		for _, word := range strings.FieldsFunc(out, func(r rune) bool { return strings.ContainsRune(" ,\n", r) }) {
			if strings.HasSuffix(word, "/one") {
				found = word
			}
		}
		if found == "" {
			t.Errorf("%s names no ConfigMap:\n%s%s", line, out, errOut)
		}
		names = append(names, found)
	}
	return names
}

// The exit code for an unknown name is 1, so that scripts can distinguish it from a daemon that
// does not respond. The error suggests an existing name.
func TestUnknownNames(t *testing.T) {
	_, address := listening(t, driftingFleet(t).Report)
	for line, want := range map[string]string{
		"get pods":                         "there is no kind, placement or cluster pods; there are ",
		"get crp tolos":                    "there is no placement crp/tolos; did you mean crp/tools?",
		"get mc amst":                      "there is no cluster amst; did you mean ams?",
		"get tolos":                        "there is no kind, placement or cluster tolos; did you mean crp/tools?",
		"describe tolos":                   "there is no placement or cluster tolos; did you mean crp/tools?",
		"tree tolos":                       "there is no placement tolos; did you mean crp/tools?",
		"explain tolos":                    "there is no placement tolos; did you mean crp/tools?",
		"explain tools amst":               "there is no cluster amst; did you mean ams?",
		"events tolos":                     "there is no placement or cluster tolos; did you mean crp/tools?",
		"wait tolos":                       "there is no placement tolos; did you mean crp/tools?",
		"drift list tolos":                 "there is no placement tolos; did you mean crp/tools?",
		"drift show cm/onn -n web":         "there is no known drift of cm/web/onn; there are ConfigMap/web/one",
		"suspend tolos --reason a":         "there is no placement or cluster tolos; did you mean crp/tools?",
		"resume tolos":                     "there is no placement or cluster tolos; did you mean crp/tools?",
		"sync tolos":                       "there is no placement tolos; did you mean crp/tools?",
		"rollback tolos":                   "there is no placement tolos; did you mean crp/tools?",
		"history tolos":                    "there is no placement or cluster tolos; did you mean crp/tools?",
		"history --kind comit":             "there is no kind of entry comit; did you mean commit?",
		"history --kind cluster --since x": `--since "x": write 30m`,
	} {
		code, out, errOut := command(append(strings.Fields(line), "--server", address)...)
		wantCode := exit.Attention
		if strings.HasPrefix(want, "--") {
			wantCode = exit.Failed
		}
		if code != wantCode || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit code %d: %s%s\nwant %s", line, code, out, errOut, want)
		}
	}
}

// The history of an unknown name is an error, and not an empty history.
func TestHistoryOfAnUnknownName(t *testing.T) {
	address := recorded(t, reports.Settled(t).Report, history.Entry{Time: reports.Noon, Kind: history.Placement, Event: history.Revised, Placement: "crp/gone", Revision: "0"})
	for line, want := range map[string]string{
		"history crp/tolos":                 "1 there is no placement crp/tolos; did you mean crp/tools?",
		"history --cluster amst":            "1 there is no cluster amst; did you mean ams?",
		"history mc/amst":                   "1 there is no cluster amst; did you mean ams?",
		"history crp/tools":                 "0 No revisions are recorded.",
		"history crp/gone --kind placement": "0 revised revision 0",
	} {
		code, out, errOut := command(append(strings.Fields(line), "--server", address)...)
		if n, text, _ := strings.Cut(want, " "); n != string(rune('0'+code)) || !strings.Contains(out+errOut, text) {
			t.Errorf("%s: exit code %d: %s%s\nwant %s", line, code, out, errOut, want)
		}
	}
}

// The JSON and YAML output of every command identifies its schema.
func TestDocumentsHaveAVersion(t *testing.T) {
	address := recorded(t, driftingFleet(t).Report, years()...)
	for _, line := range []string{
		"status", "get all", "get crp", "get crp web", "get mc ams", "tree web", "explain web", "events", "events crp/web", "history", "history crp/web",
		"drift list", "drift show web",
	} {
		for _, format := range []string{"json", "yaml", "jsonpath={.apiVersion}"} {
			code, out, errOut := command(append(strings.Fields(line), "-o", format, "--server", address)...)
			switch {
			case code == exit.Failed:
				t.Errorf("%s -o %s: %s", line, format, errOut)
			case format == "json":
				var doc struct{ APIVersion string }
				if err := json.Unmarshal([]byte(out), &doc); err != nil || doc.APIVersion == "" {
					t.Errorf("%s -o json has no version (%v):\n%s", line, err, out)
				}
			case format == "yaml" && !strings.HasPrefix(out, "apiVersion: "):
				t.Errorf("%s -o yaml has no version:\n%s", line, out)
			case strings.HasPrefix(format, "jsonpath=") && out == "":
				t.Errorf("%s -o %s prints nothing", line, format)
			}
		}
		if code, _, errOut := command(append(strings.Fields(line), "-o", "xml", "--server", address)...); code != exit.Failed || !strings.Contains(errOut, "json, yaml or jsonpath=TEMPLATE") {
			t.Errorf("%s -o xml: exit code %d: %s", line, code, errOut)
		}
	}
}
