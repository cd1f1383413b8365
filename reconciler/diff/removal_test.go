package diff

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// patch carries out a JSON patch.
func (s *server) patch(manager string, raw []byte) {
	s.t.Helper()
	patch, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		s.t.Fatal(err)
	}
	before := s.live.DeepCopy()
	before.SetResourceVersion("1")
	doc, err := json.Marshal(before.Object)
	if err != nil {
		s.t.Fatal(err)
	}
	if doc, err = patch.Apply(doc); err != nil {
		s.t.Fatal(err)
	}
	changed := &unstructured.Unstructured{}
	if err := changed.UnmarshalJSON(doc); err != nil {
		s.t.Fatal(err)
	}
	out, err := s.fields("").Update(s.live.DeepCopy(), changed, manager)
	if err != nil {
		s.t.Fatal(err)
	}
	s.live = out.(*unstructured.Unstructured)
	s.live.SetResourceVersion("")
}

func (s *server) request(manifest string) Request {
	return Request{Desired: object(s.t, manifest), Live: s.live, Manager: api.FieldManager, Force: true}
}

// applyAll applies a manifest, after gitfleet has taken ownership of everything that would be left.
func (s *server) applyAll(manifest string) Removal {
	s.t.Helper()
	r := s.request(manifest)
	gone := RemovedFrom(r, nil).Union(RenamedIn(r, 1))
	if !gone.Empty() {
		raw, err := gone.OwnershipPatch(s.live, api.FieldManager)
		if err != nil {
			s.t.Fatal(err)
		}
		s.patch(api.FieldManager, raw)
	}
	s.apply(api.FieldManager, manifest)
	return gone
}

