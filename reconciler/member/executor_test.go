package member

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/decide"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// An object that was not applied because the cluster did not respond is not reported as failed,
// and its condition does not say that the API server has refused it.
func TestUnreachableClusterIsNoFailureOfAnObject(t *testing.T) {
	strategies := map[string]api.ApplyStrategy{
		"written at once": {WhenToTakeOver: api.TakeOverAlways},
		"found missing":   {WhenToTakeOver: api.TakeOverIfNoDiff},
		"only compared":   {Type: api.ReportDiff},
	}
	servers := map[string]struct {
		session func(t *testing.T) *session
		want    string
		failed  bool
	}{
		"closed port": {
			func(t *testing.T) *session { return sessionOf(t, &rest.Config{Host: "http://127.0.0.1:1"}) },
			"the cluster is unreachable: dial tcp 127.0.0.1:1: connect: connection refused", false,
		},
		"broken connection": {
			func(t *testing.T) *session {
				return sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodGet { // a read is retried for seconds
						apiserver.Refuse(w, http.StatusNotFound, "not found")
						return
					}
					panic(http.ErrAbortHandler)
				}))
			},
			"the cluster is unreachable: the connection was closed before the answer was complete", false,
		},
		"no answer any more": {
			func(t *testing.T) *session {
				s := sessionAt(t, apiserver.NewConfigMaps())
				for !s.conn.CutOff() {
					s.conn.RecordResult(errors.New("no answer")) //nolint:errcheck // it is counted
				}
				return s
			},
			"the cluster is unreachable: the API server has stopped answering", false,
		},
		"refused": {
			func(t *testing.T) *session {
				return sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { apiserver.Refuse(w, http.StatusForbidden, "not for you") }))
			},
			"not for you", true,
		},
	}
	for server, test := range servers {
		for strategy, how := range strategies {
			if server == "broken connection" && how.Type == api.ReportDiff {
				continue // for an object that does not exist, no further request is sent
			}
			t.Run(server+", "+strategy, func(t *testing.T) {
				s, m := test.session(t), oneManifest()
				s.cfg.Encoder = apply.NewEncoder("prod", "")
				s.setWorks([]*work.Work{{Placement: web, Strategy: how, Manifests: []*work.Manifest{m}}})
				it := inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "one"}
				s.inventories.owned.Inventory(web).Items.Put(it)
				s.applier.apply(t.Context(), []apply.Task{{Object: desired.Object{Placement: web, Manifest: m}, Res: inventory.ConfigMaps, Item: &it, Found: &apply.Finding{}}}, map[api.PlacementKey]bool{})

				var told protocol.WorkSeen
				s.cfg.Report = func(o protocol.Observation) { told = o.(protocol.WorkSeen) }
				s.reporter.report(t.Context(), web)
				if len(told.Exceptions) != 1 {
					t.Fatalf("the report has %+v", told.Exceptions)
				}
				o := told.Exceptions[0]
				if !strings.Contains(o.Applied.Message(), test.want) || !test.failed && strings.Contains(o.Applied.Message(), "returned by the API server") {
					t.Errorf("it says %q, want %q", o.Applied.Message(), test.want)
				}
				if o.HasFailed() != test.failed {
					t.Errorf("it has failed: %t", o.HasFailed())
				}
			})
		}
	}
}

// A fixture is a session of a simulated cluster whose placement web has the ConfigMap
// default/one, and a client of another user of the cluster.
type fixture struct {
	*session
	manifest *work.Manifest
	user     dynamic.ResourceInterface
}

func newFixture(t *testing.T, w *work.Work) *fixture {
	t.Helper()
	config := simulated.New(simulated.Options{}).Cluster("east").Config()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{session: sessionOf(t, config), manifest: manifestOf(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one", "namespace": "default"}, "data": map[string]any{"key": "git"},
	})}
	f.manifest.Hash = "h"
	f.user = client.Resource(inventory.ConfigMaps.GroupVersionResource).Namespace("default")
	w.Placement, w.Manifests = web, []*work.Manifest{f.manifest}
	f.setWorks([]*work.Work{w})
	return f
}

