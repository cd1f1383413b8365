package offline

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/test/tempfile"
	"github.com/gitfleet/gitfleet/test/world"
)

// A reference is a commit hash, a full name, a range of versions, or the name of a branch or a tag.
func TestRefs(t *testing.T) {
	const hash = "A1B2C3D4E5A1B2C3D4E5A1B2C3D4E5A1B2C3D4E5"
	for name, want := range map[string][]gitsource.Ref{
		"": {{}}, "HEAD": {{}}, hash: {{Commit: strings.ToLower(hash)}},
		"refs/heads/main": {{Branch: "main"}}, "refs/tags/v1": {{Tag: "v1"}}, ">=1.2 <2": {{SemVer: ">=1.2 <2"}}, "1.*": {{SemVer: "1.*"}}, "~1.2": {{SemVer: "~1.2"}},
		"main": {{Branch: "main"}, {Tag: "main"}}, hash[:39]: {{Branch: hash[:39]}, {Tag: hash[:39]}}, strings.Replace(hash, "A", "g", 1): {{Branch: strings.Replace(hash, "A", "g", 1)}, {Tag: strings.Replace(hash, "A", "g", 1)}},
	} {
		got := refs(name)
		if len(got) != len(want) {
			t.Errorf("%q: %+v, want %+v", name, got, want)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%q: %+v, want %+v", name, got, want)
			}
		}
	}
}

// An expression of Git is told from a range of versions, with which it shares characters.
func TestIsExpression(t *testing.T) {
	for ref, want := range map[string]bool{
		"HEAD~1": true, "main^2": true, "v1.0^{commit}": true, "main@{1}": true,
		"": false, "main": false, "~1.2": false, "^1.2": false, ">=1.2 <2": false, "1.*": false, "v1.2.3": false,
	} {
		if got := isExpression(ref); got != want {
			t.Errorf("%q: %t, want %t", ref, got, want)
		}
	}
}

func TestIsAddress(t *testing.T) {
	for repo, want := range map[string]bool{
		"https://git.example.com/fleet": true, "git@git.example.com:fleet": true, "file:///srv/fleet": true, "../fleet": false, "/srv/a:b": false, "fleet": false, ":x": false,
	} {
		if got := isAddress(repo); got != want {
			t.Errorf("%q: %t, want %t", repo, got, want)
		}
	}
}

