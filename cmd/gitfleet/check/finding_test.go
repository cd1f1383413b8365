package check

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
)

func at(path string, line int, severity problem.Severity, message string) finding {
	return finding{problem.Problem{Origin: api.Origin{Path: path, Line: line}, Severity: severity, Message: message}, doubtful}
}

func texts(all []finding) []string {
	var out []string
	for _, f := range all {
		out = append(out, f.text())
	}
	return out
}

// Findings are in the order of the files, and each is there once; of two that read the same, the
// error stays.
func TestSortFindings(t *testing.T) {
	built := at("b.yaml", 2, problem.Error, "x")
	built.Kustomization = "kustomization.yaml"
	field := at("a.yaml", 2, problem.Error, "x")
	field.Field = "spec"
	sorted := sortFindings([]finding{
		at("b.yaml", 2, problem.Error, "x"), built, field, at("a.yaml", 10, problem.Error, "x"), at("a.yaml", 2, problem.Warning, "x"),
		at("a.yaml", 2, problem.Error, "y"), at("a.yaml", 2, problem.Error, "x"), at("a.yaml", 10, problem.Error, "x"), at("", 0, problem.Warning, "all"),
	})
	want := []string{
		"all (warning)", "a.yaml:2: x", "a.yaml:2: y", "a.yaml:2: x (warning)", "a.yaml:2: spec: x", "a.yaml:10: x", "b.yaml:2: x", "b.yaml:2: x (built by kustomization.yaml)",
	}
	if got := texts(sorted); !reflect.DeepEqual(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// The severity of a problem determines the rule; what could not be carried out counts as an error.
func TestFindingsOf(t *testing.T) {
	for severity, want := range map[problem.Severity]struct {
		rule     *rule
		severity problem.Severity
	}{
		problem.Error: {invalid, problem.Error}, problem.Warning: {doubtful, problem.Warning}, problem.Failure: {unfit, problem.Error},
	} {
		f := findingsOf(problem.List{{Severity: severity}})[0]
		if f.rule != want.rule || f.Severity != want.severity {
			t.Errorf("a %s is %s, %s", severity, f.rule.id, f.Severity)
		}
	}
}

// The exit code and the summary say whether a repository may be committed.
func TestVerdict(t *testing.T) {
	bad, odd := at("a.yaml", 1, problem.Error, "bad"), at("a.yaml", 1, problem.Warning, "odd")
	for name, test := range map[string]struct {
		found    []finding
		snapshot *hub.Snapshot
		strict   bool
		want     error
		says     string
	}{
		"nothing":             {nil, &hub.Snapshot{}, false, nil, "fleet: valid (0 objects, 0 placements, 0 clusters)\n"},
		"nothing, strictly":   {nil, &hub.Snapshot{}, true, nil, "fleet: valid (0 objects, 0 placements, 0 clusters)\n"},
		"a warning":           {[]finding{odd}, &hub.Snapshot{}, false, nil, "fleet: valid, 1 warning (0 objects, 0 placements, 0 clusters)\n"},
		"a warning, strictly": {[]finding{odd}, &hub.Snapshot{}, true, exit.Attention, "fleet: valid, 1 warning (0 objects, 0 placements, 0 clusters)\n"},
		"an error":            {[]finding{bad, bad}, nil, false, exit.Failed, "fleet: 2 problems\n"},
		"both, strictly":      {[]finding{bad, odd}, nil, true, exit.Failed, "fleet: 1 problem, 1 warning\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdict(test.found, test.strict); !errors.Is(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
			var says strings.Builder
			summarize(&says, "fleet", test.snapshot, test.found)
			if says.String() != test.says {
				t.Errorf("%q, want %q", &says, test.says)
			}
		})
	}
}

// Whatever a repository calls its files, a finding is one line and one command of GitHub.
func TestFindingsAreWritten(t *testing.T) {
	hostile := at("a,b:\n::error::c.yaml", 3, problem.Warning, "100%\nsure")
	for name, test := range map[string]struct {
		f            finding
		text, github string
	}{
		"plain":       {at("a.yaml", 3, problem.Error, "bad"), "a.yaml:3: bad\n", "::error title=gitfleet%3A doubtful,file=a.yaml,line=3::bad\n"},
		"of no file":  {at("", 0, problem.Warning, "odd"), "odd (warning)\n", "::warning title=gitfleet%3A doubtful::odd\n"},
		"of no line":  {at("a.yaml", 0, problem.Error, "bad"), "a.yaml: bad\n", "::error title=gitfleet%3A doubtful,file=a.yaml::bad\n"},
		"of any name": {hostile, `a,b:\n::error::c.yaml:3: 100%\nsure (warning)` + "\n", `::warning title=gitfleet%3A doubtful,file=a%2Cb%3A\n%3A%3Aerror%3A%3Ac.yaml,line=3::100%25\nsure` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var text, github strings.Builder
			if err := errors.Join(writeText(&text, []finding{test.f}), writeGitHub(&github, []finding{test.f})); err != nil {
				t.Fatal(err)
			}
			if text.String() != test.text || github.String() != test.github {
				t.Errorf("%q and %q", &text, &github)
			}
		})
	}
}

