package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// driftingFleet is a fleet in which objects moved away in every way there is.
func driftingFleet(t *testing.T) *stage {
	s := settledFleet(t)
	edit := api.Actor{Manager: "kubectl-edit", Operation: "Update", Time: s.now.Add(-10 * time.Minute)}
	scaler := api.Actor{Manager: "kube-controller-manager", Operation: "Update", Subresource: "scale", Time: s.now.Add(-time.Minute)}
	field := func(path, member, hub string, by ...api.Actor) api.Difference {
		return api.Difference{PatchDetail: api.PatchDetail{Path: path, ValueInMember: member, ValueInHub: hub}, By: by}
	}
	s.says("ams", "web", func(w *ledger.WorkSeen) {
		w.Drifts = []ledger.Drift{
			{ID: configMap("one"), Version: "v1", State: api.DriftRepaired, Count: 3, FirstSeen: s.now.Add(-2 * time.Hour), LastSeen: s.now.Add(-10 * time.Minute),
				By: []api.Actor{edit}, Paths: []api.Difference{field("/data/value", "9", "1", edit), field("/data/text", "two\nlines", "", edit)}},
			{ID: configMap("two"), Version: "v1", State: api.DriftStanding, Count: 1, FirstSeen: s.now.Add(-time.Hour), LastSeen: s.now, Message: "suspended by alice: INC-1",
				Paths: []api.Difference{field("/data/value", "8", "1")}},
		}
	})
	s.says("ber", "web", func(w *ledger.WorkSeen) {
		w.Drifts = []ledger.Drift{
			{ID: api.ID{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "shop"}, Version: "v1", State: api.DriftContested, Count: 1, FirstSeen: s.now.Add(-time.Hour),
				LastSeen: s.now, By: []api.Actor{scaler}, Paths: []api.Difference{field("/spec/replicas", "7", "3", scaler)}, Message: "left to the HorizontalPodAutoscaler shop"},
			{ID: api.ID{Kind: "Secret", Namespace: "web", Name: "key"}, Version: "v1", State: api.DriftRepaired, Count: 1, FirstSeen: s.now.Add(-time.Hour), LastSeen: s.now.Add(-time.Hour),
				Deleted: true, Paths: []api.Difference{field("/data/key", diff.Mask, diff.Mask)}},
		}
	})
	s.turn(time.Second)
	return s
}

// What drift prints is what its readers see, and their scripts: it changes on
// purpose only.
func TestDrift(t *testing.T) {
	_, address := listening(t, driftingFleet(t).report)
	_, calm := listening(t, settledFleet(t).report)
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
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			transcribe(&out, append([]string{args[0], args[1], "--server", address}, args[2:]...)...)
			golden(t, "testdata/drift/"+name+".txt", out.Bytes())
		})
	}
}
