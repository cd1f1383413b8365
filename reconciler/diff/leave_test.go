package diff

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

func TestLeaveSendsNoFieldThatSomeoneElseOwns(t *testing.T) {
	const image = "/spec/template/spec/containers/0/image"
	tests := map[string]struct {
		pointer string
		do      func(*server)
		field   []string
		want    any // nil if it is not sent
	}{
		"an autoscaler owns it": {"/spec/replicas", func(s *server) { s.scale("hpa", 7) }, []string{"spec", "replicas"}, nil},
		"nobody else owns it":   {"/spec/replicas", func(s *server) {}, []string{"spec", "replicas"}, int64(3)},
		"we own it with another value than the new one": {"/spec/replicas", func(s *server) {
			s.apply(api.FieldManager, strings.Replace(web, "replicas: 3", "replicas: 5", 1))
		}, []string{"spec", "replicas"}, int64(5)},
		"someone removed it": {"/spec/replicas", func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) { delete(o["spec"].(map[string]any), "replicas") })
		}, []string{"spec", "replicas"}, nil},
		"someone owns a part of it": {"/metadata/labels", func(s *server) {
			s.update("kubectl-label", "", func(o map[string]any) { set(s.t, o, "x", "metadata", "labels", "mine") })
		}, []string{"metadata", "labels"}, map[string]any{"tier": "front"}},
		"someone owns a part of a list": {"/spec/template/spec/containers", func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) {
				container(o)["image"] = "nginx:evil"
				variable(o)["value"] = "slow"
				prepend(pod(o), "containers", map[string]any{"name": "proxy", "image": "envoy"})
			})
		}, []string{"image"}, nil},
		"someone owns all of it": {"/metadata/labels", func(s *server) {
			s.update("kubectl-label", "", func(o map[string]any) { set(s.t, o, "x", "metadata", "labels", "tier") })
		}, []string{"metadata", "labels"}, nil},
		"the hub does not set it": {"/spec/paused", func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) { set(s.t, o, true, "spec", "paused") })
		}, []string{"spec", "paused"}, nil},
		"below a field the hub does not set": {"/spec/strategy/type/x", func(s *server) {}, []string{"spec", "paused"}, nil},
		"in an item that has moved": {image, func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) {
				container(o)["image"] = "nginx:evil"
				prepend(pod(o), "containers", map[string]any{"name": "proxy", "image": "envoy"})
			})
		}, []string{"image"}, nil},
		"an item": {"/spec/template/spec/containers/0", func(s *server) {}, []string{"image"}, "nginx:1.27"},
		"in an item that is new": {image, func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) { container(o)["name"] = "other" })
		}, []string{"image"}, "nginx:1.27"},
		"that the hub no longer sets": {"/metadata/labels/extra", func(s *server) {
			s.apply(api.FieldManager, strings.Replace(web, "{tier: front}", "{tier: front, extra: x}", 1))
		}, []string{"metadata", "labels", "extra"}, "x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, web)
			test.do(s)
			desired := object(t, web)
			before, live := desired.DeepCopy(), s.live.DeepCopy()
			sent := leave(t, desired, s.live, test.pointer)
			var got any = sent.Object
			if len(test.field) == 1 {
				got = container(sent.Object)
			}
			for _, key := range test.field {
				got = field(got, key)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("sends %v, want %v", got, test.want)
			}
			if !reflect.DeepEqual(desired, before) || !reflect.DeepEqual(s.live, live) {
				t.Error("an argument was changed")
			}

			// an apply of the result must not change the live values
			for _, d := range Compare(s.dryRunOf(api.FieldManager, sent), s.live, Options{}) {
				if strings.HasPrefix(d.Path+"/", test.pointer+"/") {
					t.Errorf("applying it would change what is to be left alone: %v", d)
				}
			}
		})
	}
}

