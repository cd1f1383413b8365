package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/githttp"
)

// blockedDeletions lists the blocked deletions on a cluster.
func blockedDeletions(r *status.Report, cluster string) []string {
	var out []string
	for _, d := range r.Details {
		for _, c := range d.Clusters {
			if c.Cluster == cluster {
				out = append(out, c.BlockedDeletions...)
			}
		}
	}
	return out
}

func (d *daemon) commitAllowing(what string, c githttp.Change) string {
	c.Message = "clean up\n\nGitfleet-Allow-Delete: " + what + "\n"
	return d.repo.Change(d.t, "main", c)
}

// A commit that would delete much is carried out except for the deletions, until a trailer in a
// later commit allows them.
func TestMassDeletionIsBlocked(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	files := map[string]string{"namespace.yaml": yamlNamespace(d.name), "placement.yaml": yamlPlacement("all", d.name, pickAll)}
	for i := range 20 {
		files[fmt.Sprintf("many/cm-%02d.yaml", i)] = yamlConfigMap(d.name, fmt.Sprintf("cm-%02d", i), "a")
	}
	d.startAt(d.repo.Commit(t, "main", files))
	commit := d.repo.Change(t, "main", githttp.Change{Remove: []string{"many"}, Files: map[string]string{"new.yaml": yamlConfigMap(d.name, "new", "a")}})
	r := d.until("held", func(r *status.Report) bool {
		return r.Source.InForce.Hash == commit && len(blockedDeletions(r, "member-1")) == 20 && len(blockedDeletions(r, "member-3")) == 20
	})
	if why := blockedDeletions(r, "member-1")[0]; !strings.Contains(why, "deleting 20 of the 21 objects") {
		t.Errorf("it says: %s", why)
	}
	for _, m := range d.members {
		if d.configMap(m, "new") == nil || d.configMap(m, "cm-07") == nil {
			t.Errorf("%s: the new object is not there, or an old one is not", m)
		}
	}
	d.commitAllowing("crp/other", githttp.Change{Files: map[string]string{"README.md": "hello"}})
	d.commitAllowing("crp/all", githttp.Change{Files: map[string]string{"README.md": "hello again"}})
	d.eventually("deleted", func() bool { return d.count("member-1") == 1 && d.count("member-3") == 1 })
	d.until("nothing held", func(r *status.Report) bool { return len(blockedDeletions(r, "member-1")) == 0 })
}

