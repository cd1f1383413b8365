package view

import (
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/reports"
)

// A trace has a row for everything that is known, from the file to the state, and none for the
// rest.
func TestTraceText(t *testing.T) {
	id := api.ResourceIdentifier{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	wrapped := id
	wrapped.Envelope = &api.EnvelopeIdentifier{Type: api.ClusterResourceEnvelopeType, Name: "box"}
	for name, test := range map[string]struct {
		of   status.Trace
		want string
	}{
		"the least": {status.Trace{ResourceIdentifier: id, Unknown: "the daemon has no history"}, "commit not known: the daemon has no history"},
		"a commit":  {status.Trace{ResourceIdentifier: id, Commit: &status.TracedCommit{Hash: "a1", Author: "Ada", Time: reports.Noon, Subject: "Bring it"}}, "commit a1 Ada, 2026-03-01T12:00:00Z: Bring it"},
		"a commit of which only the hash is known": {status.Trace{ResourceIdentifier: id, Commit: &status.TracedCommit{Hash: "a1"}}, "on east commit a1"},
		"an envelope":                  {status.Trace{ResourceIdentifier: wrapped}, "envelope ClusterResourceEnvelope box"},
		"a kustomization":              {status.Trace{ResourceIdentifier: id, Origin: "base/web.yaml:1", Kustomization: "app/kustomization.yaml"}, "file base/web.yaml:1 built by app/kustomization.yaml"},
		"a placement":                  {status.Trace{ResourceIdentifier: id, Placement: "crp/web", PlacementOrigin: "web.yaml:1", Why: "picked", Revision: reports.FirstCommit, Assigned: reports.Noon, Waits: "maxUnavailable 1"}, "placement crp/web (web.yaml:1) why picked revision a1a1a1a1, assigned 2026-03-01T12:00:00Z rollout maxUnavailable 1"},
		"a placement of unknown place": {status.Trace{ResourceIdentifier: id, Placement: "crp/web"}, "not known: placement crp/web"},
		"overrides":                    {status.Trace{ResourceIdentifier: id, Overrides: []string{"a", "b"}, Overridden: true, State: "available"}, "override a override b state available"},
		"overrides without effect":     {status.Trace{ResourceIdentifier: id, Overrides: []string{"a"}, State: "available"}, "override a which changed nothing state available"},
		"drift":                        {status.Trace{ResourceIdentifier: id, Suspended: "by alice", Drift: &status.Drift{State: api.DriftContested, Count: 3, LastSeen: reports.Noon}}, "suspended by alice drift contested 3 times, last seen 2026-03-01T12:00:00Z, by -"},
	} {
		t.Run(name, func(t *testing.T) {
			test.of.Cluster = "east"
			got := strings.Join(strings.Fields(traceText(&test.of, output.Page{})), " ")
			if !strings.HasPrefix(got, "Deployment.apps/shop/web on east ") || !strings.Contains(got, test.want) {
				t.Errorf("no %q in %q", test.want, got)
			}
		})
	}
}
