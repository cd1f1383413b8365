package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

func TestCompareListsWhatTurnsHubIntoMember(t *testing.T) {
	type list = []api.PatchDetail
	tests := map[string]struct {
		hub, member string
		want        list
	}{
		"equal": {`{kind: A, spec: {a: 1}}`, `{kind: A, spec: {a: 1}}`, nil},
		"a label on the member": {`{kind: A}`, `{kind: A, metadata: {labels: {foo: bar}}}`,
			list{{Path: "/metadata/labels/foo", ValueInMember: "bar"}}},
		"an annotation on the member, of others on both": {`{metadata: {annotations: {a: b}}}`, `{metadata: {annotations: {a: b, c: d}}}`,
			list{{Path: "/metadata/annotations/c", ValueInMember: "d"}}},
		"a field not set": {`{spec: {strategy: {type: Recreate}}}`, `{spec: {strategy: {}}}`,
			list{{Path: "/spec/strategy/type", ValueInHub: "Recreate"}}},
		"a value": {`{kind: ConfigMap, data: {data: test}}`, `{kind: ConfigMap, data: {data: foo}}`,
			list{{Path: "/data/data", ValueInHub: "test", ValueInMember: "foo"}}},
		"a number": {`{spec: {ports: [{port: 80}]}}`, `{spec: {ports: [{port: 8080}]}}`,
			list{{Path: "/spec/ports/0/port", ValueInHub: "80", ValueInMember: "8080"}}},
		"an object": {`{spec: {selector: {app: nginx, b: "1"}}}`, `{spec: {}}`,
			list{{Path: "/spec/selector", ValueInHub: "map[app:nginx b:1]"}}},
		"a list": {`{spec: {ports: [{targetPort: 8080, name: http, port: 80, protocol: TCP}]}}`, `{spec: {}}`,
			list{{Path: "/spec/ports", ValueInHub: "[map[name:http port:80 protocol:TCP targetPort:8080]]"}}},
		"more items in the hub, removed first and by their own index": {
			`{spec: {ports: [{name: a, port: 1}, {name: b, port: 2}, {name: c, port: 3}, {name: d, port: 4}]}}`,
			`{spec: {ports: [{name: a, port: 1}, {name: x, port: 9}]}}`,
			list{{Path: "/spec/ports/2", ValueInHub: "map[name:c port:3]"},
				{Path: "/spec/ports/3", ValueInHub: "map[name:d port:4]"},
				{Path: "/spec/ports/1/name", ValueInHub: "b", ValueInMember: "x"},
				{Path: "/spec/ports/1/port", ValueInHub: "2", ValueInMember: "9"}}},
		"more items in the member, added last": {`{spec: {l: [a]}}`, `{spec: {l: [b, c, d]}}`,
			list{{Path: "/spec/l/0", ValueInHub: "a", ValueInMember: "b"},
				{Path: "/spec/l/-", ValueInMember: "c"}, {Path: "/spec/l/-", ValueInMember: "d"}}},
		"finalizers in the spec": {`{kind: Namespace}`, `{kind: Namespace, spec: {finalizers: [kubernetes]}}`,
			list{{Path: "/spec", ValueInMember: "map[finalizers:[kubernetes]]"}}},
		"another type": {`{spec: {a: {b: c}}}`, `{spec: {a: [b, c]}}`,
			list{{Path: "/spec/a", ValueInHub: "map[b:c]", ValueInMember: "[b c]"}}},
		"text and number": {`{spec: {a: "1"}}`, `{spec: {a: 1}}`,
			list{{Path: "/spec/a", ValueInHub: "1", ValueInMember: "1"}}},
		"large and small numbers": {`{spec: {a: 10000000, b: 1e20, c: 0.5, d: 1e21}}`, `{spec: {a: 9007199254740993, b: 2e20, c: 1.25, d: 2e21}}`,
			list{{Path: "/spec/a", ValueInHub: "10000000", ValueInMember: "9007199254740993"},
				{Path: "/spec/b", ValueInHub: "100000000000000000000", ValueInMember: "200000000000000000000"},
				{Path: "/spec/c", ValueInHub: "0.5", ValueInMember: "1.25"},
				{Path: "/spec/d", ValueInHub: "1e+21", ValueInMember: "2e+21"}}},
		"one number written in two ways": {`{spec: {a: 1}}`, `{spec: {a: 1.0}}`, nil},
		"null is nothing":                {`{spec: {a: null, b: {c: null}}}`, `{spec: {b: {}}}`, nil},
		"keys that need escaping": {`{spec: {"a/b~c": 1}}`, `{spec: {"a/b~c": 2}}`,
			list{{Path: "/spec/a~1b~0c", ValueInHub: "1", ValueInMember: "2"}}},
		"sorted": {`{spec: {c: 1, a: 1}}`, `{spec: {b: 1, a: 2}}`,
			list{{Path: "/spec/a", ValueInHub: "1", ValueInMember: "2"},
				{Path: "/spec/b", ValueInMember: "1"}, {Path: "/spec/c", ValueInHub: "1"}}},
		"what only a server, Kubernetes, KubeFleet or gitfleet writes": {
			`{kind: Deployment, metadata: {name: a, namespace: b, labels: {app.kubernetes.io/name: x}}, spec: {template: {metadata: {creationTimestamp: null}}}}`,
			`{kind: Deployment, metadata: {name: a2, namespace: b2, generateName: x, uid: u, resourceVersion: "7", generation: 3, selfLink: s,
			   creationTimestamp: t, deletionTimestamp: t, deletionGracePeriodSeconds: 3, finalizers: [x], ownerReferences: [{name: x}],
			   managedFields: [], labels: {gitfleet.dev/managed-by: f, x.k8s.io/y: z}, annotations: {gitfleet.dev/commit: c,
			   kubernetes-fleet.io/spec-hash: h, deployment.kubernetes.io/revision: "1"}},
			  spec: {template: {metadata: {creationTimestamp: t}}, jobTemplate: {spec: {template: {metadata: {creationTimestamp: t}}}}}, status: {x: y}}`,
			list{{Path: "/spec/jobTemplate", ValueInMember: "map[spec:map[template:map[metadata:map[]]]]"}}},
		"a reserved label of a template counts": {`{spec: {template: {metadata: {labels: {x.k8s.io/y: z}}}}}`, `{spec: {template: {metadata: {labels: {}}}}}`,
			list{{Path: "/spec/template/metadata/labels/x.k8s.io~1y", ValueInHub: "z"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Compare(loose(t, test.hub), loose(t, test.member), Options{})
			if !slices.Equal(got, test.want) {
				t.Errorf("Compare:\n got %v\nwant %v", got, test.want)
			}
		})
	}
}

func TestCompareWithAnObjectThatDoesNotExist(t *testing.T) {
	o := loose(t, "kind: A")
	if got := Compare(o, nil, Options{}); !slices.Equal(got, []api.PatchDetail{{Path: "/", ValueInHub: "(the whole object)"}}) {
		t.Errorf("missing in the member: %v", got)
	}
	if got := Compare(nil, o, Options{}); !slices.Equal(got, []api.PatchDetail{{Path: "/", ValueInMember: "(the whole object)"}}) {
		t.Errorf("missing in the hub: %v", got)
	}
	if got := Compare(nil, nil, Options{}); got != nil {
		t.Errorf("missing in both: %v", got)
	}
}

func TestCompareListsNoMoreThanTheLimit(t *testing.T) {
	for _, n := range []int{1, 99, 100, 101, 250} {
		hub, member := loose(t, "kind: A"), loose(t, "kind: A")
		data := map[string]any{}
		for i := range n {
			data[fmt.Sprintf("k%03d", i)] = "v"
		}
		member.Object["data"] = data
		hub.Object["data"] = map[string]any{}
		got := Compare(hub, member, Options{})
		if len(got) != min(n, Limit) {
			t.Errorf("%d differences give %d entries", n, len(got))
		}
		want := api.PatchDetail{Path: fmt.Sprintf("/data/k%03d", n-1), ValueInMember: "v"}
		if n > Limit {
			want = api.PatchDetail{Path: fmt.Sprintf("/data/k099 and %d more", n-Limit), ValueInHub: "(omitted)", ValueInMember: "(omitted)"}
		}
		if last := got[len(got)-1]; last != want {
			t.Errorf("%d differences end with %v, want %v", n, last, want)
		}
	}
}

// The values of Secrets are masked, wherever they occur.
func TestCompareNeverShowsASecret(t *testing.T) {
	const canary, encoded = "sw0rdfish-canary", "c3cwcmRmaXNoLWNhbmFyeQ=="
	secret := func(format string, args ...any) *unstructured.Unstructured {
		return object(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"+fmt.Sprintf(format, args...))
	}
	none := secret("")
	tests := map[string]struct {
		hub, member *unstructured.Unstructured
		want        string // the entries in short form
	}{
		"in the member": {none, secret("data: {p: %s}", encoded), "/data <> <" + Mask + ">"},
		"in the hub":    {secret("data: {p: %s}", encoded), none, "/data <" + Mask + "> <>"},
		"beside others": {secret("data: {a: eA==}"), secret("data: {a: eA==, p: %s}", encoded), "/data/p <> <" + Mask + ">"},
		"changed":       {secret("data: {p: eA==}"), secret("data: {p: %s}", encoded), "/data/p <" + Mask + "> <" + Mask + ">"},
		"emptied":       {secret("data: {p: %s}", encoded), secret("data: {p: ''}"), "/data/p <" + Mask + "> <>"},
		"as text in the hub": {secret("stringData: {p: %s}", canary), secret("data: {p: eA==}"),
			"/data/p <" + Mask + "> <" + Mask + ">"},
		"as text in the member": {none, secret("stringData: {p: %s}", canary), "/stringData <> <" + Mask + ">"},
		"as a wrong type": {secret("stringData: [%s]", canary), secret("stringData: {p: {q: %s}}", canary),
			"/stringData <" + Mask + "> <" + Mask + ">"},
		"repeated in an annotation": {none, secret("data: {p: %s}\nmetadata: {annotations: {note: 'was %s, or %s'}}", encoded, canary, encoded),
			"/data <> <" + Mask + ">; /metadata/annotations/note <> <was " + Mask + ", or " + Mask + ">"},
		"kept by a tool": {none, secret("metadata: {annotations: {kapp.k14s.io/original: '{\"data\":{\"p\":\"%s\"}}', my/last-applied: %s}}", encoded, canary),
			"/metadata/annotations/kapp.k14s.io~1original <> <" + Mask + ">; /metadata/annotations/my~1last-applied <> <" + Mask + ">"},
		"inside another object": {
			object(t, "{apiVersion: x/v1, kind: Object, spec: {}}"),
			object(t, "{apiVersion: x/v1, kind: Object, spec: {manifest: {apiVersion: v1, kind: Secret, data: {p: "+encoded+"}}}}"),
			"/spec/manifest <> <map[apiVersion:v1 data:map[p:" + Mask + "] kind:Secret]>"},
		"inside another object, deep": {
			object(t, "{apiVersion: x/v1, kind: Object, spec: {l: [{apiVersion: v1, kind: Secret, data: {p: eA==}}]}}"),
			object(t, "{apiVersion: x/v1, kind: Object, spec: {l: [{apiVersion: v1, kind: Secret, data: {p: "+encoded+"}}]}}"),
			"/spec/l/0/data/p <" + Mask + "> <" + Mask + ">"},
		"kept by a tool in a template": {
			object(t, "{apiVersion: apps/v1, kind: Deployment, spec: {template: {metadata: {}}}}"),
			object(t, "{apiVersion: apps/v1, kind: Deployment, spec: {template: {metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: "+canary+"}}}}}"),
			"/spec/template/metadata/annotations <> <" + Mask + ">"},
	}
	for name, test := range tests {
		for _, opt := range []Options{{}, {Structural: true}} {
			t.Run(fmt.Sprint(name, opt), func(t *testing.T) {
				var entries []string
				for _, d := range Compare(test.hub, test.member, opt) {
					entries = append(entries, fmt.Sprintf("%s <%s> <%s>", d.Path, d.ValueInHub, d.ValueInMember))
				}
				got := strings.Join(entries, "; ")
				if strings.Contains(got, "canary") || strings.Contains(got, encoded[:12]) {
					t.Errorf("shows the canary: %s", got)
				}
				if !opt.Structural && got != test.want {
					t.Errorf("Compare:\n got %s\nwant %s", got, test.want)
				}
			})
		}
	}
}

func TestCompareLeavesOutWhatASubresourceOwns(t *testing.T) {
	const open = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, labels: {tier: front}}}`
	s := newServer(t, open)
	s.scale("kube-controller-manager", 5)
	if got := Compare(object(t, open), s.live, Options{}); got != nil {
		t.Errorf("hub leaves the replicas to an autoscaler, and yet: %v", got)
	}
	closed := strings.Replace(open, "}}}", "}}, spec: {replicas: 3}}", 1)
	want := []api.PatchDetail{{Path: "/spec/replicas", ValueInHub: "3", ValueInMember: "5"}}
	if got := Compare(object(t, closed), s.live, Options{}); !slices.Equal(got, want) {
		t.Errorf("hub sets the replicas: %v, want %v", got, want)
	}
	s.update("kubectl-edit", "", func(o map[string]any) { set(s.t, o, true, "spec", "paused") })
	want = []api.PatchDetail{{Path: "/spec", ValueInMember: "map[paused:true]"}}
	if got := Compare(object(t, open), s.live, Options{}); !slices.Equal(got, want) {
		t.Errorf("beside another difference: %v, want %v", got, want)
	}
}

func TestCompareLeavesOutWhatASubresourceOwnsInAList(t *testing.T) {
	manifest := strings.Replace(web, "resources:\n          limits: {cpu: 500m, memory: 1Gi}", "tty: true", 1)
	s := newServer(t, manifest)
	s.update("vpa", "resize", func(o map[string]any) {
		container(o)["resources"] = map[string]any{"limits": map[string]any{"cpu": "2"}}
	})
	if got := Compare(object(t, manifest), s.live, Options{}); got != nil {
		t.Errorf("hub leaves the limits open, and yet: %v", got)
	}
	want := []api.PatchDetail{{Path: "/spec/template/spec/containers/0/resources/limits/cpu", ValueInHub: "500m", ValueInMember: "2"},
		{Path: "/spec/template/spec/containers/0/resources/limits/memory", ValueInHub: "1Gi"},
		{Path: "/spec/template/spec/containers/0/tty", ValueInMember: "true"}}
	if got := Compare(object(t, web), s.live, Options{}); !slices.Equal(got, want) {
		t.Errorf("hub sets them: %v, want %v", got, want)
	}
}

func TestIgnoredFieldsNeverDiffer(t *testing.T) {
	tests := map[string]struct {
		ignore      string
		hub, member string
		want        []string
	}{
		"a value":                       {"/spec/a", "{a: 1, b: 1}", "{a: 2, b: 2}", []string{"/spec/b"}},
		"several":                       {"/spec/a, /spec/b\n/spec/c", "{a: 1, b: 1}", "{a: 2, b: 2, c: 3}", nil},
		"all below":                     {"/spec/a", "{a: {x: 1}}", "{a: {y: 1}}", nil},
		"with the parent on one side":   {"/spec/a/b", "{}", "{a: {b: 1}}", nil},
		"with the parent on the other":  {"/spec/a/b/c", "{a: {b: {c: 1}}}", "{}", nil},
		"with more of the parent":       {"/spec/a/b", "{}", "{a: {b: 1, c: 1}}", []string{"/spec/a/c"}},
		"in a list":                     {"/spec/l/1/a", "{l: [{a: 1}, {a: 1, b: 1}]}", "{l: [{a: 2}, {a: 2, b: 2}]}", []string{"/spec/l/0/a", "/spec/l/1/b"}},
		"an item":                       {"/spec/l/0", "{l: [a, b]}", "{l: [x, y]}", []string{"/spec/l/1"}},
		"an item that is not there":     {"/spec/l/7", "{l: [a]}", "{l: [b]}", []string{"/spec/l/0"}},
		"no pointer":                    {"spec.a", "{a: 1}", "{a: 2}", []string{"/spec/a"}},
		"escaped":                       {"/spec/a~1b", "{a/b: 1}", "{a/b: 2}", nil},
		"below something else entirely": {"/spec/a/b", "{a: 1}", "{a: {b: 1}}", []string{"/spec/a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			hub := loose(t, "{kind: A, metadata: {annotations: {gitfleet.dev/ignore-fields: \""+strings.ReplaceAll(test.ignore, "\n", "\\n")+"\"}}, spec: "+test.hub+"}")
			member := loose(t, "{kind: A, spec: "+test.member+"}")
			var got []string
			for _, d := range Compare(hub, member, Options{}) {
				got = append(got, d.Path)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("differs at %q, want %q", got, test.want)
			}
		})
	}
}

func TestIgnoredFieldsNamesWhatIsNoPointer(t *testing.T) {
	o := loose(t, "{kind: A, metadata: {annotations: {gitfleet.dev/ignore-fields: '/spec/a, spec.b, /, /spec/c'}}}")
	got, err := IgnoredFields(o)
	if !slices.Equal(got, []string{"/spec/a", "/spec/c"}) {
		t.Errorf("pointers = %q", got)
	}
	if err == nil || !strings.Contains(err.Error(), "gitfleet.dev/ignore-fields") || !strings.Contains(err.Error(), `"spec.b"`) {
		t.Errorf("error %v does not name the annotation and the wrong pointer", err)
	}
	if got, err := IgnoredFields(loose(t, "kind: A")); got != nil || err != nil {
		t.Errorf("without the annotation: %q, %v", got, err)
	}
}

func TestCompareChangesNeitherObject(t *testing.T) {
	s := newServer(t, web)
	s.scale("hpa", 5)
	hub := object(t, strings.Replace(web, "labels: {tier: front}", "annotations: {gitfleet.dev/ignore-fields: /spec/paused}", 1))
	for _, opt := range []Options{{}, {Structural: true}, {Ignore: []string{"/spec/template/spec/containers/0/image"}}} {
		h, m := hub.DeepCopy(), s.live.DeepCopy()
		if Compare(h, m, opt) == nil {
			t.Error("nothing differs")
		}
		if !reflect.DeepEqual(h, hub) || !reflect.DeepEqual(m, s.live) {
			t.Errorf("%+v changed an argument", opt)
		}
	}
}

// loose parses an object that may have no kind and no name.
func loose(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: object(t, "kind: List\nitems:\n- "+text).Object["items"].([]any)[0].(map[string]any)}
}