// create makes the user create the object.
func (f *fixture) create(t *testing.T, manager string, change func(*unstructured.Unstructured)) {
	t.Helper()
	o := f.manifest.Object.Content.DeepCopy()
	if change != nil {
		change(o)
	}
	if _, err := f.user.Create(t.Context(), o, metav1.CreateOptions{FieldManager: manager}); err != nil {
		t.Fatal(err)
	}
}

// edit makes the user merge a patch into the object.
func (f *fixture) edit(t *testing.T, patch string) {
	t.Helper()
	if _, err := f.user.Patch(t.Context(), "one", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
}

// task returns a task of the object with what the inventory has of it. "" is the hash of an object
// that was never applied.
func (f *fixture) task(hash string) apply.Task {
	it := inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "one", Hash: hash}
	return apply.Task{Object: desired.Object{Placement: web, Manifest: f.manifest}, Res: inventory.ConfigMaps, Item: &it}
}

// applied applies the object, and returns the task of the next time.
func (f *fixture) applied(t *testing.T) apply.Task {
	t.Helper()
	o := f.applier.executor().Do(t.Context(), f.task(""))
	if o.Written == nil {
		t.Fatalf("not applied: %+v", o.Cond)
	}
	next := f.task("h")
	next.Item.Managed, next.Item.UID = o.Written.Managed, o.Written.UID
	return next
}

