package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/difftext"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/test/golden"
	"github.com/gitfleet/gitfleet/test/reports"
)

// heldFleet returns the held changes of a fleet, with proposals in several states.
func heldFleet() *proposal.HeldList {
	deployment := api.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	field := func(path, git, member string) proposal.HeldField {
		d := api.Difference{PatchDetail: api.PatchDetail{Path: path, ValueInHub: git, ValueInMember: member}}
		return proposal.HeldField{Difference: d, Diff: difftext.Field(nil, d)}
	}
	edit := api.Actor{Manager: "kubectl-edit", Operation: "Update", Time: reports.Noon.Add(-10 * time.Minute)}
	return &proposal.HeldList{APIVersion: proposal.HeldVersion, At: reports.Noon, Items: []proposal.HeldChange{
		{
			Name: "3f2a9c10aa55e1d2", Object: deployment, State: proposal.Open, URL: "https://git.example.com/platform/fleet/pulls/17",
			Message: "left as it is; offered as https://git.example.com/platform/fleet/pulls/17", Rules: []string{"propose"}, Placements: []string{"crp/web"},
			Clusters: []string{"east", "west"}, Holders: 3, FirstSeen: reports.Noon.Add(-3 * time.Hour), Fields: []proposal.HeldField{field("/spec/replicas", "3", "5")},
			By:     []proposal.Writer{{Cluster: "east", Actor: edit}, {Cluster: "west", Actor: edit}},
			Source: "apps/web.yaml:4", Override: "ResourceOverride web-9c0d11aa",
			Edits: []proposal.FileEdit{
				{Path: "apps/override-web-9c0d11aa.yaml", Diff: "--- /dev/null\n+++ b/apps/override-web-9c0d11aa.yaml\n@@ -0,0 +1 @@\n+apiVersion: placement.kubernetes-fleet.io/v1beta1\n"},
				{Path: "apps/all.yaml"},
			},
		},
		{
			Name: "3f2ac0ffee000001", Object: api.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"}, State: proposal.Waiting,
			Message: "left as it is; offered as a pull request once it has lasted for 2m0s", Rules: []string{"propose until 2030-01-31T00:00:00Z"}, Placements: []string{"crp/web"},
			Clusters: []string{"east"}, Holders: 2, FirstSeen: reports.Noon.Add(-30 * time.Second), Fields: []proposal.HeldField{field("/data/key", "1", "2")}, Source: "apps/settings.yaml:1",
			Edits: []proposal.FileEdit{{Path: "apps/settings.yaml", Diff: "--- a/apps/settings.yaml\n+++ b/apps/settings.yaml\n@@ -1 +1 @@\n-key: 1\n+key: 2\n"}}, OtherClusters: []string{"north"},
		},
		{
			Name: "77aa00bb11cc22dd", Object: api.ResourceIdentifier{Version: "v1", Kind: "Service", Namespace: "shop", Name: "web"}, State: proposal.Open, Deleted: true,
			URL: "https://git.example.com/platform/fleet/issues/18", Reason: "apps/web.yaml: line 12: /spec/ports/0/port: its value comes from the YAML anchor *port; edit that, or write the value here",
			Message: "left as it is; offered as https://git.example.com/platform/fleet/issues/18; no edit of the files makes the change: apps/web.yaml: line 12: /spec/ports/0/port: its value comes from the YAML anchor *port; edit that, or write the value here",
			Rules:   []string{"propose"}, Placements: []string{"crp/web"}, Clusters: []string{"east"}, Holders: 3, FirstSeen: reports.Noon.Add(-time.Second),
		},
	}}
}

// holding returns the address of a daemon with held changes.
func holding(t *testing.T, held *proposal.HeldList, notLeader error, do func(context.Context, reconciler.Order) (string, error)) string {
	t.Helper()
	daemon := server.New(nil)
	daemon.Mount("GET /proposals", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case notLeader != nil:
			http.Error(w, notLeader.Error(), http.StatusServiceUnavailable)
		case held == nil:
			http.Error(w, "it is not known yet what is held: the daemon is starting", http.StatusServiceUnavailable)
		default:
			json.NewEncoder(w).Encode(held)
		}
	}))
	daemon.MountAction("close-proposal", ordered(do))
	daemon.MountAction("open-proposal", ordered(do))
	srv := httptest.NewServer(daemon.Handler())
	t.Cleanup(srv.Close)
	return srv.URL
}