// Code scanning services drop a result without a location, and read it as a URI.
func TestSARIFLocations(t *testing.T) {
	for name, test := range map[string]struct {
		f    finding
		uri  string
		line int
	}{
		"a line":             {at("apps/a.yaml", 3, problem.Error, "bad"), "apps/a.yaml", 3},
		"a file":             {at("apps/a.yaml", 0, problem.Error, "bad"), "apps/a.yaml", 0},
		"the repository":     {at("", 0, problem.Warning, "odd"), ".", 0},
		"a name with spaces": {at("my apps/100%.yaml", 3, problem.Error, "bad"), "my%20apps/100%25.yaml", 3},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := writeSARIF(&out, []finding{test.f}); err != nil {
				t.Fatal(err)
			}
			var log struct {
				Runs []struct {
					Tool struct {
						Driver struct{ Rules []struct{ ID string } }
					}
					Results []struct {
						RuleID, Level string
						RuleIndex     int
						Locations     []struct {
							PhysicalLocation struct {
								ArtifactLocation struct{ URI string }
								Region           *struct{ StartLine int }
							}
						}
					}
				}
			}
			if err := json.Unmarshal([]byte(out.String()), &log); err != nil {
				t.Fatal(err)
			}
			r := log.Runs[0].Results[0]
			if id := log.Runs[0].Tool.Driver.Rules[r.RuleIndex].ID; id != r.RuleID || r.Level != string(test.f.Severity) {
				t.Errorf("rule %s at the index of %s, level %s", r.RuleID, id, r.Level)
			}
			place := r.Locations[0].PhysicalLocation
			if place.ArtifactLocation.URI != test.uri || (place.Region == nil) != (test.line == 0) || place.Region != nil && place.Region.StartLine != test.line {
				t.Errorf("it is at %+v", place)
			}
		})
	}
	var none strings.Builder
	if err := writeSARIF(&none, nil); err != nil || !strings.Contains(none.String(), `"results": []`) {
		t.Errorf("without findings: %v\n%s", err, &none)
	}
}

// Deletions that would be blocked are one warning for each placement and reason, at the placement.
func TestBlockedFindings(t *testing.T) {
	deletion := func(cluster, name, of, held string) forecast.Deletion {
		return forecast.Deletion{Cluster: cluster, Object: forecast.Object{Kind: "ConfigMap", Namespace: "web", Name: name, Placement: of}, Blocked: held}
	}
	o := &forecast.Forecast{Snapshot: &hub.Snapshot{Placements: []*hub.Placement{{Key: api.PlacementKey{Name: "web"}, Origin: api.Origin{Path: "web.yaml", Line: 1}}}}}
	found := blockedFindings(o, []forecast.Deletion{
		deletion("ams", "one", "crp/web", "too many"), deletion("ams", "two", "crp/web", "too many"), deletion("ber", "one", "crp/web", "too many"),
		deletion("ams", "three", "crp/web", ""), deletion("ber", "four", "crp/web", "a Namespace"), deletion("ams", "five", "crp/gone", "too many"),
	})
	const advice = "; if that is a mistake, correct the placement or put back what was removed; otherwise add the trailer"
	want := []string{
		"web.yaml:1: crp/web: deleting 3 objects on ams, ber would be blocked, such as ConfigMap/web/one: too many" + advice + ` "Gitfleet-Allow-Delete: crp/web" to the message of a commit (warning)`,
		"web.yaml:1: crp/web: deleting 1 object on ber would be blocked, such as ConfigMap/web/four: a Namespace" + advice + ` "Gitfleet-Allow-Delete: crp/web" to the message of a commit (warning)`,
		"crp/gone: deleting 1 object on ams would be blocked, such as ConfigMap/web/five: too many" + advice + ` "Gitfleet-Allow-Delete: crp/gone" to the message of a commit (warning)`,
	}
	if got := texts(found); !reflect.DeepEqual(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	for _, f := range found {
		if f.rule != blockedDeletions {
			t.Errorf("rule %s", f.rule.id)
		}
	}
}