// The executor decides from the strategy, the owner and the state of an object whether it is
// written, and the condition says why it is not.
func TestExecutorOutcomes(t *testing.T) {
	type strategy = api.ApplyStrategy
	always := strategy{WhenToTakeOver: api.TakeOverAlways}
	marked := func(fleet, placement string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{api.ManagedByLabel: fleet})
			o.SetAnnotations(map[string]string{api.PlacementAnnotation: placement})
		}
	}
	owned := func(o *unstructured.Unstructured) {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1"}})
	}
	differs := func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"key": "theirs"} }
	same := func(*unstructured.Unstructured) {}
	const edited = `{"data":{"key":"edited"}}`
	tests := map[string]struct {
		work    work.Work
		live    func(*unstructured.Unstructured) // the object of another user; nil if there is none
		applied bool                             // gitfleet has applied it
		edit    string
		deleted bool              // it was deleted after it was applied
		change  func(*apply.Task) // what is known of the object
		do      diff.Operation
		reason  string // of the condition
		paths   []string
	}{
		"missing":                         {work: work.Work{Strategy: always}, do: diff.Create, reason: api.ManifestApplied},
		"missing, only compared":          {work: work.Work{Strategy: strategy{Type: api.ReportDiff}}, do: diff.Report, reason: api.FoundDiff, paths: []string{"/"}},
		"equal, only compared":            {work: work.Work{Strategy: strategy{Type: api.ReportDiff}}, live: same, do: diff.Report, reason: api.NoDiffFound},
		"different, only compared":        {work: work.Work{Strategy: strategy{Type: api.ReportDiff}}, live: differs, do: diff.Report, reason: api.FoundDiff, paths: []string{"/data/key"}},
		"of another user":                 {work: work.Work{Strategy: always}, live: differs, do: diff.TakeOver, reason: api.ManifestApplied},
		"never taken over":                {work: work.Work{Strategy: strategy{WhenToTakeOver: api.TakeOverNever}}, live: same, do: diff.Refuse, reason: api.NotTakenOver},
		"taken over as it is equal":       {work: work.Work{Strategy: strategy{WhenToTakeOver: api.TakeOverIfNoDiff}}, live: same, do: diff.TakeOver, reason: api.ManifestApplied},
		"not taken over as it differs":    {work: work.Work{Strategy: strategy{WhenToTakeOver: api.TakeOverIfNoDiff}}, live: differs, do: diff.Refuse, reason: api.FailedToTakeOver, paths: []string{"/data/key"}},
		"of another fleet":                {work: work.Work{Strategy: always}, live: marked("test", "crp/web"), do: diff.Refuse, reason: api.FailedToTakeOver},
		"of a deleted placement":          {work: work.Work{Strategy: always}, live: marked("prod", "crp/gone"), do: diff.TakeOver, reason: api.ManifestApplied},
		"with an owner":                   {work: work.Work{Strategy: always}, live: owned, do: diff.Refuse, reason: api.FailedToTakeOver},
		"with an owner, which is allowed": {work: work.Work{Strategy: strategy{WhenToTakeOver: api.TakeOverAlways, AllowCoOwnership: true}}, live: owned, do: diff.TakeOver, reason: api.ManifestApplied},

		"edited":                         {work: work.Work{Strategy: always}, applied: true, edit: edited, change: func(t *apply.Task) { t.Drift = true }, do: diff.Apply, reason: api.ManifestApplied},
		"edited, and drift is protected": {work: work.Work{Strategy: strategy{WhenToTakeOver: api.TakeOverAlways, WhenToApply: api.ApplyIfNotDrifted}}, applied: true, edit: edited, change: func(t *apply.Task) { t.Drift = true }, do: diff.Refuse, reason: api.FoundDrifts, paths: []string{"/data/key"}},
		"without its label":              {work: work.Work{Strategy: always}, applied: true, edit: `{"metadata":{"labels":{"gitfleet.dev/managed-by":null}}}`, change: func(t *apply.Task) { t.Drift = true }, do: diff.Apply, reason: api.ManifestApplied},
		"deleted":                        {work: work.Work{Strategy: always}, applied: true, deleted: true, change: func(t *apply.Task) { t.Drift, t.Absent = true, true }, do: diff.Create, reason: api.ManifestApplied},
		"compared in full":               {work: work.Work{Strategy: strategy{WhenToTakeOver: api.TakeOverAlways, ComparisonOption: api.FullComparison}}, applied: true, edit: `{"data":{"more":"x"}}`, change: func(t *apply.Task) { t.Item.Hash = "older" }, do: diff.Apply, reason: api.ManifestApplied, paths: []string{"/data/more"}},

		"suspended":             {work: work.Work{Strategy: always, Suspended: "by hand"}, applied: true, change: func(t *apply.Task) { t.SuspendedReason, t.Step = "by hand", decide.Observe }, do: diff.NeedRead, reason: api.Suspended},
		"suspended and edited":  {work: work.Work{Strategy: always, Suspended: "by hand"}, applied: true, edit: edited, change: func(t *apply.Task) { t.SuspendedReason, t.Step = "by hand", decide.Observe }, do: diff.NeedRead, reason: api.Suspended, paths: []string{"/data/key"}},
		"suspended and missing": {work: work.Work{Strategy: always, Suspended: "by hand"}, change: func(t *apply.Task) { t.SuspendedReason, t.Step = "by hand", decide.Observe }, do: diff.NeedRead, reason: api.Suspended, paths: []string{"/"}},

		"held":                        {work: work.Work{Strategy: always, Drift: "propose"}, applied: true, edit: edited, change: func(t *apply.Task) { t.Drift, t.Step = true, decide.Hold }, do: diff.Nothing, reason: api.ManifestApplied, paths: []string{"/data/key"}},
		"held, and as in Git again":   {work: work.Work{Strategy: always, Drift: "propose"}, applied: true, change: func(t *apply.Task) { t.Drift, t.Step = true, decide.Hold }, do: diff.Nothing, reason: api.ManifestApplied},
		"held, and without its label": {work: work.Work{Strategy: always, Drift: "propose"}, applied: true, edit: edited, change: func(t *apply.Task) { t.Drift, t.Step, t.Absent = true, decide.Hold, true }, do: diff.Apply, reason: api.ManifestApplied},
		"a deletion that is proposed": {work: work.Work{Strategy: always, Drift: "propose"}, applied: true, deleted: true, change: func(t *apply.Task) {
			t.Drift, t.Step, t.Absent, t.Rule.Mode = true, decide.Hold, true, api.DriftPropose
		}, do: diff.Nothing, reason: api.ManifestApplied},
		"a deletion that is reported":          {work: work.Work{Strategy: always, Drift: "report"}, applied: true, deleted: true, change: func(t *apply.Task) { t.Drift, t.Step, t.Absent, t.Rule.Mode = true, decide.Hold, true, api.DriftReport }, do: diff.Create, reason: api.ManifestApplied},
		"accepted in Git":                      {work: work.Work{Strategy: always}, applied: true, change: func(t *apply.Task) { t.Step, t.Item.Hash = decide.Accept, "older" }, do: diff.Nothing, reason: api.ManifestApplied},
		"not what Git has accepted":            {work: work.Work{Strategy: always}, applied: true, edit: edited, change: func(t *apply.Task) { t.Step, t.Item.Hash = decide.Accept, "older" }, do: diff.Apply, reason: api.ManifestApplied},
		"another object of the name, accepted": {work: work.Work{Strategy: always}, applied: true, change: func(t *apply.Task) { t.Step, t.Item.Hash, t.Item.UID = decide.Accept, "older", "other" }, do: diff.Apply, reason: api.ManifestApplied},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, &test.work)
			next := f.task("")
			if test.live != nil {
				f.create(t, "kubectl-create", test.live)
			}
			if test.applied {
				next = f.applied(t)
			}
			if test.edit != "" {
				f.edit(t, test.edit)
			}
			if test.deleted {
				if err := f.user.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if test.change != nil {
				test.change(&next)
			}
			o := f.applier.executor().Do(t.Context(), next)
			var paths []string
			for _, d := range o.Diffs {
				paths = append(paths, d.Path)
			}
			if o.Err != nil || o.Do != test.do || o.Cond.Reason != test.reason || !slices.Equal(paths, test.paths) {
				t.Errorf("%s %s %q (%v), want %s %s %q", o.Do, o.Cond.Reason, paths, o.Err, test.do, test.reason, test.paths)
			}
			writes := test.do == diff.Create || test.do == diff.Apply || test.do == diff.TakeOver
			if (o.Written != nil) != writes {
				t.Errorf("written: %t", o.Written != nil)
			}
			live, err := f.user.Get(t.Context(), "one", metav1.GetOptions{})
			if writes && (err != nil || live.GetLabels()[api.ManagedByLabel] != "prod" || value(live) != "git") {
				t.Errorf("the cluster has %v (%v)", live, err)
			}
		})
	}
}

