package view

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/reports"
)

func driftOf(placement, cluster, kind, name string, state api.DriftState) status.Drift {
	return status.Drift{Placement: placement, Cluster: cluster, State: state, ResourceIdentifier: api.ResourceIdentifier{Kind: kind, Namespace: "shop", Name: name}, Count: 2,
		FirstSeen: reports.Noon.Add(-2 * time.Hour), LastSeen: reports.Noon.Add(-time.Hour), Since: reports.Noon.Add(-time.Hour)}
}

// driftingFleet has drifts of two placements on two clusters.
func driftingFleet() *status.Report {
	return &status.Report{
		At: reports.Noon, Clusters: []*api.MemberCluster{reports.MemberCluster("east", true), reports.MemberCluster("west", true)},
		Details: []*status.Detail{{Placement: "crp/web"}, {Placement: "crp/db"}},
		Drifts: []status.Drift{
			driftOf("crp/web", "east", "ConfigMap", "one", api.DriftRepaired), driftOf("crp/web", "west", "ConfigMap", "one", api.DriftStanding), driftOf("crp/db", "west", "Secret", "two", api.DriftIgnored),
		},
	}
}

// Drift is selected by placement or object, and by cluster. A wrong name gets a suggestion.
func TestDriftsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		what, namespace, cluster, want string
	}{
		"a placement":               {"crp/web", "", "", "one on east, one on west"},
		"part of a name":            {"web", "", "", "one on east, one on west"},
		"on one cluster":            {"crp/web", "", "west", "one on west"},
		"a placement without drift": {"crp/db", "", "east", ""},
		"an object":                 {"configmap/one", "shop", "", "one on east, one on west"},
		"an object on one cluster":  {"ConfigMap/shop/one", "", "east", "one on east"},
		"an unknown placement":      {"crp/wbe", "", "", "! there is no placement crp/wbe; did you mean crp/web?"},
		"no kind and no placement":  {"wbe", "", "", "! there is no placement wbe; there are crp/web, crp/db"},
		"an unknown cluster":        {"crp/web", "", "esat", "! there is no cluster esat; did you mean east?"},
		"an object without drift":   {"secret/three", "shop", "", "! there is no known drift of secret/shop/three; did you mean Secret/shop/two?"},
	} {
		t.Run(name, func(t *testing.T) {
			drifts, err := driftsNamed(driftingFleet(), test.what, test.namespace, test.cluster)
			var parts []string
			for _, d := range drifts {
				parts = append(parts, d.Name+" on "+d.Cluster)
			}
			got := strings.Join(parts, ", ")
			if err != nil {
				got = "! " + err.Error()
			}
			if got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

// The exit code is 1 while an object differs, and the error of the output if there is one.
func TestExitCodeOfDrift(t *testing.T) {
	for state, want := range map[api.DriftState]error{
		api.DriftStanding: exit.Attention, api.DriftHeld: exit.Attention, api.DriftAdded: exit.Attention, api.DriftContested: exit.Attention, api.DriftForeign: exit.Attention,
		api.DriftRepaired: nil, api.DriftIgnored: nil, api.DriftAltered: nil, api.DriftEnded: nil,
	} {
		if got := endDrifts([]status.Drift{{State: api.DriftEnded}, {State: state}}, nil); got != want {
			t.Errorf("%s: %v, want %v", state, got, want)
		}
	}
	closed := errors.New("closed")
	if got := endDrifts([]status.Drift{{State: api.DriftStanding}}, closed); got != closed {
		t.Errorf("after an error: %v", got)
	}
}

// The list has one drift in a row; a wide one has also the fields.
func TestListDrifts(t *testing.T) {
	d := driftOf("crp/web", "east", "ConfigMap", "one", api.DriftStanding)
	d.By = []api.Actor{{Manager: "kubectl-edit"}, {Manager: "kubectl-edit"}, {Manager: "helm"}}
	d.Paths = []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/a"}}, {PatchDetail: api.PatchDetail{Path: "/data/b"}}}
	for name, test := range map[string]struct {
		drifts []status.Drift
		format string
		want   string
	}{
		"none":  {nil, "table", "no drift"},
		"table": {[]status.Drift{d}, "table", "OBJECT CLUSTER STATE COUNT LAST-SEEN BY ConfigMap/shop/one east standing 2 60m kubectl-edit,helm"},
		"wide":  {[]status.Drift{d}, "wide", "OBJECT CLUSTER STATE COUNT LAST-SEEN BY FIRST-SEEN PLACEMENT FIELDS ConfigMap/shop/one east standing 2 60m kubectl-edit,helm 120m crp/web /data/a,/data/b"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := listDrifts(&b, reports.Noon, test.drifts, formatOf(t, test.format, "table", "wide")); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(strings.Fields(b.String()), " "); got != test.want {
				t.Errorf("%q\nwant %q", got, test.want)
			}
		})
	}
	var b strings.Builder
	if err := listDrifts(&b, reports.Noon, nil, formatOf(t, "json", "table", "wide")); err != nil || !strings.Contains(b.String(), `"items": []`) {
		t.Errorf("as JSON: %s, %v", &b, err)
	}
}

// formatOf is a format of a command with these text formats.
func formatOf(t *testing.T, name string, text ...string) output.Format {
	t.Helper()
	var f output.Format
	f.Bind(pflag.NewFlagSet("", pflag.ContinueOnError), text...)
	if err := f.Set(name); err != nil {
		t.Fatal(err)
	}
	return f
}

// Shown are the times, the message, who made the change, and each field.
func TestDriftsText(t *testing.T) {
	once, gone := driftOf("crp/web", "east", "ConfigMap", "one", api.DriftHeld), driftOf("crp/web", "west", "ConfigMap", "one", api.DriftForeign)
	once.Count, once.Message, once.By = 1, "offered as a pull request", []api.Actor{{Manager: "kubectl-edit", Operation: "Update", Time: reports.Noon}}
	once.Paths = []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/a", ValueInMember: "1", ValueInHub: "2"}}}
	gone.Count, gone.Deleted = 0, true
	const want = `ConfigMap/shop/one on east  (crp/web)
  held once, first seen 120m ago, last 60m ago
  offered as a pull request
  by kubectl-edit (Update) at 2026-03-01T12:00:00Z
  /data/a
    - 1
    + 2

ConfigMap/shop/one on west  (crp/web)
  foreign, first seen 120m ago, last 60m ago
  it was deleted
`
	if got := driftsText(reports.Noon, []status.Drift{once, gone}); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := driftsText(reports.Noon, nil); got != "no drift\n" {
		t.Errorf("none: %q", got)
	}
	if got := times(3); got != " 3 times" {
		t.Errorf("three: %q", got)
	}
}
