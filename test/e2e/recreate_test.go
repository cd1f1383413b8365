package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/githttp"
)

func yamlJob(namespace, name, image, annotations string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: %s, annotations: {%s}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.example/%s"}]
`, name, namespace, annotations, image)
}

func yamlService(namespace, name, fields, annotations string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: %s, namespace: %s, annotations: {%s}}
spec: {%sselector: {app: web}, ports: [{port: 80}]}
`, name, namespace, annotations, fields)
}

// forbidJobs has the members refuse new Jobs by a ResourceQuota.
func (d *daemon) forbidJobs() {
	d.t.Helper()
	none := corev1.ResourceList{"count/jobs.batch": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "jobs"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "another"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "registry.example/app:1"}},
	}}}}
	for _, client := range d.clients {
		created, err := client.CoreV1().ResourceQuotas(d.name).Create(context.Background(), quota, metav1.CreateOptions{})
		if err != nil {
			d.t.Fatal(err)
		}
		created.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none} // the work of a controller that the members do not run
		if _, err := client.CoreV1().ResourceQuotas(d.name).UpdateStatus(context.Background(), created, metav1.UpdateOptions{}); err != nil {
			d.t.Fatal(err)
		}
		d.eventually("no new Jobs", func() bool {
			_, err := client.BatchV1().Jobs(d.name).Create(context.Background(), job, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return apierrors.IsForbidden(err)
		})
	}
}

// allowJobs ends forbidJobs.
func (d *daemon) allowJobs() {
	d.t.Helper()
	for _, client := range d.clients {
		if err := client.CoreV1().ResourceQuotas(d.name).Delete(context.Background(), "jobs", metav1.DeleteOptions{}); err != nil {
			d.t.Fatal(err)
		}
	}
}

// A change of immutable fields is refused by a real API server, with the advice how to have the
// objects recreated. With the annotation they are deleted and created anew, which diff says
// beforehand, and it is told as a deletion. No object is deleted while a new one is refused.
func TestImmutableObjectsAreRecreated(t *testing.T) {
	t.Parallel()
	const wish, headless = `gitfleet.dev/recreate: "true"`, "clusterIP: None, "
	d := newDaemon(t)
	content := func(image, service, annotations string) map[string]string {
		return map[string]string{
			"apps/all.yaml": yamlNamespace(d.name) + "---\n" + yamlPlacement("all", d.name, pickAll+atOnce),
			"apps/job.yaml": yamlJob(d.name, "once", image, annotations), "apps/svc.yaml": yamlService(d.name, "web", service, annotations),
		}
	}
	uids := func() (all map[string]types.UID) {
		t.Helper()
		all = map[string]types.UID{}
		for name, client := range d.clients {
			job, err := client.BatchV1().Jobs(d.name).Get(context.Background(), "once", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			service, err := client.CoreV1().Services(d.name).Get(context.Background(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			all[name+" Job"], all[name+" Service"] = job.UID, service.UID
		}
		return all
	}
	first := d.repo.Commit(t, "main", content("app:1", "", ""))
	d.start()
	d.applied(first)
	before := uids()

	d.repo.Commit(t, "main", content("app:2", headless, ""))
	failing := func(objects int, message string) func(*status.Report) bool {
		return func(r *status.Report) bool {
			found := 0
			for _, p := range r.Placements {
				for _, c := range p.Status.PlacementStatuses {
					for _, f := range c.FailedPlacements {
						if strings.Contains(f.Condition.Message, message) {
							found++
						}
					}
				}
			}
			return found == objects*len(d.members)
		}
	}
	d.until("refused", failing(2, "give it in Git the annotation "+wish))
	if now := uids(); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Fatalf("without the annotation, before:\n%v\nnow\n%v", before, now)
	}

	wanted := content("app:2", headless, wish)
	checkout := t.TempDir()
	if _, err := githttp.Git(checkout, "clone", "--quiet", d.repo.Dir, "."); err != nil {
		t.Fatal(err)
	}
	for name, text := range wanted {
		if err := os.WriteFile(filepath.Join(checkout, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, how := range [][]string{nil, {"--server-side"}} {
		out, code := d.cli(append([]string{"diff", "--config", d.config(), "--path", checkout}, how...)...)
		if code != 1 || strings.Count(out, ": 2 to recreate\n") != len(d.members) || !strings.Contains(out, "-/+ Job.batch/"+d.name+"/once") {
			t.Errorf("diff %q: exit code %d\n%s", how, code, out)
		}
	}

	d.forbidJobs()
	recreated := d.repo.Commit(t, "main", wanted)
	d.until("denied", failing(1, "it is not deleted to be created anew: dry run of the new object: "))
	for name, client := range d.clients {
		if job, err := client.BatchV1().Jobs(d.name).Get(context.Background(), "once", metav1.GetOptions{}); err != nil || job.UID != before[name+" Job"] {
			t.Errorf("the Job of %s is deleted although a new one is forbidden: %v", name, err)
		}
	}
	d.allowJobs()
	d.applied(recreated)
	now := uids()
	for name, uid := range before {
		if now[name] == uid {
			t.Errorf("%s is still the same", name)
		}
	}
	d.until("told", func(r *status.Report) bool {
		told := 0
		for _, e := range r.Events {
			if e.Reason == api.ObjectsDeleted && e.Commit == recreated && strings.Contains(e.Message, "an immutable field changed") {
				told += int(e.Count)
			}
		}
		return told >= len(d.members)
	})
	if out, code := d.cli("diff", "--config", d.config(), "--server-side"); code != 0 {
		t.Errorf("all is synced: exit code %d\n%s", code, out)
	}
}
