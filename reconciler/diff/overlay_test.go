package diff

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
)

// foreignEdits are changes of a deployment that people and controllers make.
var foreignEdits = map[string]func(o map[string]any){
	"image":          func(o map[string]any) { container(o)["image"] = "nginx:evil" },
	"a variable":     func(o map[string]any) { variable(o)["value"] = "slow" },
	"a new variable": func(o map[string]any) { prepend(container(o), "env", map[string]any{"name": "DEBUG", "value": "1"}) },
	"no variables":   func(o map[string]any) { delete(container(o), "env") },
	"a new port": func(o map[string]any) {
		prepend(container(o), "ports", map[string]any{"containerPort": int64(80), "protocol": "UDP"})
	},
	"a named port": func(o map[string]any) { container(o)["ports"].([]any)[0].(map[string]any)["name"] = "http" },
	"a sidecar": func(o map[string]any) {
		prepend(pod(o), "containers", map[string]any{"name": "proxy", "image": "envoy"})
	},
	"a volume": func(o map[string]any) {
		prepend(pod(o), "volumes", map[string]any{"name": "tmp", "emptyDir": map[string]any{}})
	},
	"a limit":     func(o map[string]any) { limits(o)["cpu"] = "2" },
	"a new limit": func(o map[string]any) { limits(o)["ephemeral-storage"] = "1Gi" },
	"no limit":    func(o map[string]any) { delete(limits(o), "memory") },
	"a toleration": func(o map[string]any) {
		prepend(pod(o), "tolerations", map[string]any{"key": "gpu", "operator": "Exists"})
	},
	"another order": func(o map[string]any) {
		prepend(container(o), "env", map[string]any{"name": "Z", "value": "7"})
		env := container(o)["env"].([]any)
		container(o)["env"] = append(env[1:], env[0])
	},
	"no tolerations": func(o map[string]any) { delete(pod(o), "tolerations") },
	"replicas":       func(o map[string]any) { o["spec"].(map[string]any)["replicas"] = int64(9) },
	"no strategy":    func(o map[string]any) { unstructured.RemoveNestedField(o, "spec", "strategy") },
	"no replicas":    func(o map[string]any) { unstructured.RemoveNestedField(o, "spec", "replicas") },
	"a label":        func(o map[string]any) { _ = unstructured.SetNestedField(o, "back", "metadata", "labels", "tier") },
	"no label":       func(o map[string]any) { unstructured.RemoveNestedField(o, "metadata", "labels", "tier") },
	"a new label":    func(o map[string]any) { _ = unstructured.SetNestedField(o, "x", "metadata", "labels", "mine") },
	"a selector": func(o map[string]any) {
		_ = unstructured.SetNestedField(o, "x", "spec", "selector", "matchLabels", "more")
	},
	"the strategy": func(o map[string]any) {
		_ = unstructured.SetNestedField(o, int64(2), "spec", "strategy", "rollingUpdate", "maxSurge")
	},
	"a node selector":  func(o map[string]any) { _ = unstructured.SetNestedField(pod(o), "ssd", "nodeSelector", "disk") },
	"a default":        func(o map[string]any) { container(o)["terminationMessagePath"] = "/dev/termination-log" },
	"another strategy": func(o map[string]any) { _ = unstructured.SetNestedField(o, "Recreate", "spec", "strategy", "type") },
}

// commits are changes of the manifest in the meantime.
var commits = map[string]func(o map[string]any){
	"image":          func(o map[string]any) { container(o)["image"] = "nginx:1.28" },
	"a new variable": func(o map[string]any) { prepend(container(o), "env", map[string]any{"name": "LEVEL", "value": "7"}) },
	"no variables":   func(o map[string]any) { delete(container(o), "env") },
	"no strategy":    func(o map[string]any) { unstructured.RemoveNestedField(o, "spec", "strategy") },
	"no replicas":    func(o map[string]any) { unstructured.RemoveNestedField(o, "spec", "replicas") },
	"no labels":      func(o map[string]any) { unstructured.RemoveNestedField(o, "metadata", "labels") },
	"no tolerations": func(o map[string]any) { delete(pod(o), "tolerations") },
	"a toleration": func(o map[string]any) {
		prepend(pod(o), "tolerations", map[string]any{"key": "arm", "operator": "Exists"})
	},
	"no limit": func(o map[string]any) { delete(limits(o), "cpu") },
	"a volume": func(o map[string]any) {
		prepend(pod(o), "volumes", map[string]any{"name": "cache", "emptyDir": map[string]any{}})
	},
}

