package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/githttp"
)

// workload returns the owner of the test's application on a member, and an identity that
// changes if its objects or pods are created again. The generation of a Deployment is not part
// of it: it counts changes of annotations too.
func (d *daemon) workload(member string) (owner, identity string) {
	ctx := context.Background()
	ns, err := d.clients[member].CoreV1().Namespaces().Get(ctx, d.name, metav1.GetOptions{})
	if err != nil {
		return "", ""
	}
	deployment, err := d.clients[member].AppsV1().Deployments(d.name).Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return "", ""
	}
	spec, err := json.Marshal(deployment.Spec)
	if err != nil {
		d.t.Fatal(err)
	}
	return deployment.Annotations[api.PlacementAnnotation], fmt.Sprintf("namespace %s, deployment %s: %s", ns.UID, deployment.UID, spec)
}

// owned waits until the application on some members belongs to a placement, and no inventory of
// another one is left there.
func (d *daemon) owned(by string, members ...string) {
	d.t.Helper()
	d.eventually("the workload belongs to "+by, func() bool {
		for _, m := range members {
			owner, _ := d.workload(m)
			if all := d.inventories(m); owner != by || len(all) != 1 {
				return false
			}
		}
		return true
	})
}

// deployable returns the application with a Deployment that counts as available, although no
// pods run here.
func (d *daemon) deployable(value string) map[string]string {
	files := d.app(value)
	files["web.yaml"] = strings.Replace(yamlDeployment(d.name, "web", 1), "\nspec:", "\n  annotations: {gitfleet.dev/available: \"true\"}\nspec:", 1)
	return files
}

// A placement that is renamed while its rollout is stopped stays stopped, whatever else the
// commit changes, also after a restart. Its objects are handed over: none is deleted, and no
// pod is created again.
func TestRenamedPlacementKeepsItsRollout(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "--set", "rollout.availableTimeout=2s")
	d.repo.Commit(t, "main", map[string]string{"placement.yaml": yamlPlacement("all", d.name, pickAll+oneByOne)})
	good := d.repo.Commit(t, "main", d.deployable("good"))
	d.startAt(good)
	d.waitForValues("good good good")
	d.waitForProven(good)
	d.repo.Commit(t, "main", d.deployable("broken"))
	const stopped = "waits for cluster member-1, which was available before its update and is not now"
	d.waits("member-2", stopped, "broken good good")
	before := map[string]string{}
	for _, m := range d.members {
		_, before[m] = d.workload(m)
	}

	for i, name := range []string{"everything", "whole", "all"} {
		policy := pickAll + "  strategy: {rollingUpdate: {maxUnavailable: 100%}}\n"
		d.repo.Commit(t, "main", map[string]string{"placement.yaml": yamlPlacement(name, d.name, policy)})
		d.owned("crp/"+name, d.members...)
		d.waits("member-2", stopped, "broken good good")
		if i == 0 {
			d.kill()
			d.start()
			d.waits("member-2", stopped, "broken good good")
		}
		for _, m := range d.members {
			if _, now := d.workload(m); now != before[m] {
				t.Errorf("%s as %s: it is %s, and was %s", m, name, now, before[m])
			}
		}
	}
	r := d.report()
	if events := deletionEvents(r); len(events) > 0 {
		t.Errorf("something was deleted: %v", events)
	}
	for _, want := range []struct {
		text string
		args []string
	}{
		{"it was crp/whole until now", []string{"history", "crp/all", "--kind", "placement"}},
		{"it is crp/whole from now on", []string{"history", "crp/everything", "--kind", "placement"}},
		{"Renamed from:   crp/whole", []string{"describe", "crp/all"}},
		{"was renamed to crp/all at 20", []string{"history", "crp/whole"}},
		{"was renamed from crp/whole", []string{"events", "crp/all"}},
	} {
		if out, code := d.cli(want.args...); code != 0 || !strings.Contains(out, want.text) {
			t.Errorf("%s does not say %q, exit code %d:\n%s", want.args, want.text, code, out)
		}
	}

	fixed := d.repo.Commit(t, "main", d.deployable("fixed"))
	d.waitForValues("fixed fixed fixed")
	d.waitForProven(fixed)
}

// A placement with PickN keeps its cluster when it is renamed, even if it would choose another
// now. Nothing is deleted there.
func TestRenamedPickNKeepsItsCluster(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	const one = "  policy: {placementType: PickN, numberOfClusters: 1}\n"
	d.repo.Remove(t, "main", "clusters/member-3.yaml")
	d.repo.Commit(t, "main", map[string]string{"placement.yaml": yamlPlacement("old", d.name, one)})
	d.startAt(d.repo.Commit(t, "main", d.deployable("good")))
	d.waitForValues("- good -")
	_, before := d.workload("member-2")

	renamed := d.repo.Commit(t, "main", map[string]string{
		"placement.yaml": yamlPlacement("new", d.name, one), "clusters/member-3.yaml": memberCluster("member-3"),
	})
	d.applied(renamed)
	d.owned("crp/new", "member-2")
	d.waitForValues("- good -")
	if _, now := d.workload("member-2"); now != before {
		t.Errorf("the workload is %s, and was %s", now, before)
	}

	// If two placements select the object, it is unclear which is the new name.
	d.repo.Change(t, "main", githttp.Change{Files: map[string]string{
		"placement.yaml": yamlPlacement("left", d.name, one) + "---\n" + yamlPlacement("right", d.name, one),
	}})
	const why = "crp/left (placement.yaml:1) and crp/right (placement.yaml:10) select what it holds"
	r := d.until("the ambiguity is reported", func(r *status.Report) bool { return contains(r.Details, why) })
	if d.values() != "- good -" || len(deletionEvents(r)) > 0 {
		t.Errorf("the members have %s; deleted was %v", d.values(), deletionEvents(r))
	}
	d.repo.Commit(t, "main", map[string]string{"placement.yaml": yamlPlacement("right", d.name, one)})
	d.owned("crp/right", "member-2")
	d.waitForValues("- good -")
	if _, now := d.workload("member-2"); now != before {
		t.Errorf("the workload is %s, and was %s", now, before)
	}
}
