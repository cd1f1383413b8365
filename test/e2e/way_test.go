package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/fleet"
)

const pickAll = "  policy: {placementType: PickAll}\n"

func only(number string) string {
	return `  policy:
    placementType: PickAll
    affinity:
      clusterAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          clusterSelectorTerms:
          - labelSelector: {matchLabels: {number: "` + number + `"}}
`
}

// A commit reaches exactly the selected clusters. A change of one field costs one request for
// each cluster, and a poll without a new commit costs none. When a file is removed, its object
// is deleted and no other.
func TestCommitReachesClusters(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	other := d.name + "-east"
	first := d.repo.Commit(t, "main", map[string]string{
		"apps/namespace.yaml": yamlNamespace(d.name),
		"apps/one.yaml":       yamlConfigMap(d.name, "one", "a"),
		"apps/two.yaml":       yamlConfigMap(d.name, "two", "a"),
		"apps/web.yaml":       yamlDeployment(d.name, "web", 2),
		"apps/everywhere.yaml": yamlPlacement("everywhere", d.name, pickAll) + "---\n" +
			yamlNamespace(other) + "---\n" + yamlPlacement("second-only", other, only("2")),
	})
	d.start()
	r := d.applied(first)

	for _, p := range r.Placements {
		want := map[string][]string{"everywhere": d.members, "second-only": {"member-2"}}[p.Name]
		var got []string
		for _, c := range p.Status.PlacementStatuses {
			got = append(got, c.ClusterName)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is on %v, want %v", p.Name, got, want)
		}
	}
	for _, m := range d.members {
		if got := d.configMap(m, "one")["value"]; got != "a" {
			t.Errorf("%s: value %q", m, got)
		}
		_, err := d.clients[m].CoreV1().Namespaces().Get(context.Background(), other, metav1.GetOptions{})
		if (err == nil) != (m == "member-2") {
			t.Errorf("%s: namespace of the second placement: %v", m, err)
		}
		objects, _ := d.asked(m, d.began)
		writes := slices.DeleteFunc(objects, func(s string) bool { return strings.HasPrefix(s, "list") })
		if want := map[bool]int{true: 5, false: 4}[m == "member-2"]; len(writes) != want {
			t.Errorf("%s: first sync took %d requests for %d objects: %v", m, len(writes), want, writes)
		}
	}

	since := d.waitForAuditLog()
	d.applied(d.repo.Commit(t, "main", map[string]string{"apps/one.yaml": yamlConfigMap(d.name, "one", "b")}))
	d.eventually("changed on every cluster", func() bool {
		return !slices.ContainsFunc(d.members, func(m string) bool { return d.configMap(m, "one")["value"] != "b" })
	})
	d.waitForAuditLog()
	for _, m := range d.members {
		objects, inventories := d.asked(m, since)
		if want := []string{"patch configmaps " + d.name + "/one 200"}; !slices.Equal(objects, want) {
			t.Errorf("%s: one field changed: %v, want %v", m, objects, want)
		}
		if len(inventories) > 1 {
			t.Errorf("%s: one field changed: inventory requests %v", m, inventories)
		}
	}

	since = d.waitForAuditLog()
	polls := len(d.git.Requests())
	d.eventually("polled five times", func() bool { return len(d.git.Requests()) >= polls+5 })
	d.waitForAuditLog()
	for _, m := range d.members {
		if objects, inventories := d.asked(m, since); len(objects)+len(inventories) > 0 {
			t.Errorf("%s: without news: %v %v", m, objects, inventories)
		}
	}

	since = d.waitForAuditLog()
	d.repo.Remove(t, "main", "apps/two.yaml")
	d.eventually("pruned", func() bool {
		return !slices.ContainsFunc(d.members, func(m string) bool { return d.configMap(m, "two") != nil })
	})
	d.applied(d.repo.Head(t, "main"))
	d.waitForAuditLog()
	for _, m := range d.members {
		objects, _ := d.asked(m, since)
		if want := []string{"delete configmaps " + d.name + "/two 200"}; !slices.Equal(objects, want) {
			t.Errorf("%s: one file removed: %v, want %v", m, objects, want)
		}
	}
}

// A commit that cannot be loaded changes nothing and is reported with file and line. The next
// valid commit is applied at once.
func TestBrokenCommitChangesNothing(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	good := d.repo.Commit(t, "main", map[string]string{
		"apps/all.yaml":  yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "a"),
		"placement.yaml": yamlPlacement("all", d.name, pickAll),
	})
	d.start()
	d.applied(good)
	since := d.waitForAuditLog()

	bad := d.repo.Commit(t, "main", map[string]string{
		"apps/all.yaml": yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "b") + "  broken: [\n",
	})
	r := d.until("refused", func(r *status.Report) bool { return r.Source.Newest.Hash == bad && len(r.Source.Problems) > 0 })
	if r.Source.InForce.Hash != good {
		t.Errorf("in force is %s", r.Source.InForce.Hash)
	}
	if p := r.Source.Problems[0]; p.Path != "apps/all.yaml" || p.Line < 13 || p.Line > 15 {
		t.Errorf("the problem is said to be at %s: %s", p.Origin, p.Message)
	}
	d.waitForAuditLog()
	for _, m := range d.members {
		if objects, inventories := d.asked(m, since); len(objects)+len(inventories) > 0 {
			t.Errorf("%s: a broken commit: %v %v", m, objects, inventories)
		}
	}
	d.applied(d.repo.Commit(t, "main", map[string]string{"apps/all.yaml": yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "c")}))
	d.eventually("restored on all members", func() bool {
		return !slices.ContainsFunc(d.members, func(m string) bool { return d.configMap(m, "one")["value"] != "c" })
	})
}