// An object that kubectl has applied on the client loses the fields that are not in Git when it
// is taken over: gitfleet becomes the owner of what kubectl applied.
func TestTakeoverFromClientSideApply(t *testing.T) {
	f := newFixture(t, &work.Work{Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverAlways}})
	f.create(t, "kubectl-client-side-apply", func(o *unstructured.Unstructured) {
		o.Object["data"] = map[string]any{"key": "theirs", "more": "x"}
	})
	if o := f.applier.executor().Do(t.Context(), f.task("")); o.Err != nil || o.Written == nil {
		t.Fatalf("not applied: %+v", o.Cond)
	}
	live, err := f.user.Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if data, _, _ := unstructured.NestedStringMap(live.Object, "data"); len(data) != 1 || data["key"] != "git" {
		t.Errorf("the cluster has %v", data)
	}
}

// value returns the data of a ConfigMap under key.
func value(live *unstructured.Unstructured) string {
	v, _, _ := unstructured.NestedString(live.Object, "data", "key")
	return v
}

// What Git has removed and another user has applied too goes with the apply. If drift is only
// reported, it stays, and is a difference of the object until it is gone.
func TestRemovedFieldOfAnotherManager(t *testing.T) {
	for mode, stays := range map[api.DriftMode]bool{api.DriftRevert: false, api.DriftReport: true} {
		t.Run(string(mode), func(t *testing.T) {
			f := newFixture(t, &work.Work{Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverAlways}})
			f.manifest.Object.Content.Object["data"] = map[string]any{"key": "git", "more": "x"}
			next := f.applied(t)
			theirs := f.manifest.Object.Content.DeepCopy()
			if _, err := f.user.Apply(t.Context(), "one", theirs, metav1.ApplyOptions{FieldManager: "kubectl", Force: true}); err != nil {
				t.Fatal(err)
			}
			f.manifest.Object.Content.Object["data"] = map[string]any{"key": "git"}
			next.Item.Hash, next.Rule.Mode = "older", mode
			look := func() []string {
				o := f.applier.executor().Do(t.Context(), next)
				if o.Err != nil || o.Left == nil || (*o.Left != "") != (len(o.Diffs) > 0) || strings.Contains(o.Cond.Message(), "/data/more, owned by kubectl (Apply)") != (len(o.Diffs) > 0) {
					t.Fatalf("%v: left %v, differences %v, %q", o.Err, o.Left, o.Diffs, o.Cond.Message())
				}
				var paths []string
				for _, d := range o.Diffs {
					paths = append(paths, d.Path)
				}
				if o.Written != nil {
					next.Item.Managed = o.Written.Managed
				}
				next.Item.Hash, next.Item.Left = "h", *o.Left
				return paths
			}
			if got := look(); (len(got) == 1) != stays || len(got) > 0 && got[0] != "/data/more" {
				t.Errorf("left: %q", got)
			}
			live, err := f.user.Get(t.Context(), "one", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, there, _ := unstructured.NestedString(live.Object, "data", "more"); there != stays {
				t.Errorf("it is there: %t, want %t", there, stays)
			}
			if !stays {
				return
			}
			// it is looked at again until it is gone
			if got := look(); len(got) != 1 {
				t.Errorf("left afterwards: %q", got)
			}
			f.edit(t, `{"data":{"more":null}}`)
			if got := look(); len(got) != 0 {
				t.Errorf("left although it is gone: %q", got)
			}
		})
	}
}