// The files of a forecast are named with the flag, the line and what is wrong.
func TestInputOfAForecast(t *testing.T) {
	write := func(text string) string { return tempfile.Write(t, "in.json", text) }
	base := &hub.Snapshot{}
	for name, test := range map[string]struct {
		in   Input
		want string
	}{
		"nothing":                 {Input{}, ""},
		"two earlier plans":       {Input{Base: base, Current: "before.json"}, "--current cannot be combined with FROM..TO"},
		"no such plan":            {Input{Current: "no/such/file"}, "--current: open no/such/file"},
		"a plan that is no JSON":  {Input{Current: write("{\n\"a\": }")}, "in.json:2: not valid JSON: invalid character '}'"},
		"a field of another type": {Input{Current: write("{\n\"apiVersion\": 3}")}, "in.json:2: apiVersion: must be of type string, not number"},
		"another document":        {Input{Current: write("{}")}, "; give what gitfleet plan -o json has written"},
		"no such fleet":           {Input{Clusters: "no/such/file"}, "--clusters: open no/such/file"},
		"an invalid fleet":        {Input{Clusters: write("{kind: Pod, apiVersion: v1, metadata: {name: a}}")}, "--clusters:\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.in.Forecast(&hub.Snapshot{})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	if where, what := describeJSONError(nil, io.ErrUnexpectedEOF); where != "" || what != io.ErrUnexpectedEOF {
		t.Errorf("another error: %q, %v", where, what)
	}
}

// A range compares two commits of a repository, and a directory with such a name is a directory.
func TestReadChangeOfADirectory(t *testing.T) {
	for what, want := range map[string]string{
		"no/such/directory":                    "no/such/directory: no such directory; a repository is written URL@REF or DIRECTORY@REF",
		"no/such/directory@a..b":               "b cannot be compared with no/such/directory@a: no/such/directory@a: no such directory",
		"https://git.example.com/fleet@main~1": "a remote repository needs a branch, a tag, a range of versions or a whole commit hash; main~1 can be resolved only in a clone",
	} {
		var r Reader
		flags := flagsOf(&r)
		if _, _, err := r.ReadChange(t.Context(), flags, what); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
}

// A selection is unknown if it depends on a property that a member does not declare, or on another
// placement whose selection is unknown.
func TestUnknownSelections(t *testing.T) {
	const text = `
clusters ams/region=eu ber/region=eu
namespace web
place plain of web
`
	s, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "c1"}, world.Files(t, text))
	if err != nil {
		t.Fatal(err)
	}
	requires := func(name string, a *api.Affinity) *hub.Placement {
		p := *s.Placements[0]
		p.Key = api.PlacementKey{Name: name}
		p.Spec.Policy = &api.PlacementPolicy{PlacementType: api.PickAll, Affinity: a}
		return &p
	}
	property := api.ClusterSelectorTerm{PropertySelector: &api.PropertySelector{MatchExpressions: []api.PropertySelectorRequirement{{Name: "kubernetes-fleet.io/node-count", Operator: "Ge", Values: []string{"3"}}}}}
	s.Placements = append(s.Placements,
		requires("by-property", &api.Affinity{ClusterAffinity: &api.ClusterAffinity{Required: &api.ClusterSelector{ClusterSelectorTerms: []api.ClusterSelectorTerm{property}}}}),
		requires("beside", &api.Affinity{PlacementAffinity: []api.PlacementReference{{Name: "by-property"}}}),
		requires("beside-plain", &api.Affinity{PlacementAffinity: []api.PlacementReference{{Name: "plain"}}}),
	)
	o, err := Plan(s, "")
	if err != nil {
		t.Fatal(err)
	}
	got := UnknownSelections(o.Plan)
	for name, want := range map[string]bool{"plain": false, "by-property": true, "beside": true, "beside-plain": false} {
		if got[api.PlacementKey{Name: name}] != want {
			t.Errorf("%s is unknown: %t, want %t", name, !want, want)
		}
	}
	var b strings.Builder
	PrintUnknownSelections(&b, o.Plan)
	if strings.Count(b.String(), "\n") != 2 || !strings.Contains(b.String(), ": the selection of crp/beside depends on properties that not every MemberCluster declares; provide them with --clusters\n") {
		t.Errorf("printed\n%s", &b)
	}
	if open := UnknownSelections(&plan.Plan{}); len(open) > 0 {
		t.Errorf("of an empty plan: %v", open)
	}
}

// flagsOf are the flags of a command that reads a repository.
func flagsOf(r *Reader) *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	r.Bind(f)
	return f
}

// The plan without a cluster says what would move where; the cluster has to exist.
func TestWithout(t *testing.T) {
	s, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "c1"}, world.Files(t, "clusters east west north\nnamespace web\nplace web pick 2\nplace all of web\n"))
	if err != nil {
		t.Fatal(err)
	}
	held := func(o *forecast.Forecast) string {
		var out []string
		for _, p := range o.Describe().Placements {
			for _, d := range p.Decisions {
				if d.Selected {
					out = append(out, p.Name+" on "+d.Cluster)
				}
			}
		}
		slices.Sort(out)
		return strings.Join(out, ", ")
	}
	o, err := Input{Without: "cluster/west"}.Forecast(s)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := held(o), "all on east, all on north, web on east, web on north"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(s.Clusters) != 3 {
		t.Error("the snapshot was changed")
	}
	if _, err := (Input{Without: "mars"}).Forecast(s); err == nil || err.Error() != "--without: the repository declares no MemberCluster mars" {
		t.Errorf("an unknown cluster: %v", err)
	}
}