// leave returns the object that is sent if fields are left.
func leave(t *testing.T, desired, live *unstructured.Unstructured, pointers ...string) *unstructured.Unstructured {
	t.Helper()
	sent, err := Leave(desired, live, pointers, api.FieldManager)
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

func TestLeaveCreatesWithTheValueOfTheHub(t *testing.T) {
	desired := object(t, web)
	if got := leave(t, desired, nil, "/spec/replicas"); !reflect.DeepEqual(got, object(t, web)) {
		t.Errorf("creates %v", got.Object)
	}
}

// A list that the server replaces as a whole is sent with the live values of what is left, in the
// items that Git has, wherever they are.
func TestLeaveCarriesValuesIntoAtomicLists(t *testing.T) {
	const stable, canary = "{destination: stable, weight: 80}", "{destination: canary, weight: 20}"
	const left = "/route/0/weight /route/1/weight"
	tests := map[string]struct{ pointers, git, live, want string }{
		"same items":              {left, "route: [{destination: stable, weight: 100}, {destination: canary, weight: 0}]", "route: [" + stable + ", " + canary + "]", "route: [" + stable + ", " + canary + "]"},
		"another order":           {left, "route: [{destination: canary, weight: 0}, {destination: stable, weight: 100}]", "route: [" + stable + ", " + canary + "]", "route: [" + canary + ", " + stable + "]"},
		"not set in Git":          {left, "route: [{destination: stable}, {destination: canary}]", "route: [" + stable + ", " + canary + "]", "route: [" + stable + ", " + canary + "]"},
		"not set on the member":   {left, "route: [{destination: stable, weight: 100}]", "route: [{destination: stable}]", "route: [{destination: stable}]"},
		"with a default":          {left, "route: [{destination: stable, weight: 100}]", "route: [{destination: stable, weight: 7, protocol: TCP}]", "route: [{destination: stable, weight: 7}]"},
		"an item added first":     {"/route/1/weight", "route: [{destination: new, weight: 1}, {destination: stable, weight: 100}]", "route: [" + stable + "]", "route: [{destination: new, weight: 1}, " + stable + "]"},
		"a new item that is left": {left, "route: [{destination: stable, weight: 100}, {destination: new, weight: 1}]", "route: [" + stable + "]", "route: [" + stable + ", {destination: new, weight: 1}]"},
		"an item removed":         {"/route/0/weight", "route: [{destination: canary, weight: 0}]", "route: [" + stable + ", " + canary + "]", "route: [" + canary + "]"},
		"an item renamed":         {left, "route: [{destination: stable, weight: 100}, {destination: next, weight: 0}]", "route: [" + stable + ", " + canary + "]", "route: [" + stable + ", {destination: next, weight: 20}]"},
		"an item changed": {left, "route: [{destination: stable, weight: 100}, {destination: canary, weight: 0, retries: 3}]", "route: [" + canary + ", " + stable + "]",
			"route: [" + stable + ", {destination: canary, weight: 20, retries: 3}]"},
		"items without a name":     {"/route/0/weight", "route: [{weight: 1, port: 81}]", "route: [{weight: 9, port: 80}]", "route: [{weight: 9, port: 81}]"},
		"equal items":              {left, "route: [{weight: 1}, {weight: 1}]", "route: [{weight: 8}, {weight: 9}]", "route: [{weight: 8}, {weight: 9}]"},
		"no list":                  {left, "route: [{destination: stable, weight: 100}]", "", "route: [{destination: stable, weight: 100}]"},
		"nested":                   {"/http/0/route/1/weight", "http: [{timeout: 9s, route: [{destination: stable}, {destination: canary, weight: 0}]}]", "http: [{timeout: 5s, route: [" + stable + ", " + canary + "]}]", "http: [{timeout: 9s, route: [{destination: stable}, " + canary + "]}]"},
		"a whole item":             {"/route/1", "route: [{destination: stable}, {destination: canary, weight: 0}]", "route: [{destination: other, x: 1}, {destination: stable}]", "route: [{destination: stable}, {destination: other, x: 1}]"},
		"a text":                   {"/hosts/0", "hosts: [a, b]", "hosts: [b, x]", "hosts: [x, b]"},
		"a text beside a new one":  {"/args/1", "args: [serve, --level=1, --more]", "args: [serve, --level=9]", "args: [serve, --level=9, --more]"},
		"a text of several":        {"/args/1", "args: [serve, --level=1, --more]", "args: [serve, --level=9, --most, --less]", ""},
		"a part that Git lacks":    {"/route/0/fault/delay", "route: [{destination: stable}]", "route: [{destination: stable, fault: {delay: 5, abort: 1}}]", "route: [{destination: stable, fault: {delay: 5}}]"},
		"a pointer to nothing":     {"/route/7/weight /route/x /none/0", "route: [{destination: stable, weight: 1}]", "route: [{destination: stable, weight: 2}]", "route: [{destination: stable, weight: 1}]"},
		"another type":             {"/route/0/weight", "route: [{destination: stable, weight: 1}]", "route: {destination: stable}", "route: [{destination: stable, weight: 1}]"},
		"a new and a changed item": {"/route/1/weight", "route: [{port: 80}, {port: 81, weight: 1}]", "route: [{port: 82, weight: 9}]", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			head := "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: one, resourceVersion: '7'}, spec: {"
			live, git := object(t, head+test.live+"}}"), object(t, head+test.git+"}}")
			git.SetResourceVersion("")
			var pointers []string
			for _, p := range strings.Fields(test.pointers) {
				pointers = append(pointers, "/spec"+p)
			}
			sent, err := Leave(git, live, pointers, api.FieldManager)
			if test.want == "" {
				if err == nil || !strings.Contains(err.Error(), pointers[0]) {
					t.Fatalf("sends %v, %v", sent, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := object(t, head+test.want+"}}"); !reflect.DeepEqual(sent.Object, want.Object) {
				t.Errorf("sends %v\nwant  %v", sent.Object, want.Object)
			}
			git.SetAnnotations(map[string]string{api.IgnoreFieldsAnnotation: strings.Join(pointers, ",")})
			if d := Compare(git, live, Options{Structural: true}); d != nil && test.want == test.live {
				t.Errorf("differs: %v", d)
			}
		})
	}
}

func TestNormalizeStoresASecretAsAServerDoes(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"text":                   {"stringData: {a: x}", "data: {a: eA==}"},
		"text wins over data":    {"stringData: {a: x}\ndata: {a: eQ==, b: eQ==}", "data: {a: eA==, b: eQ==}"},
		"empty text":             {"stringData: {a: '', b: null}", "data: {a: '', b: ''}"},
		"broken lines":           {"data: {a: \"eHh4\\neHh4\\n\"}", "data: {a: eHh4eHh4}"},
		"as it should be":        {"data: {a: eA==}", "data: {a: eA==}"},
		"nothing":                {"", ""},
		"no data":                {"data: {}", "data: {}"},
		"not base64":             {"data: {a: '%'}", "data: {a: '%'}"},
		"not text":               {"data: {a: eA==}\nstringData: {a: 1}", "data: {a: eA==}\nstringData: {a: 1}"},
		"not even a map":         {"stringData: [a]", "stringData: [a]"},
		"no text, but it is set": {"data: {a: eA==}\nstringData: {}", "data: {a: eA==}\nstringData: {}"},
	}
	const head = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
	for name, test := range tests {
		in := object(t, head+test.in)
		before := in.DeepCopy()
		if got, want := Normalize(in), object(t, head+test.want); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got.Object, want.Object)
		}
		if !reflect.DeepEqual(in, before) {
			t.Errorf("%s: the argument was changed", name)
		}
	}
	other := object(t, "{apiVersion: v1, kind: ConfigMap, data: {a: x}, stringData: {b: y}}")
	if got := Normalize(other); got != other {
		t.Errorf("another kind became %v", got.Object)
	}
}

