package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/golden"
	"github.com/gitfleet/gitfleet/test/reports"
)

// driftingFleet returns a fleet with every kind of drift.
func driftingFleet(t *testing.T) *reports.Fleet {
	s := reports.Settled(t)
	edit := api.Actor{Manager: "kubectl-edit", Operation: "Update", Time: s.Now.Add(-10 * time.Minute)}
	scaler := api.Actor{Manager: "kube-controller-manager", Operation: "Update", Subresource: "scale", Time: s.Now.Add(-time.Minute)}
	field := func(path, member, hub string, by ...api.Actor) api.Difference {
		return api.Difference{PatchDetail: api.PatchDetail{Path: path, ValueInMember: member, ValueInHub: hub}, By: by}
	}
	added := field("/data/text", "two\nlines", "", edit)
	added.MemberJSON = json.RawMessage(`"two\nlines"`)
	s.Says("ams", "web", func(w *protocol.WorkSeen) {
		w.Incidents = &protocol.Incidents{Drifts: []protocol.Drift{
			{ID: reports.ConfigMap("one"), Version: "v1", State: api.DriftRepaired, Count: 3, FirstSeen: s.Now.Add(-2 * time.Hour), LastSeen: s.Now.Add(-10 * time.Minute),
				By: []api.Actor{edit}, Paths: []api.Difference{field("/data/value", "9", "1", edit), added}},
			{ID: reports.ConfigMap("two"), Version: "v1", State: api.DriftStanding, Count: 1, FirstSeen: s.Now.Add(-time.Hour), LastSeen: s.Now, Message: "suspended by alice: INC-1",
				Paths: []api.Difference{field("/data/value", "8", "1")}},
		}}
	})
	s.Says("ber", "web", func(w *protocol.WorkSeen) {
		w.Incidents = &protocol.Incidents{Drifts: []protocol.Drift{
			{ID: api.ID{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "shop"}, Version: "v1", State: api.DriftContested, Count: 1, FirstSeen: s.Now.Add(-time.Hour),
				LastSeen: s.Now, By: []api.Actor{scaler}, Paths: []api.Difference{field("/spec/replicas", "7", "3", scaler)}, Message: "left to the HorizontalPodAutoscaler shop"},
			{ID: api.ID{Kind: "Secret", Namespace: "web", Name: "key"}, Version: "v1", State: api.DriftRepaired, Count: 1, FirstSeen: s.Now.Add(-time.Hour), LastSeen: s.Now.Add(-time.Hour),
				Deleted: true, Paths: []api.Difference{field("/data/key", diff.Mask, diff.Mask)}},
		}}
	})
	s.Turn(time.Second)
	return s
}

// The output of drift. Scripts may read it, so that it must change only on purpose.
func TestDrift(t *testing.T) {
	_, address := listening(t, driftingFleet(t).Report)
	_, calm := listening(t, reports.Settled(t).Report)
	tests := map[string][]string{
		"list":            {"drift", "list"},
		"list-wide":       {"drift", "list", "crp/web", "--cluster", "ams", "-o", "wide"},
		"list-json":       {"drift", "list", "--cluster", "ber", "-o", "json"},
		"list-other":      {"drift", "list", "crp/tools"},
		"list-unknown":    {"drift", "list", "crp/wbe"},
		"list-nowhere":    {"drift", "list", "--cluster", "amst"},
		"show":            {"drift", "show", "crp/web"},
		"show-object":     {"drift", "show", "cm/one", "-n", "web"},
		"show-autoscaled": {"drift", "show", "deploy/shop", "-n", "web", "-o", "json"},
		"show-unknown":    {"drift", "show", "deployment/shp", "-n", "web"},
		"show-malformed":  {"drift", "show", "web"},
		"list-calm":       {"drift", "list", "--server", calm},
		"list-calm-json":  {"drift", "list", "--server", calm, "-o", "json"},
	}
	book := golden.Open(t, "testdata/drift.txt")
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			transcribe(&out, append([]string{args[0], args[1], "--server", address}, args[2:]...)...)
			book.Compare(t, name, out.String())
		})
	}
}

// docs/drift.md has the present output of drift show.
func TestThePageOnDriftTellsTheTruth(t *testing.T) {
	now := time.Date(2026, 3, 1, 14, 0, 40, 0, time.UTC)
	edit := api.Actor{Manager: "kubectl-edit", Operation: "Update", Time: now.Add(-10 * time.Minute)}
	d := status.Drift{
		Placement: "crp/web", Cluster: "east",
		ResourceIdentifier: api.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		State:              api.DriftRepaired, Count: 2, FirstSeen: now.Add(-3 * time.Hour), LastSeen: now.Add(-10 * time.Minute), By: []api.Actor{edit},
		Paths: []api.Difference{{
			PatchDetail: api.PatchDetail{Path: "/spec/template/spec/containers/0/image", ValueInMember: "nginx:1.28", ValueInHub: "nginx:1.29"},
			By:          []api.Actor{edit},
		}},
	}
	_, address := listening(t, &status.Report{At: now, Drifts: []status.Drift{d}, Details: []*status.Detail{{Placement: "crp/web"}}})
	var out bytes.Buffer
	transcribe(&out, "drift", "show", "crp/web", "--server", address)
	page, err := os.ReadFile("../../docs/drift.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```\n"+out.String()+"```\n") {
		t.Errorf("docs/drift.md does not show\n%s", out.String())
	}
}