func pod(o map[string]any) map[string]any {
	spec, _, _ := unstructured.NestedFieldNoCopy(o, "spec", "template", "spec")
	return spec.(map[string]any)
}

func limits(o map[string]any) map[string]any {
	return container(o)["resources"].(map[string]any)["limits"].(map[string]any)
}

func variable(o map[string]any) map[string]any {
	return container(o)["env"].([]any)[0].(map[string]any)
}

func prepend(o map[string]any, list string, item any) {
	old, _ := o[list].([]any)
	o[list] = append([]any{item}, old...)
}

// A structural comparison, which needs no server, finds the differences that a comparison with
// a real dry run finds.
func TestStructuralComparisonAgreesWithADryRun(t *testing.T) {
	for edit, do := range foreignEdits {
		t.Run("edit "+edit, func(t *testing.T) {
			s := newServer(t, web)
			s.update("kubectl-edit", "", do)
			agree(t, s, object(t, web))
		})
	}
	for commit, do := range commits {
		t.Run("commit "+commit, func(t *testing.T) {
			manifest := object(t, web)
			do(manifest.Object)
			agree(t, newServer(t, web), manifest)
		})
	}
	t.Run("random", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			s, manifest := newServer(t, web), object(t, web)
			for _, edit := range drawSome(r, foreignEdits, "edits") {
				s.update("kubectl-edit", "", ifPossible(foreignEdits[edit]))
			}
			for _, commit := range drawSome(r, commits, "commits") {
				ifPossible(commits[commit])(manifest.Object)
			}
			agree(r, s, manifest)
		})
	})
}

func agree(t interface {
	Helper()
	Errorf(format string, args ...any)
}, s *server, manifest *unstructured.Unstructured) {
	t.Helper()
	want := Compare(s.dryRunOf(api.FieldManager, manifest), s.live, Options{})
	got := Compare(manifest, s.live, Options{Structural: true})
	if !slices.Equal(got, want) {
		t.Errorf("Compare:\n got %v\nwant %v", got, want)
	}
}

func drawSome(r *rapid.T, of map[string]func(map[string]any), label string) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(of))), 0, 4, rapid.ID[string]).Draw(r, label)
}

// ifPossible skips an edit whose fields an earlier edit has removed.
func ifPossible(edit func(map[string]any)) func(map[string]any) {
	return func(o map[string]any) {
		defer func() { _ = recover() }()
		edit(o)
	}
}

