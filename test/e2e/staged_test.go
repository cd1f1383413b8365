package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// yamlOfRuns is a placement for every content of which a run is made by a strategy, which approves its canary and goes back after failures.
func yamlOfRuns(name string) string {
	annotated := "metadata:\n  annotations: {" + api.OnFailureAnnotation + ": " + api.OnFailureRollBack + "}\n  name: careful"
	return strings.Replace(yamlCareful, "metadata: {name: careful}", annotated, 1) + `---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata:
  name: staged
  annotations: {` + api.StagedUpdateStrategyAnnotation + `: careful}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: ` + name + `}]
  strategy: {type: External}
`
}

// The canary gets new content first, and the other clusters after its approval, which a client writes as KubeFleet's tools do and which a
// crash does not lose. Content that fails on the canary reaches no other cluster, and the canary goes back.
func TestCanaryIsApprovedOrGoesBack(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "--set", "rollout.availableTimeout=2s")
	d.repo.Commit(t, "main", map[string]string{"placement.yaml": yamlOfRuns(d.name)})
	good := d.repo.Commit(t, "main", d.app("good"))
	d.start()
	d.waitForValues("good - -")
	run := "staged-" + good[:8]
	asks := func(r *status.Report) bool {
		return len(r.Details) == 1 && r.Details[0].UpdateRun != nil && r.Details[0].UpdateRun.ApprovalStage == "canary"
	}
	d.until("waiting for the approval", asks)
	d.kill()
	d.start()
	d.until("waiting for the approval after a crash", asks)
	if got := d.values(); got != "good - -" {
		t.Errorf("after a crash the members have %s", got)
	}
	d.writeApproval(run + "-after-canary")
	d.kill()
	d.start()
	d.waitForValues("good good good")
	d.until("finished", func(r *status.Report) bool {
		return len(r.Details) == 1 && r.Details[0].UpdateRun != nil && r.Details[0].UpdateRun.Reason == "UpdateRunSucceeded"
	})

	bad := d.repo.Commit(t, "main", d.app("broken"))
	r := d.until("rolled back", func(r *status.Report) bool { return len(r.Details) == 1 && r.Details[0].FailedContent != nil })
	if f := r.Details[0].FailedContent; f.Commit != bad || f.BackCommit != good || !strings.HasPrefix(f.Reason, "the update failed on member-1 in stage canary") {
		t.Errorf("the failed content is %+v", f)
	}
	d.waitForValues("good good good")
	fixed := d.repo.Commit(t, "main", d.app("fixed"))
	d.waitForValues("fixed good good")
	if text := d.gitfleet("approve", "crp/staged", "--stage", "canary", "--run", "staged-"+fixed[:8]); !strings.Contains(text, "is approved") {
		t.Errorf("approve says %s", text)
	}
	d.waitForValues("fixed fixed fixed")
}

// writeApproval approves a request by its status.
func (d *daemon) writeApproval(request string) {
	d.t.Helper()
	body := fmt.Sprintf(`{"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "lgtm", "message": "looks well", "lastTransitionTime": %q, "observedGeneration": 1}]}}`, time.Now().UTC().Format(time.RFC3339))
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodPatch, "http://"+d.address+"/apis/placement.kubernetes-fleet.io/v1beta1/clusterapprovalrequests/"+request+"/status", strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/merge-patch+json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		d.t.Fatalf("the approval of %s is answered with %s", request, resp.Status)
	}
}