// What Git removes goes, although others own it too, and what others have added stays.
func TestRemovedFieldsGo(t *testing.T) {
	without := func(lines ...string) string {
		out := web
		for _, line := range lines {
			if !strings.Contains(out, line) {
				t.Fatalf("no %q", line)
			}
			out = strings.Replace(out, line, "", 1)
		}
		return out
	}
	const env = "        env:\n        - {name: MODE, value: fast}\n"
	const limits = "        resources:\n          limits: {cpu: 500m, memory: 1Gi}\n"
	add := func(s *server) {
		s.update("kubectl-edit", "", func(o map[string]any) {
			container(o)["env"] = append(container(o)["env"].([]any), map[string]any{"name": "DEBUG", "value": "1"})
		})
	}
	tests := map[string]struct {
		do       func(*server)
		manifest string
		stays    string // a text that the object still has
		goes     string
	}{
		"nobody else":                         {func(*server) {}, without(env), "", "MODE"},
		"kubectl has applied the same":        {func(s *server) { s.apply("kubectl", web) }, without(env, limits), "", "MODE"},
		"a limit of several":                  {func(s *server) { s.apply("kubectl", web) }, strings.Replace(web, ", memory: 1Gi", "", 1), "500m", "1Gi"},
		"a label":                             {func(s *server) { s.apply("kubectl", web) }, without("  labels: {tier: front}\n"), "", "front"},
		"null":                                {func(s *server) { s.apply("kubectl", web) }, strings.Replace(web, "labels: {tier: front}", "labels: {tier: null}", 1), "", "front"},
		"with what somebody has added beside": {func(s *server) { s.apply("kubectl", web); add(s) }, without(env), "DEBUG", "MODE"},
		"kubectl has applied a part":          {func(s *server) { s.apply("kubectl", without(limits)) }, without(env, limits), "", "MODE"},
		"an autoscaler owns replicas":         {func(s *server) { s.apply("kubectl", web); s.scale("hpa", 7) }, without("  replicas: 3\n"), `"replicas":7`, "nothing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, web)
			test.do(s)
			s.applyAll(test.manifest)
			live := s.live.DeepCopy()
			live.SetManagedFields(nil)
			raw := string(mustJSON(t, live.Object))
			if !strings.Contains(raw, test.stays) || strings.Contains(raw, test.goes) {
				t.Errorf("want %q to stay and %q to go:\n%s", test.stays, test.goes, raw)
			}
			if got := s.dryRun(api.FieldManager, test.manifest); Compare(got, s.live, Options{}) != nil {
				t.Errorf("another apply changes it")
			}
		})
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

const service = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  selector: {app: web}
  ports:
  - {name: http, port: 80, targetPort: 8080}
  - {name: metrics, port: 90, targetPort: 9090}
`

// A list item whose key somebody has changed is put back, and nothing is left beside it.
func TestRenamedItemsGo(t *testing.T) {
	item := func(o map[string]any, i int, path ...string) map[string]any {
		list, _, _ := unstructured.NestedFieldNoCopy(o, path...)
		return list.([]any)[i].(map[string]any)
	}
	tests := map[string]struct {
		manifest string
		edit     func(o map[string]any)
		stays    string
	}{
		"a port of a Service": {service, func(o map[string]any) { item(o, 0, "spec", "ports")["port"] = int64(83) }, ""},
		"both ports": {service, func(o map[string]any) {
			item(o, 0, "spec", "ports")["port"] = int64(83)
			item(o, 1, "spec", "ports")["port"] = int64(93)
		}, ""},
		"ports exchanged": {service, func(o map[string]any) {
			item(o, 0, "spec", "ports")["port"] = int64(90)
			item(o, 1, "spec", "ports")["port"] = int64(80)
		}, ""},
		"a protocol":  {service, func(o map[string]any) { item(o, 0, "spec", "ports")["protocol"] = "UDP" }, ""},
		"a container": {web, func(o map[string]any) { container(o)["name"] = "web2" }, ""},
		"a variable":  {web, func(o map[string]any) { variable(o)["name"] = "MODUS" }, ""},
		"a variable, and another one is added": {web, func(o map[string]any) {
			variable(o)["name"] = "MODUS"
			container(o)["env"] = append(container(o)["env"].([]any), map[string]any{"name": "DEBUG", "value": "1"})
		}, "DEBUG"},
		"a key of a ConfigMap": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {one: x, two: x}\n", func(o map[string]any) {
			data := o["data"].(map[string]any)
			delete(data, "one")
			data["uno"] = "x"
		}, ""},
		"a container port": {web, func(o map[string]any) {
			container(o)["ports"].([]any)[0].(map[string]any)["containerPort"] = int64(8083)
		}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, test.manifest)
			want := s.live.DeepCopy()
			s.update("kubectl-edit", "", test.edit)
			s.applyAll(test.manifest)
			got := Compare(want, s.live, Options{})
			if test.stays == "" && len(got) > 0 {
				t.Errorf("it differs from before: %v", got)
			}
			live := s.live.DeepCopy()
			live.SetManagedFields(nil)
			if raw := string(mustJSON(t, live.Object)); !strings.Contains(raw, test.stays) || strings.Contains(raw, "MODUS") {
				t.Errorf("want %q to stay and nothing else:\n%s", test.stays, raw)
			}
		})
	}
}

// What somebody has changed or added within a part that Git removes does not keep that part there.
func TestRemovedFieldsThatOthersHaveChanged(t *testing.T) {
	edit := func(change func(o map[string]any)) func(*server) {
		return func(s *server) { s.update("kubectl-edit", "", change) }
	}
	probe := func(field string) func(o map[string]any) {
		return func(o map[string]any) { container(o)["livenessProbe"].(map[string]any)[field] = int64(9) }
	}
	value := edit(func(o map[string]any) { variable(o)["value"] = "slow" })
	seconds := edit(func(o map[string]any) { set(t, o, int64(8), "spec", "minReadySeconds") })
	const only = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n"
	applied := func(s *server) { s.apply("flux", only+"  minReadySeconds: 8\n") }
	const probed = "        livenessProbe: {httpGet: {path: /live, port: 80}, periodSeconds: 5}\n"
	const waiting = "  minReadySeconds: 5\n"
	const mode = "        env:\n        - {name: MODE, value: fast}\n"
	before := strings.Replace(strings.Replace(web, mode, mode+probed, 1), "  replicas: 3\n", "  replicas: 3\n"+waiting, 1)
	tests := map[string]struct {
		do                    func(*server)
		removed               string
		forgotten, whole      bool
		keepShared, keepOwned bool
		stays, goes, kept     string
	}{
		"a value of a list item":               {do: value, removed: mode, goes: "MODE"},
		"the same after a restart":             {do: value, removed: mode, forgotten: true, goes: "MODE"},
		"the same, reported":                   {do: value, removed: mode, keepShared: true, goes: "MODE"},
		"the same, without force":              {do: value, removed: mode, keepOwned: true, goes: "MODE", kept: "env"},
		"a scalar":                             {do: seconds, removed: waiting, goes: "minReadySeconds\":8"},
		"a scalar, reported":                   {do: seconds, removed: waiting, keepShared: true, goes: "minReadySeconds\":8"},
		"a scalar, without force":              {do: seconds, removed: waiting, keepOwned: true, stays: "minReadySeconds\":8", kept: "minReadySeconds"},
		"a field of a probe":                   {do: edit(probe("periodSeconds")), removed: probed, goes: "livenessProbe"},
		"a field that was added to a probe":    {do: edit(probe("failureThreshold")), removed: probed, stays: "failureThreshold"},
		"the same, and the server has refused": {do: edit(probe("failureThreshold")), removed: probed, whole: true, goes: "livenessProbe"},
		"a field of a probe, after a restart":  {do: edit(probe("periodSeconds")), removed: probed, whole: true, forgotten: true, goes: "livenessProbe"},
		"a scalar that the control plane has": {do: func(s *server) {
			s.update("kube-controller-manager", "", func(o map[string]any) { set(t, o, int64(8), "spec", "minReadySeconds") })
		}, removed: waiting, stays: "minReadySeconds\":8"},
		"a field that somebody applied instead":             {do: func(s *server) { s.apply("kubectl", strings.Replace(before, "value: fast", "value: slow", 1)) }, removed: mode, keepShared: true, stays: "slow", kept: "env"},
		"a scalar that somebody applied with another value": {do: applied, removed: waiting, goes: "minReadySeconds\":8"},
		"the same scalar, reported":                         {do: applied, removed: waiting, keepShared: true, stays: "minReadySeconds\":8", kept: "minReadySeconds"},
		"the same scalar, without force":                    {do: applied, removed: waiting, keepOwned: true, stays: "minReadySeconds\":8", kept: "minReadySeconds"},
		"the same scalar, after a restart":                  {do: applied, removed: waiting, forgotten: true, stays: "minReadySeconds\":8"},
		"replicas that somebody applied":                    {do: func(s *server) { s.apply("keda", only+"  replicas: 8\n") }, removed: "  replicas: 3\n", stays: "replicas\":8", kept: "replicas"},
		"a probe that somebody applied with another path": {do: func(s *server) {
			s.apply("flux", only+"  template: {spec: {containers: [{name: web, livenessProbe: {httpGet: {path: /other, port: 80}}}]}}\n")
		}, removed: probed, goes: "livenessProbe"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, before)
			test.do(s)
			manifest := strings.Replace(before, test.removed, "", 1)
			r := s.request(manifest)
			r.Before, r.Force, r.KeepShared, r.Whole = object(t, before), !test.keepOwned, test.keepShared, test.whole
			if test.forgotten {
				r.Before = nil
			}
			gone := RemovedFrom(r, nil)
			if !gone.Empty() {
				raw, err := gone.OwnershipPatch(s.live, api.FieldManager)
				if err != nil {
					t.Fatal(err)
				}
				s.patch(api.FieldManager, raw)
			}
			s.apply(api.FieldManager, manifest)
			live := s.live.DeepCopy()
			live.SetManagedFields(nil)
			raw := string(mustJSON(t, live.Object))
			if !strings.Contains(raw, test.stays) || test.goes != "" && strings.Contains(raw, test.goes) {
				t.Errorf("want %q to stay and %q to go:\n%s", test.stays, test.goes, raw)
			}
			if got := string(gone.Kept()); !strings.Contains(got, test.kept) || test.kept == "" && got != "" {
				t.Errorf("reported as left is %q, want %q", got, test.kept)
			}
		})
	}
}

// A field that somebody has changed and that Git removes goes also if the last manifest is not known, as the hash of the fields
// that gitfleet had applied shows that it was one of them. What others have added stays.
func TestChangedFieldsGoWithoutTheLastManifest(t *testing.T) {
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {one: x, two: z}\n"
	const only = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n"
	replicas := func(o map[string]any) { set(t, o, int64(7), "spec", "replicas") }
	label := func(o map[string]any) { set(t, o, "back", "metadata", "labels", "tier") }
	memory := func(o map[string]any) { set(t, container(o), "2Gi", "resources", "limits", "memory") }
	strategy := func(o map[string]any) { set(t, o, int64(2), "spec", "strategy", "rollingUpdate", "maxUnavailable") }
	data := func(o map[string]any) { set(t, o, "by hand", "data", "one") }
	all := func(changes ...func(o map[string]any)) func(*server) {
		return func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) {
				for _, change := range changes {
					change(o)
				}
			})
		}
	}
	tests := map[string]struct {
		before, removed, instead string
		do                       func(*server)
		stays, goes, kept        string
		keepShared               bool
	}{
		"a field":              {before: web, removed: "  strategy:\n    rollingUpdate: {maxUnavailable: 1}\n", do: all(strategy), goes: "maxUnavailable"},
		"the same, reported":   {before: web, removed: "  strategy:\n    rollingUpdate: {maxUnavailable: 1}\n", do: all(strategy), goes: "maxUnavailable", keepShared: true},
		"a label":              {before: web, removed: "  labels: {tier: front}\n", do: all(label), goes: "tier"},
		"within a list item":   {before: web, removed: ", memory: 1Gi", do: all(memory), goes: "memory"},
		"a key":                {before: config, removed: "one: x, ", do: all(data), goes: "by hand"},
		"others that Git has":  {before: web, removed: "  labels: {tier: front}\n", do: all(label, replicas, memory), goes: "tier"},
		"beside an addition":   {before: web, removed: "  labels: {tier: front}\n", do: all(label, func(o map[string]any) { set(t, o, int64(9), "spec", "minReadySeconds") }), stays: "minReadySeconds", goes: "tier"},
		"only an addition":     {before: web, removed: "nginx:1.27", instead: "nginx:1.28", do: all(func(o map[string]any) { set(t, o, int64(9), "spec", "minReadySeconds") }), stays: "minReadySeconds", goes: "1.27"},
		"applied by another":   {before: web, removed: "  labels: {tier: front}\n", do: func(s *server) { s.apply("flux", strings.Replace(only, "shop}", "shop, labels: {tier: back}}", 1)) }, goes: "tier"},
		"the same, kept":       {before: web, removed: "  labels: {tier: front}\n", do: func(s *server) { s.apply("flux", strings.Replace(only, "shop}", "shop, labels: {tier: back}}", 1)) }, stays: "tier", kept: "labels", keepShared: true},
		"beside a deleted one": {before: web, removed: "  labels: {tier: front}\n", do: all(label, func(o map[string]any) { delete(o["spec"].(map[string]any), "replicas") }), stays: "back"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, test.before)
			last := LastApply{Superseded: true, Managed: s.hash()}
			test.do(s)
			last.Drifted = s.hash() != last.Managed
			manifest := strings.Replace(test.before, test.removed, test.instead, 1)
			r := s.request(manifest)
			r.KeepShared = test.keepShared
			gone := Removed(r, last)
			if !gone.Empty() {
				raw, err := gone.OwnershipPatch(s.live, api.FieldManager)
				if err != nil {
					t.Fatal(err)
				}
				s.patch(api.FieldManager, raw)
			}
			s.apply(api.FieldManager, manifest)
			live := s.live.DeepCopy()
			live.SetManagedFields(nil)
			raw := string(mustJSON(t, live.Object))
			if !strings.Contains(raw, test.stays) || test.goes != "" && strings.Contains(raw, test.goes) {
				t.Errorf("want %q to stay and %q to go:\n%s", test.stays, test.goes, raw)
			}
			if got := string(gone.Kept()); !strings.Contains(got, test.kept) || test.kept == "" && got != "" {
				t.Errorf("reported as left is %q, want %q", got, test.kept)
			}
		})
	}
}

// An item that nobody owns, because its list was atomic when it was applied, goes when Git removes it. A
// default, which nobody owns either, stays, and is not reported.
func TestRemovedItemsThatNobodyOwnsGo(t *testing.T) {
	const second = "        - {name: SECOND, value: x}\n"
	before := strings.Replace(web, "        - {name: MODE, value: fast}\n", "        - {name: MODE, value: fast}\n"+second, 1)
	s := newServer(t, web)
	container(s.live.Object)["env"] = append(container(s.live.Object)["env"].([]any), map[string]any{"name": "SECOND", "value": "x"})
	set(t, s.live.Object, int64(0), "spec", "minReadySeconds")
	r := s.request(web)
	r.Before = object(t, strings.Replace(before, "  replicas: 3\n", "  replicas: 3\n  minReadySeconds: 5\n", 1))
	gone := RemovedFrom(r, nil)
	if got := string(gone.All()); !strings.Contains(got, "SECOND") || strings.Contains(got, "minReady") {
		t.Errorf("removed are %q", got)
	}
	raw, err := gone.OwnershipPatch(s.live, api.FieldManager)
	if err != nil {
		t.Fatal(err)
	}
	s.patch(api.FieldManager, raw)
	s.apply(api.FieldManager, web)
	if env := container(s.live.Object)["env"].([]any); len(env) != 1 {
		t.Errorf("the variables are %v", env)
	}
	set(t, s.live.Object, int64(30), "spec", "progressDeadlineSeconds")
	left := Left(`{"f:spec":{"f:progressDeadlineSeconds":{},"f:replicas":{},"f:strategy":{"f:rollingUpdate":{"f:maxUnavailable":{}}}}}`).Owned(s.live)
	if strings.Contains(string(left), "progress") || !strings.Contains(string(left), "replicas") || !strings.Contains(string(left), "maxUnavailable") {
		t.Errorf("owned are %q", left)
	}
}

// From recorded drift only fields that Git had, outside of lists, are known of the last manifest.
func TestRecorded(t *testing.T) {
	live := object(t, web)
	path := func(path, hub string) api.Difference {
		return api.Difference{PatchDetail: api.PatchDetail{Path: path, ValueInHub: hub, ValueInMember: "x"}}
	}
	got := Recorded(live, []api.Difference{
		path("/spec/replicas", "5"), path("/metadata/labels/tier", "back"), path("/spec/strategy", ""), path("/spec/paused", "true"),
		path("/spec/template/spec/containers/0/image", "nginx:1.28"),
	})
	want := `{"metadata":{"labels":{"tier":"front"}},"spec":{"replicas":3}}`
	if raw := string(mustJSON(t, got.Object)); raw != want {
		t.Errorf("it is %s, want %s", raw, want)
	}
	if got := Recorded(live, []api.Difference{path("/spec/paused", "true")}); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

// An item of a set has nothing but its value: one that is in the place of ours goes, and others stay. What
// works for finalizers removes one and adds another.
func TestReplacedItemsOfSetsGo(t *testing.T) {
	tests := map[string]struct {
		field, ours, theirs string // the fields of the set, by owner
		live                string
		goes                bool
	}{
		"replaced":                   {"spec: {hosts: %s}", `{"f:spec":{"f:hosts":{"v:\"b\"":{}}}}`, `{"f:spec":{"f:hosts":{"v:\"aa\"":{}}}}`, "[aa, b]", true},
		"removed, and one was added": {"spec: {hosts: %s}", `{"f:spec":{"f:hosts":{"v:\"b\"":{}}}}`, `{"f:spec":{"f:hosts":{"v:\"x\"":{}}}}`, "[b, x]", false},
		"finalizers":                 {"metadata: {name: x, finalizers: %s}", `{"f:metadata":{"f:finalizers":{"v:\"b\"":{}}}}`, `{"f:metadata":{"f:finalizers":{"v:\"aa\"":{}}}}`, "[aa, b]", false},
	}
	for name, test := range tests {
		head := "apiVersion: example.com/v1\nkind: Gate\n"
		live, desired := object(t, head+strings.Replace(test.field, "%s", test.live, 1)), object(t, head+strings.Replace(test.field, "%s", "[a, b]", 1))
		live.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Manager: api.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(test.ours)},
			{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(test.theirs)},
		})
		gone := RenamedIn(Request{Desired: desired, Live: live, Manager: api.FieldManager, Force: true}, 1)
		if gone.Empty() == test.goes {
			t.Errorf("%s: removes %q", name, gone.All())
		}
	}
}

// What kubectl has applied on the client contradicts nothing that an object sets which is taken over: it goes.
func TestOpposedByClientSideApply(t *testing.T) {
	theirs := object(t, web)
	set(t, theirs.Object, map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": int64(0)}}, "spec", "strategy")
	desired := object(t, web)
	set(t, desired.Object, map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": int64(0)}}, "spec", "strategy")
	for manager, want := range map[string]bool{"kubectl-client-side-apply": true, "kubectl-edit": false} {
		s := &server{t: t, live: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{}}}}
		s.update(manager, "", func(o map[string]any) { maps.Copy(o, theirs.Object) })
		r := Opposed(Request{Desired: desired, Live: s.live, Manager: api.FieldManager, Force: true})
		if got := strings.Contains(string(r.All()), "maxSurge"); got != want {
			t.Errorf("%s: %s", manager, r.All())
		}
	}
}