// The output of proposals, which users need for their decisions. It must change only on
// purpose.
func TestProposals(t *testing.T) {
	said := func(context.Context, reconciler.Order) (string, error) { return "", nil }
	address := holding(t, heldFleet(), nil, said)
	calm := holding(t, &proposal.HeldList{APIVersion: proposal.HeldVersion, At: reports.Noon, Items: []proposal.HeldChange{}}, nil, said)
	standby := holding(t, heldFleet(), errors.New("this replica stands by: one leads"), said)
	starting := holding(t, nil, nil, said)
	tests := map[string][]string{
		"list":              {"list"},
		"list-headless":     {"list", "--no-headers"},
		"list-json":         {"list", "-o", "json"},
		"list-calm":         {"list", "--server", calm},
		"list-calm-json":    {"list", "--server", calm, "-o", "json"},
		"list-standby":      {"list", "--server", standby},
		"list-starting":     {"list", "--server", starting},
		"show":              {"show", "3f2a9c10"},
		"show-all-clusters": {"show", "3f2ac"},
		"show-deleted":      {"show", "77aa"},
		"show-yaml":         {"show", "77aa", "-o", "yaml"},
		"show-ambiguous":    {"show", "3f2a"},
		"show-unknown":      {"show", "0000"},
	}
	book := golden.Open(t, "testdata/proposals.txt")
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			transcribe(&out, append([]string{"proposals", args[0], "--server", address}, args[1:]...)...)
			if text := out.String(); !strings.Contains(name, "json") && !strings.Contains(name, "yaml") {
				for line := range strings.Lines(text) {
					if output.Width(strings.TrimSuffix(line, "\n")) > output.DefaultWidth && !strings.HasPrefix(line, "! ") {
						t.Errorf("wider than %d columns: %s", output.DefaultWidth, line)
					}
				}
			}
			book.Compare(t, name, strings.ReplaceAll(strings.ReplaceAll(out.String(), standby, "ADDRESS"), starting, "ADDRESS"))
		})
	}
}

// close and open send requests in the name of the user, and print the response.
func TestProposalsCloseAndOpenAsk(t *testing.T) {
	t.Setenv("USER", "alice")
	for _, name := range []string{"close", "open"} {
		var got reconciler.Order
		address := holding(t, heldFleet(), nil, func(_ context.Context, o reconciler.Order) (string, error) {
			got = o
			return "done", nil
		})
		var out bytes.Buffer
		transcribe(&out, "proposals", name, "3f2a9c10", "--server", address)
		if want := (reconciler.Order{Subject: "3f2a9c10", By: "alice"}); out.String() != "done\n" || got != want {
			t.Errorf("%s prints %q and asks for %+v", name, out.String(), got)
		}
	}
	address := holding(t, heldFleet(), nil, func(context.Context, reconciler.Order) (string, error) {
		_, err := heldFleet().Find("3f2a")
		return "", err
	})
	var out bytes.Buffer
	transcribe(&out, "proposals", "open", "3f2a", "--server", address)
	if want := "! gitfleet: 3f2a is the beginning of more than one name; write more of it\nexit code 2\n"; out.String() != want {
		t.Errorf("what is refused prints %q, want %q", out.String(), want)
	}
}

// docs/drift-pull-requests.md has the present output of proposals list.
func TestThePageOnPullRequestsShowsProposals(t *testing.T) {
	list := heldFleet()
	list.Items = list.Items[:2]
	var printed bytes.Buffer
	transcribe(&printed, "proposals", "list", "--server", holding(t, list, nil, nil))
	out := strings.TrimSuffix(printed.String(), "exit code 1\n")
	page, err := os.ReadFile("../../docs/drift-pull-requests.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```\n"+out+"```\n") {
		t.Errorf("docs/drift-pull-requests.md does not show\n%s", out)
	}
}

// Completion offers the names of held changes, each with its object.
func TestProposalsAreCompleted(t *testing.T) {
	address := holding(t, heldFleet(), nil, nil)
	var out, errOut bytes.Buffer
	run([]string{"__complete", "proposals", "close", "--server", address, ""}, &out, &errOut)
	const want = "3f2a9c10\tDeployment.apps/shop/web\n3f2ac0ff\tConfigMap/shop/settings\n77aa00bb\tService/shop/web\n"
	if !strings.HasPrefix(out.String(), want) {
		t.Errorf("completed by\n%s", out.String())
	}
}
