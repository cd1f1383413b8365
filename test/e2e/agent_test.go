package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/fleet"
)

// An agent under test, on one real cluster, with all of its requests recorded.
type agent struct {
	t      *testing.T
	fleet  string
	config *rest.Config
	client *kubernetes.Clientset
	sent   *fleet.Recorder

	// adjust changes the configuration of each agent that starts.
	adjust []func(*member.Config)

	*member.Agent
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	seen map[api.PlacementKey]protocol.WorkSeen
	news chan struct{}
}

func newAgent(t *testing.T, adjust ...func(*member.Config)) *agent {
	return newAgentOn(t, fleet.Shared(t).Member("member-1"), adjust...)
}

func newAgentOn(t *testing.T, m fleet.Member, adjust ...func(*member.Config)) *agent {
	client, err := kubernetes.NewForConfig(m.Config)
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{t: t, fleet: fleet.Namespace(t), config: m.Config, client: client, news: make(chan struct{}, 1), adjust: adjust}
	a.start()
	return a
}

// start runs a new agent, as after a restart of the daemon whose ledger is lost.
func (a *agent) start() { a.startWith(protocol.MemberRecord{}) }

// startWith runs a new agent that gets what an earlier one recorded.
func (a *agent) startWith(record protocol.MemberRecord) {
	a.sent = &fleet.Recorder{}
	a.seen = map[api.PlacementKey]protocol.WorkSeen{}
	cfg := member.Config{
		Name: "member-1", Fleet: a.fleet,
		Connect: func(context.Context) (*rest.Config, error) { return a.config, nil },
		Encoder: apply.NewEncoder(a.fleet, "https://git.example.com/fleet"),
		Report:  a.report, Log: slog.New(slog.NewTextHandler(a.t.Output(), nil)),
		Wrap: a.sent.RoundTripper,
	}
	for _, adjust := range a.adjust {
		adjust(&cfg)
	}
	a.Agent = member.New(cfg)
	a.SetRecord(record)
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel, a.done = cancel, make(chan struct{})
	go func(agent *member.Agent, done chan struct{}) {
		defer close(done)
		agent.Run(ctx)
	}(a.Agent, a.done)
	a.t.Cleanup(a.stop)
}

func (a *agent) stop() { a.cancel(); <-a.done }

func (a *agent) report(o protocol.Observation) {
	if w, ok := o.(protocol.WorkSeen); ok {
		a.mu.Lock()
		a.seen[w.Placement] = w
		a.mu.Unlock()
	}
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// until waits until the agent reports a certain status of a placement.
func (a *agent) until(p api.PlacementKey, what string, ok func(protocol.WorkSeen) bool) protocol.WorkSeen {
	a.t.Helper()
	deadline := time.After(time.Minute)
	for {
		a.mu.Lock()
		w := a.seen[p]
		a.mu.Unlock()
		if ok(w) {
			return w
		}
		select {
		case <-a.news:
		case <-deadline:
			a.t.Fatalf("%s: not %s; last seen: %+v", p, what, w)
		}
	}
}

func (a *agent) applied(p api.PlacementKey, hash string) {
	a.t.Helper()
	a.until(p, "applied at "+hash, func(w protocol.WorkSeen) bool { return w.Revision.Hash == hash && w.Applied() })
}

// eventually waits until a condition about the cluster is true.
func (a *agent) eventually(what string, ok func() (bool, error)) {
	a.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		done, err := ok()
		if done {
			return
		}
		if time.Now().After(deadline) {
			a.t.Fatalf("not %s: %v", what, err)
		}
	}
}

// writes returns the object requests that change something, in short form. Reviews of permissions change nothing.
func (a *agent) writes() []string {
	var out []string
	for _, q := range a.sent.Objects() {
		if q.Method != http.MethodGet && !q.Query.Has("dryRun") && q.Path != "/"+connection.AccessReviews {
			out = append(out, q.Method+" "+q.Path)
		}
	}
	return out
}

func split(writes []string) (objects, inventories []string) {
	for _, w := range writes {
		if strings.Contains(w, "/gitfleet-system") {
			inventories = append(inventories, w)
		} else {
			objects = append(objects, w)
		}
	}
	return objects, inventories
}

func configMap(namespace, name, value string) *work.Manifest {
	return manifest(value, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"data":     map[string]any{"key": value, "other": "same"},
	})
}

func namespaceOf(name string) *work.Manifest {
	return manifest("", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}})
}

func manifest(hash string, o map[string]any) *work.Manifest {
	u := &unstructured.Unstructured{Object: o}
	return &work.Manifest{Object: &api.Object{
		ID: api.IDOf(u), Content: u, Hash: "hash of " + hash, Origin: api.Origin{Path: "apps/" + u.GetName() + ".yaml"},
	}}
}