// Without managed fields, lists are merged by the keys that Kubernetes uses, and defaults that
// a server sets are no differences.
func TestStructuralComparisonWithoutManagedFields(t *testing.T) {
	tests := map[string]struct {
		manifest, live string
		want           []string
	}{
		"a container, somewhere else in the list": {
			"{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: b, image: x}]}}}}",
			"{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: a}, {name: b, image: y, tty: true}]}}}}",
			[]string{"/spec/template/spec/containers/1/image"}},
		"a container that is gone": {
			"{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: b}]}}}}",
			"{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: a}]}}}}",
			[]string{"/spec/template/spec/containers/1"}},
		"a port whose protocol is filled in": {
			"{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}",
			"{apiVersion: v1, kind: Service, spec: {ports: [{port: 80, protocol: UDP}, {port: 80, protocol: TCP, targetPort: 80}]}}", nil},
		"a list of no known keys, longer": {
			"{apiVersion: x/v1, kind: A, spec: {l: [{a: 1}]}}",
			"{apiVersion: x/v1, kind: A, spec: {l: [{a: 1, b: 1}, {a: 2}]}}",
			[]string{"/spec/l/-"}},
		"a list with the name of a known one, but other items": {
			"{apiVersion: x/v1, kind: A, spec: {containers: [a, b]}}",
			"{apiVersion: x/v1, kind: A, spec: {containers: [a, c]}}",
			[]string{"/spec/containers/1"}},
		"a quantity in another way": {
			"{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: 0.5}}}]}}",
			"{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, resources: {limits: {cpu: '1', memory: 1Gi}, requests: {cpu: 500m}}}]}}", nil},
		"a quantity that takes hours to compute": {
			"{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, resources: {limits: {cpu: '1'}}}]}}",
			"{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, resources: {limits: {cpu: '1e2147483647'}}}]}}",
			[]string{"/spec/containers/0/resources/limits/cpu"}},
		"a quantity of a custom resource": {
			"{apiVersion: x/v1, kind: A, spec: {limits: {cpu: 1000m}}}",
			"{apiVersion: x/v1, kind: A, spec: {limits: {cpu: '1'}}}",
			[]string{"/spec/limits/cpu"}},
		"a text that looks like a quantity": {
			"{apiVersion: v1, kind: ConfigMap, data: {sizeLimit: 1000m}}",
			"{apiVersion: v1, kind: ConfigMap, data: {sizeLimit: '1'}}",
			[]string{"/data/sizeLimit"}},
		"empty values that a server drops": {
			"{apiVersion: v1, kind: Pod, spec: {hostNetwork: false, nodeSelector: {}, imagePullSecrets: [], containers: [{name: a, workingDir: ''}]}}",
			"{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}]}}", nil},
		"an empty value of a custom resource": {
			"{apiVersion: x/v1, kind: A, spec: {paused: false, size: 0}}",
			"{apiVersion: x/v1, kind: A, spec: {}}",
			[]string{"/spec/paused", "/spec/size"}},
		"an empty object that means something": {
			"{apiVersion: v1, kind: Pod, spec: {volumes: [{name: v, emptyDir: {}}]}}",
			"{apiVersion: v1, kind: Pod, spec: {volumes: [{name: v, hostPath: {path: /}}]}}",
			[]string{"/spec/volumes/0/emptyDir"}},
		"an empty value of data": {
			"{apiVersion: v1, kind: ConfigMap, data: {a: ''}}",
			"{apiVersion: v1, kind: ConfigMap, data: {b: x}}",
			[]string{"/data/a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range Compare(loose(t, test.manifest), loose(t, test.live), Options{Structural: true}) {
				got = append(got, d.Path)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("differs at %q, want %q", got, test.want)
			}
		})
	}
}

// The merge keys of a list are read from the managed fields, which works for all kinds.
func TestStructuralComparisonLearnsKeysFromManagedFields(t *testing.T) {
	live := loose(t, strings.ReplaceAll(`{apiVersion: x/v1, kind: A, metadata: {managedFields: [{manager: m, operation: Update, fieldsType: FieldsV1,
		fieldsV1: {"f:spec": {"f:routes": {"k:{@id@:7}": {"f:to": {}}, "k:{@id@:8}": {"f:to": {}}}, "f:tags": {"v:@a@": {}, "v:@b@": {}}}}}]},
		spec: {routes: [{id: 7, to: a}, {id: 8, to: b}], tags: [a, b]}}`, "@", `\"`))
	equal := loose(t, "{apiVersion: x/v1, kind: A, spec: {routes: [{id: 8, to: b}], tags: [b]}}")
	if got := Compare(equal, live, Options{Structural: true}); got != nil {
		t.Errorf("part of a list differs: %v", got)
	}
	other := loose(t, "{apiVersion: x/v1, kind: A, spec: {routes: [{id: 8, to: c}, {id: 9}], tags: [c]}}")
	want := []api.PatchDetail{
		{Path: "/spec/routes/2", ValueInHub: "map[id:9]"},
		{Path: "/spec/routes/1/to", ValueInHub: "c", ValueInMember: "b"},
		{Path: "/spec/tags/2", ValueInHub: "c"},
	}
	if got := Compare(other, live, Options{Structural: true}); !slices.Equal(got, want) {
		t.Errorf("Compare:\n got %v\nwant %v", got, want)
	}
}
