package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/checkout"
)

// faulty builds gitfleet with the fault points at which it can be killed.
var faulty = sync.OnceValues(func() (string, error) {
	root, err := checkout.Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "build", "faults", "gitfleet")
	return path, checkout.Build(context.Background(), root, nil, path, "-tags=faults", "./cmd/gitfleet")
})

// crashes are the fault points between two writes.
var crashes = []string{
	"before save:2", "after save:2", "works sent:1", "works sent:3", "announced:1", "applied:1", "applied:4",
	"before inventory:1", "after inventory:2", "pruned:1",
	"written:1", "written:5", "written:12", // counting requests that write to members
}

// Wherever gitfleet is killed while it carries out a commit, it continues after a restart, and
// the result is the same as without the crash: the objects of the commit, their content, and
// one inventory.
func TestDaemonRecoversWhenKilledBetweenWrites(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.program = faulty
	d.repo.Commit(t, "main", map[string]string{
		"namespace.yaml": fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\n", d.name),
		"place.yaml": fmt.Sprintf("{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: %s}, "+
			"spec: {resourceSelectors: [{group: '', version: v1, kind: Namespace, name: %[1]s}], strategy: {rollingUpdate: {maxUnavailable: 100%%}}}}\n", d.name),
	})
	commit := func(turn int) string {
		files := map[string]string{"changes.yaml": changing(d.name, "changes", fmt.Sprint(turn))}
		for i := range 3 {
			files[fmt.Sprintf("own-%d.yaml", i)] = changing(d.name, fmt.Sprintf("own-%d-of-%d", i, turn), "own")
		}
		return d.repo.Commit(t, "main", files)
	}
	d.start()
	d.applied(commit(0))
	d.stop()
	for i, place := range crashes {
		turn := i + 1
		hash := commit(turn)
		d.env = []string{"GITFLEET_CRASH_AT=" + place}
		d.start()
		d.waitForCrash(place)
		d.env = nil
		d.start()
		d.applied(hash)
		d.holds(place, turn)
		d.stop()
	}
}

// Killed while it abandons the objects of a deleted placement, gitfleet continues after a
// restart: nothing remains owned, and nothing is deleted.
func TestDaemonContinuesAbandoningAfterACrash(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.program = faulty
	for turn, place := range []string{"written:1", "written:4", "written:8", "after save:2"} {
		d.startAt(d.abandoning(fmt.Sprint(turn)))
		d.waitForValues(strings.TrimSpace(strings.Repeat(fmt.Sprint(turn, " "), len(d.members))))
		d.stop()
		d.repo.Remove(t, "main", "placement.yaml", "app.yaml")
		d.env = []string{"GITFLEET_CRASH_AT=" + place}
		d.start()
		d.waitForCrash(place)
		d.env = nil
		d.start()
		d.waitForAbandoned()
		d.stop()
	}
}

func changing(namespace, name, value string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: %s}, data: {value: %q}}\n", namespace, name, value)
}

// waitForCrash waits until the daemon has killed itself.
func (d *daemon) waitForCrash(place string) {
	d.t.Helper()
	ended := make(chan struct{})
	go func() {
		d.command.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		d.command.Process.Kill()
		<-ended
		d.t.Fatalf("it never came to %s", place)
	}
	if got := d.command.ProcessState.String(); got != "signal: killed" {
		d.t.Fatalf("at %s it ended with %s", place, got)
	}
	d.command = nil
}

// holds compares the objects on the members with a commit.
func (d *daemon) holds(place string, turn int) {
	d.t.Helper()
	want := map[string]string{"changes": fmt.Sprint(turn)}
	for i := range 3 {
		want[fmt.Sprintf("own-%d-of-%d", i, turn)] = "own"
	}
	for _, member := range d.members {
		deadline := time.Now().Add(time.Minute)
		got := d.ownedValues(member)
		for !maps.Equal(got, want) && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond)
			got = d.ownedValues(member)
		}
		if !maps.Equal(got, want) {
			d.t.Errorf("killed at %s, %s holds %v, want %v", place, member, got, want)
		}
		if names := d.inventories(member); len(names) != 1 {
			d.t.Errorf("killed at %s, the inventories of %s are %v", place, member, names)
		}
	}
}

// ownedValues returns the values of the objects that gitfleet owns on a member in the namespace.
func (d *daemon) ownedValues(member string) map[string]string {
	d.t.Helper()
	out := map[string]string{}
	for _, c := range d.configMaps(member, d.name) {
		if c.Labels[api.ManagedByLabel] == d.name {
			out[c.Name] = c.Data["value"]
		}
	}
	return out
}

func (d *daemon) inventories(member string) []string {
	d.t.Helper()
	var out []string
	for _, c := range d.configMaps(member, api.Namespace) {
		if c.Labels[api.ManagedByLabel] == d.name && strings.HasPrefix(c.Name, "inventory-") {
			out = append(out, c.Name)
		}
	}
	slices.Sort(out)
	return out
}

func (d *daemon) configMaps(member, namespace string) []corev1.ConfigMap {
	d.t.Helper()
	list, err := d.clients[member].CoreV1().ConfigMaps(namespace).List(d.t.Context(), metav1.ListOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	return list.Items
}
