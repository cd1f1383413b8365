package view

import (
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
	"github.com/gitfleet/gitfleet/test/reports"
)

// A tree has the clusters, below them what is not deleted and the objects, and below an envelope
// those that it wraps. Why a cluster failed is said by its objects if they do.
func TestTreeText(t *testing.T) {
	object := func(name string, state status.TreeState, message string, e *api.EnvelopeIdentifier) status.TreeObject {
		return status.TreeObject{ResourceIdentifier: api.ResourceIdentifier{Kind: "ConfigMap", Namespace: "web", Name: name, Envelope: e}, State: state, Message: message}
	}
	box := &api.EnvelopeIdentifier{Type: api.ConfigMapEnvelopeType, Namespace: "web", Name: "box"}
	tree := &status.Tree{Placement: "crp/web", Origin: "web.yaml:1", Clusters: []status.TreeCluster{
		{Cluster: "ams", Commit: reports.FirstCommit, Objects: []status.TreeObject{object("one", status.ObjectAvailable, "", nil), object("in", status.ObjectPending, "", box), object("longer", status.ObjectAvailable, "", nil)}},
		{Cluster: "ber", Objects: []status.TreeObject{object("one", status.ObjectFailed, "denied", nil)}},
		{Cluster: "chi"},
		{Cluster: "gone"},
	}}
	r := &status.Report{
		Clusters: []*api.MemberCluster{reports.MemberCluster("ams", true), reports.MemberCluster("ber", true), reports.MemberCluster("chi", true)},
		Details: []*status.Detail{{Placement: "crp/web", Clusters: []status.ClusterDetail{
			{Cluster: "ams", Available: true, DeletionErrors: []string{"ConfigMap/web/old: denied"}}, {Cluster: "ber", Failure: "ConfigMap/web/one: denied"}, {Cluster: "chi", Waits: "waits for ams"},
		}}},
	}
	const want = `crp/web  web.yaml:1
├─ ams  available  a1a1a1a1
│  ├─ not deleted  ConfigMap/web/old: denied
│  ├─ ConfigMap/web/one     available
│  ├─ ConfigMap/web/box  envelope
│  │  └─ ConfigMap/web/in      pending
│  └─ ConfigMap/web/longer  available
├─ ber  failed
│  └─ ConfigMap/web/one  failed  denied
├─ chi  waiting  waits for ams
└─ gone
`
	if got := treeText(tree, r, output.Page{}); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	tree.UpdateRun = &updaterun.Run{Name: "web-1", Reason: "UpdateRunWaiting", Commit: reports.FirstCommit, ApprovalStage: "canary", Stages: []updaterun.Stage{
		{Name: "canary", Clusters: 1, Updated: 1, Waits: []string{"the approval web-1-after-canary"}}, {Name: "prod", Clusters: 2},
	}}
	tree.Clusters = []status.TreeCluster{{Cluster: "ams", Commit: reports.FirstCommit, Stage: "canary"}, {Cluster: "chi", Stage: "prod"}}
	const withRun = `crp/web  web.yaml:1
├─ run web-1  UpdateRunWaiting  a1a1a1a1  an approval after stage canary is missing: gitfleet approve crp/web --stage canary --run web-1
│  ├─ stage canary: 1 of 1 cluster updated, waits for the approval web-1-after-canary
│  └─ stage prod: 0 of 2 clusters updated
├─ ams  available  a1a1a1a1  stage canary
│  └─ not deleted  ConfigMap/web/old: denied
└─ chi  waiting  stage prod  waits for ams
`
	if got := treeText(tree, r, output.Page{}); got != withRun {
		t.Errorf("with an update run:\n%s\nwant\n%s", got, withRun)
	}
	if got := treeText(&status.Tree{Placement: "crp/web"}, r, output.Page{}); got != "crp/web  removed from the repository\n" {
		t.Errorf("without an origin: %q", got)
	}
}
