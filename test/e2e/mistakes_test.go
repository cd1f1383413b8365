package e2e

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/githttp"
)

// A typo in the only selector, and then a removed Namespace manifest, delete nothing on any
// cluster until a commit allows it.
func TestProbableMistakesDeleteNothing(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	// Without controllers no Deployment becomes available: the rollout must not wait for that.
	policy := pickAll + "  strategy: {rollingUpdate: {maxUnavailable: 100%}}\n"
	app := yamlConfigMap(d.name, "settings", "a") + "---\n" + yamlDeployment(d.name, "web", 1)
	good := map[string]string{
		"namespace.yaml": yamlNamespace(d.name), "app.yaml": app, "placement.yaml": yamlPlacement("shop", d.name, policy),
	}
	d.startAt(d.repo.Commit(t, "main", good))
	ctx := context.Background()
	there := func(when string) {
		t.Helper()
		for _, m := range d.members {
			c := d.clients[m]
			ns, err := c.CoreV1().Namespaces().Get(ctx, d.name, metav1.GetOptions{})
			if err != nil || ns.DeletionTimestamp != nil {
				t.Errorf("%s: %s: the namespace is gone or going: %v", when, m, err)
			}
			if _, err := c.AppsV1().Deployments(d.name).Get(ctx, "web", metav1.GetOptions{}); err != nil || d.configMap(m, "settings") == nil {
				t.Errorf("%s: %s: the workload is gone: %v", when, m, err)
			}
		}
	}
	held := func(commit, why string) func(r *status.Report) bool {
		return func(r *status.Report) bool {
			for _, m := range d.members {
				if b := blockedDeletions(r, m); r.Source.InForce.Hash != commit || len(b) != 3 || !strings.Contains(b[0], why) {
					return false
				}
			}
			return true
		}
	}

	typo := d.repo.Change(t, "main", githttp.Change{Files: map[string]string{"placement.yaml": yamlPlacement("shop", d.name+"-typo", policy)}})
	r := d.until("held after the typo", held(typo, `(Namespace "`+d.name+`-typo") matches nothing`))
	there("after the typo")
	if r.Details[0].Proven == typo {
		t.Error("the commit with the typo counts as one to go back to")
	}
	mended := d.repo.Change(t, "main", githttp.Change{Files: map[string]string{"placement.yaml": yamlPlacement("shop", d.name, policy)}})
	d.until("fixed", func(r *status.Report) bool {
		return r.Source.InForce.Hash == mended && len(blockedDeletions(r, "member-1")) == 0
	})
	d.applied(mended)

	removed := d.repo.Change(t, "main", githttp.Change{Remove: []string{"namespace.yaml"}})
	d.until("held without the manifest", held(removed, "matches nothing"))
	there("without the manifest")
	d.stop()
	d.start()
	d.until("held after a restart", held(removed, "matches nothing"))
	there("after a restart")

	if n := len(deletionEvents(d.report())); n > 0 {
		t.Errorf("%d events say that objects were deleted", n)
	}
	d.commitAllowing("crp/shop", githttp.Change{Files: map[string]string{"README.md": "hello"}})
	d.eventually("deleted", func() bool {
		for _, m := range d.members {
			ns, err := d.clients[m].CoreV1().Namespaces().Get(ctx, d.name, metav1.GetOptions{})
			if !apierrors.IsNotFound(err) && (err != nil || ns.DeletionTimestamp == nil) {
				return false
			}
		}
		return true
	})

	// Each deleted object is in the log and in an event, which a restart does not repeat.
	told := func(r *status.Report) bool { return len(deletionEvents(r)) == len(d.members) }
	d.until("reported", told)
	d.stop()
	d.start()
	r = d.until("reported after a restart", func(r *status.Report) bool { return r.Source.InForce.Hash != "" && told(r) })
	for _, e := range deletionEvents(r) {
		if e.Count != 1 || e.Commit != removed || !strings.Contains(e.Message, "Namespace/"+d.name) || !strings.HasSuffix(e.Message, ": no longer in the placement's content") {
			t.Errorf("the event on %s happened %d times, commit %s: %s", e.Cluster, e.Count, e.Commit, e.Message)
		}
	}
	log, err := os.ReadFile(d.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []string{"Namespace/" + d.name, "Deployment.apps/" + d.name + "/web", "ConfigMap/" + d.name + "/settings"} {
		line := "placement=crp/shop object=" + object + " commit=" + removed
		if n := strings.Count(string(log), line); n != len(d.members) || !strings.Contains(string(log), `msg="object deleted"`) {
			t.Errorf("%d lines of the log have %q, want one for each cluster", n, line)
		}
	}
}

// deletionEvents returns the events of deleted objects in a report.
func deletionEvents(r *status.Report) []status.Event {
	return slices.DeleteFunc(slices.Clone(r.Events), func(e status.Event) bool { return e.Reason != api.ObjectsDeleted })
}
