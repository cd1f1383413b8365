package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/plantext"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/test/tempfile"
)

// loaded loads a repository.
func loaded(t *testing.T, files fstest.MapFS) *hub.Snapshot {
	t.Helper()
	s, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "c1"}, files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// formatOf is the output format of a command.
func formatOf(t *testing.T, name string) output.Format {
	t.Helper()
	var f output.Format
	f.Bind(pflag.NewFlagSet("", pflag.ContinueOnError), "text")
	if err := f.Set(name); err != nil {
		t.Fatal(err)
	}
	return f
}

const all = "policy: {placementType: PickAll}"

// A plan exits with 1 if it differs from an earlier one. Alone, and compared with itself, it exits
// with 0.
func TestExitCodeOfAPlan(t *testing.T) {
	before := loaded(t, files("c.yaml", memberCluster("ams", ""), "p.yaml", crp("web", all), "w.yaml", namespace("web")))
	after := loaded(t, files("c.yaml", memberCluster("ams", ""), "p.yaml", crp("web", all), "w.yaml", namespace("web")+configMap("one")))
	for name, test := range map[string]struct {
		base *hub.Snapshot
		want error
		says string
	}{
		"alone":         {nil, nil, "ams holds 2 objects:"},
		"no difference": {after, nil, "Nothing changes"},
		"a difference":  {before, exit.Attention, "Changes:"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := offline.Input{Base: test.base}.Forecast(after)
			if err != nil {
				t.Fatal(err)
			}
			for _, format := range []string{"text", "json"} {
				var b strings.Builder
				if err := writeForecast(&b, o, formatOf(t, format), member.DeletionLimit{}); !errors.Is(err, test.want) {
					t.Errorf("%s: %v, want %v", format, err, test.want)
				}
				if format == "text" && !strings.Contains(b.String(), test.says) {
					t.Errorf("no %q in\n%s", test.says, &b)
				}
			}
		})
	}
}

// The plan of a pull request has the exit codes of a plan.
func TestExitCodeOfThePlanOfAPullRequest(t *testing.T) {
	for name, test := range map[string]struct {
		of   plantext.PullRequest
		want error
	}{
		"no difference":  {plantext.PullRequest{Text: "Nothing changes\n"}, nil},
		"a difference":   {plantext.PullRequest{Text: "Changes:\n", Changes: true}, exit.Attention},
		"not to be read": {plantext.PullRequest{Text: "does not load\n", Failed: true, Changes: true}, exit.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				asked = req.URL.String()
				json.NewEncoder(w).Encode(test.of)
			}))
			defer srv.Close()
			var b strings.Builder
			err := printPullRequestPlan(t.Context(), &client.Connection{Address: srv.URL}, &b, 17)
			if !errors.Is(err, test.want) || b.String() != test.of.Text || asked != "/plan?pullRequest=17" {
				t.Errorf("%v, %q after %s; want %v", err, &b, asked, test.want)
			}
		})
	}
}