func TestNormalizeLeavesUnsetFieldsOut(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"a field":         {"{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1, strategy: null}}", "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1}}"},
		"in a list":       {"{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, livenessProbe: null}, {name: b}]}}", "{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}, {name: b}]}}"},
		"a list":          {"{apiVersion: v1, kind: Pod, spec: {volumes: null, containers: [{name: a, args: [null, b]}]}}", "{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, args: [null, b]}]}}"},
		"an empty value":  {"{apiVersion: v1, kind: Pod, spec: {volumes: [], securityContext: {}}}", "{apiVersion: v1, kind: Pod, spec: {volumes: [], securityContext: {}}}"},
		"a user's key":    {"{apiVersion: v1, kind: ConfigMap, data: {a: null}}", "{apiVersion: v1, kind: ConfigMap, data: {a: null}}"},
		"all data":        {"{apiVersion: v1, kind: ConfigMap, data: null}", "{apiVersion: v1, kind: ConfigMap}"},
		"custom resource": {"{apiVersion: example.com/v1, kind: X, spec: {a: null}}", "{apiVersion: example.com/v1, kind: X, spec: {a: null}}"},
		"a schema":        {"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {openAPIV3Schema: {default: null}}}", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {openAPIV3Schema: {default: null}}}"},
		"container": {
			"{apiVersion: batch/v1, kind: CronJob, spec: {concurrencyPolicy: '', jobTemplate: {spec: {template: {spec: {restartPolicy: '', initContainers: [{name: a, imagePullPolicy: '', command: [], ports: [{containerPort: 1, protocol: ''}], env: [{name: A, value: ''}], livenessProbe: {httpGet: {scheme: '', port: 1}, periodSeconds: 0, initialDelaySeconds: 0}}]}}}}}}",
			"{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {initContainers: [{name: a, command: [], ports: [{containerPort: 1}], env: [{name: A, value: ''}], livenessProbe: {httpGet: {port: 1}, initialDelaySeconds: 0}}]}}}}}}",
		},
		"service": {
			"{apiVersion: v1, kind: Service, spec: {type: '', clusterIP: '', clusterIPs: [], externalName: '', selector: {type: ''}, ports: [{port: 1, targetPort: 0, nodePort: 0, protocol: ''}]}}",
			"{apiVersion: v1, kind: Service, spec: {externalName: '', selector: {type: ''}, ports: [{port: 1}]}}",
		},
		"alternatives":         {"{apiVersion: apps/v1, kind: Deployment, spec: {strategy: {type: ''}, replicas: 0}}", "{apiVersion: apps/v1, kind: Deployment, spec: {strategy: {}, replicas: 0}}"},
		"a value of its own":   {"{apiVersion: v1, kind: PersistentVolumeClaim, spec: {storageClassName: '', volumeName: ''}}", "{apiVersion: v1, kind: PersistentVolumeClaim, spec: {storageClassName: ''}}"},
		"another kind's":       {"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {ingress: [{ports: [{protocol: ''}]}]}}", "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {ingress: [{ports: [{protocol: ''}]}]}}"},
		"an empty custom one":  {"{apiVersion: example.com/v1, kind: Service, spec: {type: ''}}", "{apiVersion: example.com/v1, kind: Service, spec: {type: ''}}"},
		"a type of a Secret":   {"{apiVersion: v1, kind: Secret, type: '', data: {type: ''}}", "{apiVersion: v1, kind: Secret, data: {type: ''}}"},
		"subjects of bindings": {"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, subjects: [{kind: User, apiGroup: '', name: a}], roleRef: {apiGroup: '', kind: Role, name: a}}", "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, subjects: [{kind: User, name: a}], roleRef: {kind: Role, name: a}}"},
	}
	for name, test := range tests {
		in := object(t, test.in)
		before := in.DeepCopy()
		if got, want := Normalize(in), object(t, test.want); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got.Object, want.Object)
		}
		if !reflect.DeepEqual(in, before) {
			t.Errorf("%s: the argument was changed", name)
		}
	}
}

// A probe that becomes null goes with its defaults: an apply that names it would keep those.
func TestANullFieldIsNotOwned(t *testing.T) {
	const head = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: x, livenessProbe: "
	s := newServer(t, head+"{exec: {command: [a]}}}]}\n")
	probe := []string{"livenessProbe", "periodSeconds"}
	container := func() map[string]any {
		return s.live.Object["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	}
	set(t, container(), int64(10), probe...) // a default
	s.live = s.dryRunOf(api.FieldManager, Normalize(object(t, head+"null}]}\n")))
	if left, there := container()["livenessProbe"]; there {
		t.Errorf("the probe is still %v", left)
	}
}