// What a webhook adds to a list that is owned as a whole is listed, although the list has keys elsewhere.
func TestAdditionToAnAtomicListIsListed(t *testing.T) {
	const stored = `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"one","namespace":"web","uid":"1","managedFields":[
		{"manager":"gitfleet","operation":"Apply","apiVersion":"networking.k8s.io/v1","time":"2026-11-29T10:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:ingress":{}}}}
	]},"spec":{"ingress":[{"ports":[{"port":80,"protocol":"TCP"},{"port":443,"protocol":"TCP"}]}]}}`
	s := sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(stored)) }))
	s.cfg.Encoder = apply.NewEncoder("prod", "")
	id := api.ID{Group: "networking.k8s.io", Kind: "NetworkPolicy", Namespace: "web", Name: "one"}
	m := &work.Manifest{Object: &api.Object{ID: id, Hash: "hash", Content: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": map[string]any{"name": "one", "namespace": "web"},
		"spec": map[string]any{"ingress": []any{map[string]any{"ports": []any{map[string]any{"port": int64(80), "protocol": "TCP"}}}}},
	}}}}
	s.setWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{m}}})
	it := inventory.Item{Group: id.Group, Version: "v1", Kind: id.Kind, Namespace: "web", Name: "one"}
	res := connection.Resource{GroupVersionResource: schema.GroupVersionResource{Group: id.Group, Version: "v1", Resource: "networkpolicies"}, Namespaced: true}
	o := s.applier.executor().Do(t.Context(), apply.Task{Object: desired.Object{Placement: web, Manifest: m}, Res: res, Item: &it, Found: &apply.Finding{}})
	if o.Err != nil || len(o.Altered) != 1 || o.Altered[0].Path != "/spec/ingress/0/ports/-" {
		t.Errorf("%v, altered: %+v", o.Err, o.Altered)
	}
}

// A default of the content before, which an apply leaves, is owned and then set anew by another one.
func TestOutdatedDefaultIsSetAnew(t *testing.T) {
	const stored = `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"one","namespace":"web","uid":"1","resourceVersion":"2","managedFields":[
		{"manager":"gitfleet","operation":"Apply","apiVersion":"networking.k8s.io/v1","time":"2026-11-29T10:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:egress":{},"f:podSelector":{}}}}
	]},"spec":{"podSelector":{},"egress":[{}],"policyTypes":["Ingress"]}}`
	var sent []string
	s := sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if sent = append(sent, strings.TrimSpace(r.Method+" "+r.Header.Get("Content-Type"))); strings.Contains(string(body), `"f:policyTypes"`) {
			sent[len(sent)-1] += " of the types"
		}
		w.Write([]byte(stored))
	}))
	s.cfg.Encoder = apply.NewEncoder("prod", "")
	id := api.ID{Group: "networking.k8s.io", Kind: "NetworkPolicy", Namespace: "web", Name: "one"}
	m := &work.Manifest{Object: &api.Object{ID: id, Hash: "new", Content: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": map[string]any{"name": "one", "namespace": "web"},
		"spec": map[string]any{"podSelector": map[string]any{}, "egress": []any{map[string]any{}}},
	}}}}
	s.setWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{m}}})
	task := apply.Task{
		Object: desired.Object{Placement: web, Manifest: m},
		Res:    connection.Resource{GroupVersionResource: schema.GroupVersionResource{Group: id.Group, Version: "v1", Resource: "networkpolicies"}, Namespaced: true},
		Item:   &inventory.Item{Group: id.Group, Version: "v1", Kind: id.Kind, Namespace: "web", Name: "one"},
		Found:  &apply.Finding{Meta: &metav1.PartialObjectMetadata{}},
	}
	o := s.applier.executor().Do(t.Context(), task)
	want := []string{"PATCH application/apply-patch+yaml", "PATCH application/json-patch+json of the types", "GET", "PATCH application/apply-patch+yaml"}
	if o.Err != nil || !slices.Equal(sent, want) {
		t.Errorf("%v, sent: %q", o.Err, sent)
	}
}

