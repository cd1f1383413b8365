package difftext

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
)

// deployment returns an object as it is decoded from JSON.
func deployment(image, level string, more ...any) map[string]any {
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"replicas": int64(2), "template": map[string]any{"spec": map[string]any{"containers": append([]any{map[string]any{
			"name": "web", "image": image, "env": []any{map[string]any{"name": "LEVEL", "value": level}},
		}}, more...)}}},
	}
}

// A difference has the names of items, and values of which the type is seen.
func TestField(t *testing.T) {
	object := deployment("web:1", "2")
	const container = "/spec/template/spec/containers/0"
	lines := func(n int, but string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprint("line ", i))
		}
		all[n/2] = but
		return strings.Join(all, "\n") + "\n"
	}
	asJSON := func(v any) json.RawMessage { raw, _ := json.Marshal(v); return raw }
	for name, test := range map[string]struct {
		d    api.Difference
		want string
	}{
		"a text":                  {api.Difference{PatchDetail: api.PatchDetail{Path: container + "/image", ValueInHub: "web:1", ValueInMember: "web:2"}}, "  spec.template.spec.containers[web].image\n- web:1\n+ web:2"},
		"a text like a number":    {api.Difference{PatchDetail: api.PatchDetail{Path: container + "/env/0/value", ValueInHub: "2", ValueInMember: "3"}}, "  spec.template.spec.containers[web].env[LEVEL].value\n- \"2\"\n+ \"3\""},
		"a number":                {api.Difference{PatchDetail: api.PatchDetail{Path: "/spec/replicas", ValueInHub: "2", ValueInMember: "3"}, HubJSON: asJSON(2), MemberJSON: asJSON(3)}, "  spec.replicas\n- 2\n+ 3"},
		"a number of old records": {api.Difference{PatchDetail: api.PatchDetail{Path: "/spec/replicas", ValueInHub: "2", ValueInMember: "3"}}, "  spec.replicas\n- 2\n+ 3"},
		"an item that is added": {
			api.Difference{PatchDetail: api.PatchDetail{Path: container + "/env/1", ValueInMember: "map[name:B value:true]"}, MemberJSON: asJSON(map[string]any{"name": "B", "value": "true"})},
			"  spec.template.spec.containers[web].env[B]\n+ name: B\n+ value: \"true\"",
		},
		"an empty text":    {api.Difference{PatchDetail: api.PatchDetail{Path: container + "/image", ValueInHub: "web:1"}, HubJSON: asJSON("web:1"), MemberJSON: asJSON("")}, "  spec.template.spec.containers[web].image\n- web:1\n+ \"\""},
		"a removed field":  {api.Difference{PatchDetail: api.PatchDetail{Path: container + "/image", ValueInHub: "web:1"}, HubJSON: asJSON("web:1")}, "  spec.template.spec.containers[web].image\n- web:1"},
		"a masked value":   {api.Difference{PatchDetail: api.PatchDetail{Path: "/data/password", ValueInHub: diff.Mask, ValueInMember: diff.Mask}}, "  data.password\n- " + diff.Mask + "\n+ " + diff.Mask},
		"many more fields": {api.Difference{PatchDetail: api.PatchDetail{Path: "/spec/replicas and 3 more", ValueInHub: "(omitted)", ValueInMember: "(omitted)"}, HubJSON: asJSON(2)}, "  spec.replicas and 3 more\n- (omitted)\n+ (omitted)"},
		"one line of many": {
			api.Difference{PatchDetail: api.PatchDetail{Path: "/data/app.conf"}, HubJSON: asJSON(lines(20, "a")), MemberJSON: asJSON(lines(20, "b"))},
			"  data[\"app.conf\"]\n    line 7\n    line 8\n    line 9\n-   a\n+   b\n    line 11\n    line 12\n    line 13",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(Field(object, test.d), "\n"); got != test.want {
				t.Errorf("the lines are\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// The difference of objects is one of their YAML, with context.
func TestObjects(t *testing.T) {
	before := &unstructured.Unstructured{Object: deployment("web:1", "2")}
	after := &unstructured.Unstructured{Object: deployment("web:2", "2", map[string]any{"name": "proxy", "image": "proxy:1"})}
	const want = `@@ -10,5 +10,7 @@
       - env:
         - name: LEVEL
           value: "2"
-        image: web:1
+        image: web:2
         name: web
+      - image: proxy:1
+        name: proxy
`
	if got := Objects(before, after); got != want {
		t.Errorf("the difference is\n%s\nwant\n%s", got, want)
	}
	if got := Objects(before, before); got != "" {
		t.Errorf("without a change it is\n%s", got)
	}
}

// Whatever changes in a Secret, the difference has no value of it, and says which value is another one.
func TestSecretsAreMasked(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	secret := func() (*unstructured.Unstructured, []string) {
		var values []string
		data, annotations := map[string]any{}, map[string]any{}
		for i := range r.IntN(4) {
			value := fmt.Sprintf("canary-%d-%d", r.IntN(3), r.IntN(1000))
			data[fmt.Sprint("key-", i)], values = value, append(values, value)
			annotations["note"], annotations["kubectl.kubernetes.io/last-applied-configuration"] = "it is "+value, value
		}
		o := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "web", "annotations": annotations}, "stringData": data}
		if r.IntN(4) == 0 { // within another object
			o = map[string]any{"apiVersion": "example.com/v1", "kind": "Template", "spec": map[string]any{"objects": []any{o}}}
		}
		return &unstructured.Unstructured{Object: o}, values
	}
	changed := 0
	for range 2000 {
		before, first := secret()
		after, second := secret()
		got := Objects(before, after)
		for _, value := range append(first, second...) {
			if strings.Contains(got, value) {
				t.Fatalf("the difference has %s:\n%s", value, got)
			}
		}
		if strings.Contains(got, diff.Mask+", changed") {
			changed++
		}
	}
	if changed < 500 {
		t.Errorf("only %d differences say that a masked value changes", changed)
	}
}