// A namespace that contains objects of others is not deleted, not even if they are copies of
// gitfleet's objects, with its label.
func TestDeletionOfANamespaceWithContentIsBlocked(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.startAt(d.repo.Commit(t, "main", map[string]string{
		"app.yaml":       yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "a"),
		"placement.yaml": yamlPlacement("all", d.name, pickAll),
		"rest.yaml":      d.otherPlacement(),
	}))
	ctx := context.Background()
	for member, theirs := range map[string]*corev1.ConfigMap{
		"member-2": {ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: d.name}},
		"member-3": {ObjectMeta: metav1.ObjectMeta{Name: "copy", Namespace: d.name, Labels: map[string]string{api.ManagedByLabel: d.name}}},
	} {
		if _, err := d.clients[member].CoreV1().ConfigMaps(d.name).Create(ctx, theirs, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	d.repo.Remove(t, "main", "app.yaml", "placement.yaml")
	r := d.until("held", func(r *status.Report) bool {
		return len(blockedDeletions(r, "member-2")) == 1 && len(blockedDeletions(r, "member-3")) == 1
	})
	for member, want := range map[string]string{"member-2": "ConfigMap theirs", "member-3": "ConfigMap copy"} {
		if why := blockedDeletions(r, member)[0]; !strings.Contains(why, want) {
			t.Errorf("%s says: %s", member, why)
		}
	}
	ns, err := d.clients["member-2"].CoreV1().Namespaces().Get(ctx, d.name, metav1.GetOptions{})
	if err != nil || ns.DeletionTimestamp != nil {
		t.Errorf("the namespace with a foreign object is being deleted: %v", err)
	}
	if d.configMap("member-2", "one") != nil {
		t.Error("what was ours in it is still there")
	}
	d.commitAllowing("*", githttp.Change{Files: map[string]string{"README.md": "hello"}})
	d.eventually("going", func() bool {
		ns, err := d.clients["member-2"].CoreV1().Namespaces().Get(ctx, d.name, metav1.GetOptions{})
		return err != nil || ns.DeletionTimestamp != nil
	})
}

// A Namespace that is held because it has objects of others is deleted once these are gone:
// without a trailer, and at once after gitfleet sync.
func TestBlockedNamespaceIsDeletedOnceItIsEmpty(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.startAt(d.repo.Commit(t, "main", map[string]string{
		"app.yaml":       yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "a"),
		"placement.yaml": yamlPlacement("all", d.name, pickAll),
		"rest.yaml":      d.otherPlacement(),
	}))
	ctx := context.Background()
	theirs := []string{"member-2", "member-3"}
	for _, m := range theirs {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: d.name}}
		if _, err := d.clients[m].CoreV1().ConfigMaps(d.name).Create(ctx, cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	d.repo.Remove(t, "main", "app.yaml", "placement.yaml")
	d.until("held", func(r *status.Report) bool {
		return len(blockedDeletions(r, "member-2")) == 1 && len(blockedDeletions(r, "member-3")) == 1
	})
	release := func(m string) {
		t.Helper()
		if err := d.clients[m].CoreV1().ConfigMaps(d.name).Delete(ctx, "theirs", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	gone := func(m string) {
		t.Helper()
		d.eventually("the namespace is going on "+m, func() bool {
			ns, err := d.clients[m].CoreV1().Namespaces().Get(ctx, d.name, metav1.GetOptions{})
			return apierrors.IsNotFound(err) || err == nil && ns.DeletionTimestamp != nil
		})
	}
	release("member-2")
	gone("member-2")
	if ns, err := d.clients["member-3"].CoreV1().Namespaces().Get(ctx, d.name, metav1.GetOptions{}); err != nil || ns.DeletionTimestamp != nil {
		t.Errorf("the namespace with a foreign object is being deleted on member-3: %v", err)
	}
	release("member-3")
	d.gitfleet("sync")
	gone("member-3")
	d.until("reported", func(r *status.Report) bool {
		n := 0
		for _, e := range deletionEvents(r) {
			if strings.HasPrefix(e.Message, "Deleted Namespace/"+d.name+":") && slices.Contains(theirs, e.Cluster) {
				n++
			}
		}
		return n == len(theirs)
	})
}

// A namespace is not deleted as long as deletions of objects in it are held.
func TestNamespaceOfBlockedObjectsIsBlocked(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: " + d.name + "}\n" +
		"spec: {accessModes: [ReadWriteOnce], volumeName: " + d.name + ", storageClassName: '', resources: {requests: {storage: 1Gi}}}\n"
	commit := d.repo.Commit(t, "main", map[string]string{
		"app.yaml":       yamlNamespace(d.name) + "---\n" + claim,
		"placement.yaml": yamlPlacement("all", d.name, pickAll),
		"rest.yaml":      d.otherPlacement(),
	})
	d.start()
	d.applied(commit)
	d.repo.Remove(t, "main", "app.yaml", "placement.yaml")
	r := d.until("held", func(r *status.Report) bool { return len(blockedDeletions(r, "member-2")) == 1 })
	if why := blockedDeletions(r, "member-2")[0]; !strings.Contains(why, "the volume "+d.name) {
		t.Errorf("it says: %s", why)
	}
	d.eventually("waits", func() bool {
		log, err := os.ReadFile(d.log.Name())
		return err == nil && bytes.Contains(log, []byte("the Namespace has what stays: PersistentVolumeClaim data"))
	})
	ctx := context.Background()
	ns, err := d.clients["member-2"].CoreV1().Namespaces().Get(ctx, d.name, metav1.GetOptions{})
	if err != nil || ns.DeletionTimestamp != nil {
		t.Errorf("the namespace is going, and the claim with it: %v", err)
	}
	d.commitAllowing("*", githttp.Change{Files: map[string]string{"README.md": "hello"}})
	claims := d.clients["member-2"].CoreV1().PersistentVolumeClaims(d.name)
	d.eventually("the claim is going", func() bool { // nobody here removes the finalizer that protects it
		c, err := claims.Get(ctx, "data", metav1.GetOptions{})
		return err == nil && c.DeletionTimestamp != nil
	})
	if _, err := claims.Patch(ctx, "data", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	d.eventually("going", func() bool {
		ns, err := d.clients["member-2"].CoreV1().Namespaces().Get(ctx, d.name, metav1.GetOptions{})
		return err != nil || ns.DeletionTimestamp != nil
	})
}

// A commit without any placement left is refused; a restart does not change that.
func TestEmptiedRepositoryIsRefused(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	good := d.repo.Commit(t, "main", map[string]string{
		"app.yaml":       yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "a"),
		"placement.yaml": yamlPlacement("all", d.name, pickAll),
	})
	d.startAt(good)
	bad := d.repo.Replace(t, "main", map[string]string{"README.md": "moved elsewhere"})
	refused := func(r *status.Report) bool {
		return r.Source.Newest.Hash == bad && r.Source.InForce.Hash == good && strings.Contains(r.Source.LoadError, "Gitfleet-Allow-Delete")
	}
	d.until("refused", refused)
	d.stop()
	d.start()
	d.until("refused, and the good one in force after a restart", refused)
	if err := d.clients["member-1"].CoreV1().ConfigMaps(d.name).Delete(context.Background(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	d.eventually("restored from the good commit", func() bool { return d.configMap("member-1", "one") != nil })
	for _, m := range d.members {
		if d.configMap(m, "one") == nil {
			t.Errorf("%s: deleted", m)
		}
	}
}