// If the server refuses an object without an item that somebody has renamed or changed, since theirs refers to it, the item goes back to
// its owner and stays. The same goes for what a commit has removed.
func TestItemOfOthersStaysIfItIsNeeded(t *testing.T) {
	content := func(data map[string]any) *work.Manifest {
		m := manifestOf(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one", "namespace": "default"}, "data": data})
		m.Hash = fmt.Sprintf("%d keys", len(data))
		return m
	}
	last, m := content(map[string]any{"key": "git", "renamed": "earlier"}), content(map[string]any{"key": "git"})
	for name, test := range map[string]struct {
		drift bool
		hash  string
		last  *work.Manifest
		want  []string
	}{
		"renamed": {true, m.Hash, nil, []string{"own", "apply", "give back", "apply"}},
		"removed": {false, last.Hash, last, []string{"own", "apply", "give back", "apply", "own", "apply", "give back"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := &itemOfOthers{version: 1}
			server.give()
			s := sessionAt(t, server)
			s.cfg.Encoder = apply.NewEncoder("prod", "")
			s.setWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{m}}})
			task := apply.Task{
				Object: desired.Object{Placement: web, Manifest: m}, Res: inventory.ConfigMaps, Drift: test.drift,
				Item: &inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "one", Hash: test.hash, Managed: "before", UID: "1"},
			}
			task.LastApplied = test.last
			o := s.applier.executor().Do(t.Context(), task)
			if o.Err != nil || o.Written == nil || !slices.Equal(server.sent, test.want) {
				t.Errorf("%v, sent: %q", o.Err, server.sent)
			}
			if left := o.Left != nil && *o.Left != ""; !left {
				t.Error("it is not said that the item stays")
			}
		})
	}
}

// itemOfOthers has a ConfigMap with an item of others that it must not lose.
type itemOfOthers struct {
	owners  string
	version int
	sent    []string
}

const (
	ownedByOthers = `{"manager":"kubectl-edit","operation":"Update","apiVersion":"v1","time":"2026-11-29T11:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:renamed":{}}}}`
	ownedByUs     = `{"manager":"gitfleet","operation":"Apply","apiVersion":"v1","time":"2026-11-29T10:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{%s}}}`
)

// give makes others the owner of the item.
func (f *itemOfOthers) give() { f.owners = fmt.Sprintf(ownedByUs, "") + "," + ownedByOthers }

func (f *itemOfOthers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch kind := r.Header.Get("Content-Type"); {
	case strings.HasPrefix(kind, "application/json-patch") && f.version == 4: // a controller writes meanwhile
		f.version++
		apiserver.Refuse(w, http.StatusConflict, "changed")
		return
	case strings.HasPrefix(kind, "application/json-patch") && strings.Contains(string(body), "kubectl-edit"):
		f.sent = append(f.sent, "give back")
		f.give()
	case strings.HasPrefix(kind, "application/json-patch"):
		f.sent, f.owners = append(f.sent, "own"), fmt.Sprintf(ownedByUs, `"f:renamed":{}`)
	case r.Method == http.MethodPatch:
		if f.sent = append(f.sent, "apply"); !strings.Contains(f.owners, "kubectl-edit") {
			f.version++
			w.WriteHeader(http.StatusUnprocessableEntity)
			w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"it is mounted","details":{"causes":[{"field":"data","message":"it is mounted"}]}}`))
			return
		}
	}
	f.version++
	fmt.Fprintf(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"default","uid":"1","resourceVersion":"%d","labels":{"gitfleet.dev/managed-by":"prod"},`+
		`"annotations":{"gitfleet.dev/placement":"crp/web"},"managedFields":[%s]},"data":{"renamed":"git"}}`, f.version, f.owners)
}