// --pr asks the daemon, so that what belongs to a checkout is refused.
func TestPlanOfAPullRequestTakesNoCheckout(t *testing.T) {
	for args, want := range map[string]string{
		"--pr 17 -o json":               "--pr prints text, and does not go with -o, --clusters, --current and --without",
		"--pr 17 --current before.json": "--pr prints text, and does not go with -o, --clusters, --current and --without",
		"--pr 17 fleet":                 `unknown command "fleet" for "plan"`,
		"":                              "accepts 1 arg(s), received 0",
	} {
		cmd := NewPlan()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(args))
		cmd.SetOut(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

// What does not load is an error with all problems; in JSON they have fields.
func TestPlanOfWhatDoesNotLoad(t *testing.T) {
	_, bad := hub.NewLoader(hub.Options{}).Load(hub.Commit{}, files("a.yaml", "kind: [\n"))
	for format, document := range map[string]bool{"text": false, "json": true} {
		var b bytes.Buffer
		err := printUnread(&b, "fleet", formatOf(t, format), bad)
		if err == nil || !strings.HasPrefix(err.Error(), "fleet does not load:\na.yaml:") {
			t.Errorf("%s: %v", format, err)
		}
		var d forecast.Document
		if (b.Len() > 0) != document || document && (json.Unmarshal(b.Bytes(), &d) != nil || len(d.Problems) == 0) {
			t.Errorf("%s: printed %s", format, &b)
		}
	}
	other := errors.New("no such directory")
	if err := printUnread(io.Discard, "fleet", formatOf(t, "json"), other); err != other {
		t.Errorf("another error: %v", err)
	}
}

// Rendered are the manifests of a cluster with their origins; problems are between them and on
// standard error, and make the command fail.
func TestRender(t *testing.T) {
	secret := "---\n{apiVersion: v1, kind: Secret, metadata: {name: key, namespace: web}, stringData: {password: s3cret}}\n"
	broken := override("{labelSelector: {matchLabels: {region: eu}}}", "\n  jsonPatchOverrides: [{op: remove, path: /spec/nothing}]")
	two := memberCluster("ams", "region: eu") + memberCluster("chi", "region: us")
	for name, test := range map[string]struct {
		of      fstest.MapFS
		cluster string
		secrets bool
		want    error
		says    []string
		not     string
		notes   string
	}{
		"all clusters":           {files("c.yaml", two, "p.yaml", crp("web", all), "w.yaml", namespace("web")), "", false, nil, []string{"# cluster ams\n---\n# w.yaml:2, placement crp/web\n", "# cluster chi\n"}, "null", ""},
		"one cluster":            {files("c.yaml", two, "p.yaml", crp("web", all), "w.yaml", namespace("web")), "chi", false, nil, []string{"# cluster chi\n"}, "# cluster ams", ""},
		"a Secret":               {files("c.yaml", two, "p.yaml", crp("web", all), "w.yaml", namespace("web")+secret), "ams", false, nil, []string{"kind: Secret"}, "s3cret", "values of Secrets are masked in 1 document; --show-secrets prints them\n"},
		"with its value":         {files("c.yaml", two, "p.yaml", crp("web", all), "w.yaml", namespace("web")+secret), "ams", true, nil, []string{"password: czNjcmV0\n"}, "masked", ""},
		"a comparison":           {files("c.yaml", two, "p.yaml", crp("web", all+", strategy: {type: RollingUpdate, applyStrategy: {type: ReportDiff}}"), "w.yaml", namespace("web")), "ams", false, nil, []string{"placement crp/web, compared and never written"}, "null", ""},
		"an override that fails": {files("c.yaml", two, "o.yaml", broken, "p.yaml", crp("web", all), "w.yaml", namespace("web")), "", false, exit.Failed, []string{"# cluster ams\n# o.yaml:3: spec.policy.overrideRules[0].jsonPatchOverrides: ams gets nothing of crp/web: ", "# cluster chi\n---\n"}, "chi gets", "o.yaml:3: spec.policy.overrideRules[0].jsonPatchOverrides: ams gets nothing of crp/web: "},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := offline.Plan(loaded(t, test.of), "")
			if err != nil {
				t.Fatal(err)
			}
			var out, notes strings.Builder
			r := &renderer{cluster: test.cluster, secrets: test.secrets, out: &out, notes: &notes, snapshot: o.Snapshot}
			if err := r.print(o.Plan); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			for _, want := range test.says {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, &out)
				}
			}
			if strings.Contains(out.String(), test.not) || !strings.HasPrefix(notes.String(), test.notes) || (notes.Len() == 0) != (test.notes == "") {
				t.Errorf("notes %q\n%s", &notes, &out)
			}
		})
	}
	o, err := offline.Plan(loaded(t, files("c.yaml", two, "p.yaml", crp("web", all), "w.yaml", namespace("web"))), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := (&renderer{cluster: "asm"}).print(o.Plan); err == nil || err.Error() != "there is no MemberCluster asm; there are ams, chi" {
		t.Errorf("an unknown cluster: %v", err)
	}
}

// Render prints the problems of a repository that does not load to standard error.
func TestRenderOfADirectoryThatDoesNotLoad(t *testing.T) {
	file := tempfile.Write(t, "a.yaml", "kind: [\n")
	cmd := NewRender()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{strings.TrimSuffix(file, "/a.yaml")})
	var out, errOut strings.Builder
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, exit.Failed) || out.Len() > 0 || !strings.Contains(errOut.String(), "does not load:\na.yaml:") {
		t.Errorf("%v, printed %q and %q", err, &out, &errOut)
	}
}