func workOf(name, hash string, ms ...*work.Manifest) *work.Work {
	return &work.Work{
		Placement: api.PlacementKey{Name: name}, Revision: placement.Revision{Commit: "c-" + hash, Hash: hash},
		Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverAlways, WhenToApply: api.ApplyAlways}, Manifests: ms,
	}
}

func many(namespace string, n int, value string) []*work.Manifest {
	ms := []*work.Manifest{namespaceOf(namespace)}
	for i := range n {
		ms = append(ms, configMap(namespace, fmt.Sprintf("cm-%03d", i), value))
	}
	return ms
}

// A new object is applied once, a changed one takes one request, an unchanged one none, and
// exactly the objects that are no longer in the work are deleted.
func TestAgentSendsNoNeedlessRequests(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key := fleet.Namespace(t), api.PlacementKey{Name: "web"}
	ms := many(ns, 20, "a")
	a.Set([]*work.Work{workOf("web", "1", ms...)})
	a.applied(key, "1")
	objects, inventories := split(a.writes())
	if len(objects) != len(ms) {
		t.Errorf("first sync of %d objects: %d writes: %v", len(ms), len(objects), objects)
	}
	// The first attempt finds no namespace for it, the second adds the objects, the third
	// records what was done.
	if len(inventories) > 4 {
		t.Errorf("first sync: %d inventory writes: %v", len(inventories), inventories)
	}

	changed := append([]*work.Manifest{}, ms...)
	changed[7] = configMap(ns, "cm-006", "b")
	a.sent.Reset()
	a.Set([]*work.Work{workOf("web", "2", changed...)})
	a.applied(key, "2")
	objects, inventories = split(a.writes())
	if want := "PATCH /api/v1/namespaces/" + ns + "/configmaps/cm-006"; len(objects) != 1 || objects[0] != want {
		t.Errorf("one changed object: %v, want %s", objects, want)
	}
	if len(inventories) > 1 {
		t.Errorf("one changed object: inventory writes %v", inventories)
	}

	a.sent.Reset()
	a.Set([]*work.Work{workOf("web", "3", changed[:len(changed)-1]...)})
	a.applied(key, "3")
	objects, _ = split(a.writes())
	if want := "DELETE /api/v1/namespaces/" + ns + "/configmaps/cm-019"; len(objects) != 1 || objects[0] != want {
		t.Errorf("one object gone: %v, want %s", objects, want)
	}
}

// A restart without changes reads, and writes nothing.
func TestAgentRestartsWithoutWrites(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key := fleet.Namespace(t), api.PlacementKey{Name: "web"}
	w := workOf("web", "1", many(ns, 10, "a")...)
	a.Set([]*work.Work{w})
	a.applied(key, "1")
	a.eventually("inventory written", func() (bool, error) { return a.inventoryHas("c-1"), nil })
	a.stop()
	a.start()
	a.Set([]*work.Work{w})
	a.applied(key, "1")
	if got := a.writes(); len(got) > 0 {
		t.Errorf("writes after a restart: %v", got)
	}
}

// inventoryHas reports whether the last write of the inventory is over.
func (a *agent) inventoryHas(string) bool {
	list, err := a.client.CoreV1().ConfigMaps(api.Namespace).List(context.Background(), metav1.ListOptions{LabelSelector: api.ManagedByLabel + "=" + a.fleet})
	return err == nil && len(list.Items) == 1
}