// Objects that somebody deletes, edits or scales are restored with one write each. The watches
// notice the drift, since the next poll and the next probe are an hour away. Before the write
// the object is read, to report who changed what.
func TestDriftIsRepairedWithoutPolling(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "--interval", "1h", "--set", "members.probeInterval=1h")
	commit := d.repo.Commit(t, "main", map[string]string{
		"app.yaml":       yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "a") + "---\n" + yamlDeployment(d.name, "web", 2),
		"placement.yaml": yamlPlacement("all", d.name, pickAll),
	})
	d.start()
	d.applied(commit)
	ctx := context.Background()
	client := d.clients["member-2"]
	tampers := []struct {
		name   string
		tamper func() error
		mended func() bool
		want   string
	}{
		{"delete", func() error {
			return client.CoreV1().ConfigMaps(d.name).Delete(ctx, "one", metav1.DeleteOptions{})
		}, func() bool { return d.configMap("member-2", "one")["value"] == "a" }, "patch configmaps " + d.name + "/one 201"},
		{"edit", func() error {
			_, err := client.CoreV1().ConfigMaps(d.name).Patch(ctx, "one", types.MergePatchType, []byte(`{"data":{"value":"x"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
			return err
		}, func() bool { return d.configMap("member-2", "one")["value"] == "a" }, "patch configmaps " + d.name + "/one 200"},
		{"scale", func() error {
			s, err := client.AppsV1().Deployments(d.name).GetScale(ctx, "web", metav1.GetOptions{})
			if err == nil {
				s.Spec.Replicas = 5
				_, err = client.AppsV1().Deployments(d.name).UpdateScale(ctx, "web", s, metav1.UpdateOptions{})
			}
			return err
		}, func() bool {
			s, err := client.AppsV1().Deployments(d.name).GetScale(ctx, "web", metav1.GetOptions{})
			return err == nil && s.Spec.Replicas == 2
		}, "patch deployments " + d.name + "/web 200"},
	}
	for _, c := range tampers {
		t.Run(c.name, func(t *testing.T) {
			since := d.waitForAuditLog()
			if err := c.tamper(); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			d.eventually("restored", c.mended)
			t.Logf("put back after %s", time.Since(start).Round(time.Millisecond))
			d.waitForAuditLog()
			objects, _ := d.asked("member-2", since)
			if writes := slices.DeleteFunc(slices.Clone(objects), reads); !slices.Equal(writes, []string{c.want}) || len(objects) > 3 {
				t.Errorf("took %v, want %s", objects, c.want)
			}
		})
	}
}

// A daemon that is killed continues its work after a restart, whenever it was killed: no object
// is created twice, the clusters end up as the commit says, and one more restart writes
// nothing.
func TestDaemonRecoversWhenKilledAtAnyTime(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	files := map[string]string{"apps/namespace.yaml": yamlNamespace(d.name), "placement.yaml": yamlPlacement("all", d.name, pickAll)}
	for i := range 40 {
		files[fmt.Sprintf("apps/cm-%02d.yaml", i)] = yamlConfigMap(d.name, fmt.Sprintf("cm-%02d", i), "a")
	}
	commit := d.repo.Commit(t, "main", files)
	// The daemon is killed once that many objects exist: before, during and after the rollout.
	for _, n := range []int{0, 1, 7, 23, 39, 40} {
		d.start()
		d.eventually("so far", func() bool { return d.count("member-1") >= n })
		d.kill()
	}
	d.start()
	d.applied(commit)
	for i := range 40 {
		if got := d.configMap("member-3", fmt.Sprintf("cm-%02d", i))["value"]; got != "a" {
			t.Errorf("cm-%02d: %q", i, got)
		}
	}
	d.waitForAuditLog()
	for _, m := range d.members {
		if got := d.count(m); got != 40 {
			t.Errorf("%s: has %d objects, want 40", m, got)
		}
		// A request whose sender was killed may have no response in the audit log.
		created := map[string]int{}
		objects, _ := d.asked(m, d.began)
		for _, line := range objects {
			if strings.HasPrefix(line, "delete") {
				t.Errorf("%s: %s", m, line)
			}
			if strings.HasSuffix(line, " 201") {
				created[line]++
			}
		}
		if len(created) == 0 {
			t.Errorf("%s: nothing was created", m)
		}
		for line, n := range created {
			if n > 1 {
				t.Errorf("%s: %s, %d times", m, line, n)
			}
		}
	}
	d.stop()
	since := d.waitForAuditLog()
	d.start()
	d.applied(commit)
	d.waitForAuditLog()
	for _, m := range d.members {
		objects, inventories := d.asked(m, since)
		for _, line := range append(objects, inventories...) {
			if !strings.HasPrefix(line, "list") {
				t.Errorf("%s: after a restart with nothing to do: %s", m, line)
			}
		}
	}
}

func (d *daemon) count(cluster string) int {
	list, err := d.clients[cluster].CoreV1().ConfigMaps(d.name).List(context.Background(), metav1.ListOptions{LabelSelector: api.ManagedByLabel + "=" + d.name})
	if err != nil {
		return 0
	}
	return len(list.Items)
}

// A member that is down delays no other member and is reported as down. It catches up once it
// returns.
func TestUnreachableMemberCatchesUp(t *testing.T) {
	d := newDaemon(t, "--set", "members.probeInterval=1s")
	d.startAt(d.repo.Commit(t, "main", map[string]string{
		"app.yaml":       yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "a"),
		"placement.yaml": yamlPlacement("all", d.name, pickAll+"  strategy: {rollingUpdate: {maxUnavailable: 100%}}\n"),
	}))
	f := fleet.Shared(t)
	if err := f.Stop("member-2"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Start("member-2") })
	commit := d.repo.Commit(t, "main", map[string]string{"app.yaml": yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "b")})
	d.eventually("changed on the others", func() bool {
		return d.configMap("member-1", "one")["value"] == "b" && d.configMap("member-3", "one")["value"] == "b"
	})
	d.until("said to be down", func(r *status.Report) bool {
		for _, c := range r.Clusters {
			for _, a := range c.Status.AgentStatus {
				if c.Name == "member-2" && conditionStatus(a.Conditions, api.Healthy) == metav1.ConditionFalse {
					return true
				}
			}
		}
		return false
	})
	if err := f.Start("member-2"); err != nil {
		t.Fatal(err)
	}
	d.eventually("caught up", func() bool { return d.configMap("member-2", "one")["value"] == "b" })
	d.applied(commit)
}

// startAt starts the daemon and waits for the first commit.
func (d *daemon) startAt(commit string) {
	d.t.Helper()
	d.start()
	d.applied(commit)
}

// When a placement is removed from Git, its objects are deleted and no others.
func TestRemovedPlacementIsDeletedFromMembers(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	keep := d.name + "-keep"
	d.startAt(d.repo.Commit(t, "main", map[string]string{
		"app.yaml":     yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "a"),
		"keep.yaml":    yamlNamespace(keep) + "---\n" + yamlConfigMap(keep, "one", "a"),
		"all.yaml":     yamlPlacement("all", d.name, pickAll),
		"keepers.yaml": yamlPlacement("keepers", keep, pickAll),
	}))
	d.repo.Remove(t, "main", "all.yaml")
	d.eventually("gone", func() bool {
		return !slices.ContainsFunc(d.members, func(m string) bool { return d.configMap(m, "one") != nil })
	})
	d.until("waiting for the namespaces", func(r *status.Report) bool {
		if len(r.Details) != 2 || len(r.Details[0].Clusters) != 3 {
			return false
		}
		for _, c := range r.Details[0].Clusters {
			if len(c.Lingering) != 1 {
				return false // finalizing a namespace before it is deleted would leave it there
			}
		}
		return true
	})
	for _, m := range d.members {
		finalizeNamespace(t, d.clients[m], d.name)
	}
	d.until("forgotten", func(r *status.Report) bool { return len(r.Details) == 1 })
	for _, m := range d.members {
		if _, err := d.clients[m].CoreV1().ConfigMaps(keep).Get(context.Background(), "one", metav1.GetOptions{}); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
}

// A cluster that is removed from Git keeps its objects, without an owner. When the cluster is
// added again, they are adopted again.
func TestClusterLeavesAndReturns(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	commit := d.repo.Commit(t, "main", map[string]string{
		"app.yaml":       yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "a"),
		"placement.yaml": yamlPlacement("all", d.name, pickAll),
	})
	d.startAt(commit)
	d.repo.Remove(t, "main", "clusters/member-3.yaml")
	label := func() string {
		cm, err := d.clients["member-3"].CoreV1().ConfigMaps(d.name).Get(context.Background(), "one", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		return cm.Labels[api.ManagedByLabel]
	}
	d.eventually("released", func() bool { return label() == "" })
	d.until("gone from the report", func(r *status.Report) bool { return len(r.Clusters) == 2 })
	if d.configMap("member-3", "one")["value"] != "a" {
		t.Error("the object is gone")
	}
	d.repo.Commit(t, "main", map[string]string{"clusters/member-3.yaml": memberCluster("member-3"), "app.yaml": yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "b")})
	d.eventually("taken over again", func() bool { return label() == d.name && d.configMap("member-3", "one")["value"] == "b" })
}