// Every change to an owned field is reverted at once, by one request; fields that others add
// stay.
func TestAgentRevertsDrift(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key := fleet.Namespace(t), api.PlacementKey{Name: "web"}
	cms := a.client.CoreV1().ConfigMaps(ns)
	a.Set([]*work.Work{workOf("web", "1", many(ns, 20, "a")...)})
	a.applied(key, "1")
	ctx := context.Background()

	tampers := map[string]func(cm string) error{
		"edit": func(cm string) error {
			_, err := cms.Patch(ctx, cm, types.MergePatchType, []byte(`{"data":{"key":"tampered"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
			return err
		},
		"remove a field": func(cm string) error {
			_, err := cms.Patch(ctx, cm, types.MergePatchType, []byte(`{"data":{"key":null}}`), metav1.PatchOptions{})
			return err
		},
		"delete": func(cm string) error { return cms.Delete(ctx, cm, metav1.DeleteOptions{}) },
		"take our label off": func(cm string) error {
			_, err := cms.Patch(ctx, cm, types.MergePatchType, []byte(`{"metadata":{"labels":{"`+api.ManagedByLabel+`":null}},"data":{"key":"x"}}`), metav1.PatchOptions{})
			return err
		},
		"forced apply by another manager": func(cm string) error {
			_, err := cms.Patch(ctx, cm, types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+cm+`","namespace":"`+ns+`"},"data":{"key":"y"}}`), metav1.PatchOptions{FieldManager: "rival", Force: new(true)})
			return err
		},
	}
	// Each case has its own object: repeated reverts of the same object are delayed.
	n := 0
	for name, tamper := range tampers {
		cm := fmt.Sprintf("cm-%03d", 10+n)
		n++
		t.Run(name, func(t *testing.T) {
			a.sent.Reset()
			if err := tamper(cm); err != nil {
				t.Fatal(err)
			}
			a.eventually("restored", func() (bool, error) {
				got, err := cms.Get(ctx, cm, metav1.GetOptions{})
				return err == nil && got.Data["key"] == "a" && got.Labels[api.ManagedByLabel] == a.fleet, err
			})
			a.eventually("settled", func() (bool, error) {
				objects, _ := split(a.writes())
				return len(objects) == 1, fmt.Errorf("%v", objects)
			})
		})
	}

	a.sent.Reset()
	if _, err := cms.Patch(ctx, "cm-002", types.MergePatchType, []byte(`{"data":{"theirs":"1"},"metadata":{"labels":{"theirs":"1"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := cms.Patch(ctx, "cm-001", types.MergePatchType, []byte(`{"data":{"key":"last"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	a.eventually("the later change reverted", func() (bool, error) { objects, _ := split(a.writes()); return len(objects) > 0, nil })
	if objects, _ := split(a.writes()); len(objects) != 1 || !strings.HasSuffix(objects[0], "cm-001") {
		t.Errorf("a request because of a field of another manager: %v", objects)
	}
}

// An object that moves from one placement to another is not deleted. Exactly those objects are
// deleted that no placement has any more.
func TestObjectMovesToAnotherPlacement(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns := fleet.Namespace(t)
	x, y := configMap(ns, "x", "a"), configMap(ns, "y", "a")
	a.Set([]*work.Work{workOf("one", "1", namespaceOf(ns), x, y)})
	a.applied(api.PlacementKey{Name: "one"}, "1")
	before, err := a.client.CoreV1().ConfigMaps(ns).Get(context.Background(), "x", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a.Set([]*work.Work{workOf("one", "2", namespaceOf(ns)), workOf("two", "1", x)})
	a.applied(api.PlacementKey{Name: "one"}, "2")
	a.applied(api.PlacementKey{Name: "two"}, "1")
	after, err := a.client.CoreV1().ConfigMaps(ns).Get(context.Background(), "x", metav1.GetOptions{})
	if err != nil || after.UID != before.UID {
		t.Errorf("the object was not handed over: %v", err)
	}
	if got := after.Annotations[api.PlacementAnnotation]; got != "crp/two" {
		t.Errorf("it says it belongs to %s", got)
	}
	if _, err := a.client.CoreV1().ConfigMaps(ns).Get(context.Background(), "y", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("an unwanted object still exists: %v", err)
	}
	// The namespace is not deleted as long as another placement has objects in it.
	a.Set([]*work.Work{{Placement: api.PlacementKey{Name: "one"}, Remove: true}, workOf("two", "2", x)})
	a.applied(api.PlacementKey{Name: "two"}, "2")
	if got, err := a.client.CoreV1().Namespaces().Get(context.Background(), ns, metav1.GetOptions{}); err != nil || got.DeletionTimestamp != nil {
		t.Errorf("the namespace goes, and with it what is wanted there: %v", err)
	}
	a.Set([]*work.Work{{Placement: api.PlacementKey{Name: "one"}, Remove: true}, {Placement: api.PlacementKey{Name: "two"}, Remove: true}})
	a.until(api.PlacementKey{Name: "one"}, "waiting for the namespace", func(w protocol.WorkSeen) bool { return len(w.Unusual().Lingering) == 1 && !w.Removed })
	finalizeNamespace(t, a.client, ns)
	a.until(api.PlacementKey{Name: "one"}, "removed", func(w protocol.WorkSeen) bool { return w.Removed })
}

// An object that cannot be applied does not prevent the others, and reports why; once the cause
// is gone, it is applied without another commit.
func TestFailedObjectAffectsNoOther(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key := fleet.Namespace(t), api.PlacementKey{Name: "web"}
	missing := ns + "-missing"
	a.Set([]*work.Work{workOf("web", "1", namespaceOf(ns), configMap(ns, "fine", "a"), configMap(missing, "lost", "a"))})
	w := a.until(key, "tried", func(w protocol.WorkSeen) bool { return w.Done })
	if len(w.Exceptions) != 1 || w.Exceptions[0].ID.Name != "lost" {
		t.Fatalf("exceptions: %+v", w.Exceptions)
	}
	got := w.Exceptions[0].Applied
	if want := `Failed to apply the manifest (error: failed to apply the manifest: failed to create manifest object: error returned by the API server: namespaces "` + missing + `" not found)`; got.Message() != want || got.Reason != api.ManifestApplyFailed {
		t.Errorf("%s: %s\nwant %s", got.Reason, got.Message(), want)
	}
	if _, err := a.client.CoreV1().ConfigMaps(ns).Get(context.Background(), "fine", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	a.Set([]*work.Work{workOf("web", "2", namespaceOf(ns), configMap(ns, "fine", "a"), namespaceOf(missing), configMap(missing, "lost", "a"))})
	a.applied(key, "2")
}

// A second writer that keeps reverting gitfleet's changes is detected: the third time in a row
// the object is left alone for a while, and the report names the other manager.
func TestAgentReportsContestedObjects(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key := fleet.Namespace(t), api.PlacementKey{Name: "web"}
	a.Set([]*work.Work{workOf("web", "1", many(ns, 1, "a")...)})
	a.applied(key, "1")
	cms := a.client.CoreV1().ConfigMaps(ns)
	for i := range 3 {
		a.eventually("ours", func() (bool, error) {
			cm, err := cms.Get(context.Background(), "cm-000", metav1.GetOptions{})
			return err == nil && cm.Data["key"] == "a", err
		})
		patch := fmt.Sprintf(`{"data":{"key":"theirs %d"}}`, i)
		if _, err := cms.Patch(context.Background(), "cm-000", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "rival-controller"}); err != nil {
			t.Fatal(err)
		}
	}
	w := a.until(key, "contested", func(w protocol.WorkSeen) bool {
		return len(w.Exceptions) == 1 && w.Exceptions[0].Applied.Reason == api.Contested
	})
	if got := w.Exceptions[0].Applied.Message(); !strings.Contains(got, "rival-controller") {
		t.Errorf("it says: %s", got)
	}
	if cm, err := cms.Get(context.Background(), "cm-000", metav1.GetOptions{}); err != nil || cm.Data["key"] != "theirs 2" {
		t.Errorf("reverted at once: %v %v", cm.Data, err)
	}
}

// When a cluster leaves the fleet, its objects stay, without an owner.
func TestAgentReleasesItsObjectsWhenAClusterLeaves(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key := fleet.Namespace(t), api.PlacementKey{Name: "web"}
	a.Set([]*work.Work{workOf("web", "1", many(ns, 3, "a")...)})
	a.applied(key, "1")
	select {
	case <-a.Leave():
	case <-time.After(time.Minute):
		t.Fatal("never left")
	}
	cm, err := a.client.CoreV1().ConfigMaps(ns).Get(context.Background(), "cm-001", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if cm.Data["key"] != "a" || len(cm.Labels) > 0 || len(cm.Annotations) > 0 {
		t.Errorf("left behind: %v %v %v", cm.Data, cm.Labels, cm.Annotations)
	}
	for _, e := range cm.ManagedFields {
		if e.Manager == api.FieldManager {
			t.Errorf("our field manager still owns %s", e.FieldsV1)
		}
	}
	if a.inventoryHas("") {
		t.Error("the inventory is still there")
	}
}

// Fields that kubectl applied on the client side before gitfleet, and that the manifest does
// not have, are removed when the object is taken over.
func TestFieldsOfClientSideApplyAreTakenOver(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key := fleet.Namespace(t), api.PlacementKey{Name: "web"}
	ctx := context.Background()
	if _, err := a.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	old := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "cm-000", Namespace: ns, Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{},"name":"cm-000","namespace":"` + ns + `"},"data":{"key":"old","stale":"yes"}}`,
		}},
		Data: map[string]string{"key": "old", "stale": "yes"},
	}
	if _, err := a.client.CoreV1().ConfigMaps(ns).Create(ctx, old, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"}); err != nil {
		t.Fatal(err)
	}
	a.Set([]*work.Work{workOf("web", "1", many(ns, 1, "a")...)})
	a.applied(key, "1")
	cm, err := a.client.CoreV1().ConfigMaps(ns).Get(ctx, "cm-000", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, stale := cm.Data["stale"]; stale || cm.Data["key"] != "a" {
		t.Errorf("data after takeover: %v", cm.Data)
	}
}
