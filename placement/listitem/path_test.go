package listitem

import "testing"

// A path has the keys of items, and indexes where there are none.
func TestPath(t *testing.T) {
	web := map[string]any{"name": "web", "env": []any{map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "B", "value": "2"}}, "args": []any{"x", "y"}}
	object := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app.kubernetes.io/name": "web"}},
		"spec": map[string]any{
			"containers": []any{map[string]any{"name": "proxy"}, web},
			"ports":      []any{map[string]any{"port": int64(80)}, map[string]any{"port": int64(443)}},
			"rules":      []any{map[string]any{"host": "a b.example"}},
		},
	}
	added := map[string]any{"name": "C", "value": "3"}
	for pointer, want := range map[string]string{
		"/spec/containers/1/env/1/value":           "spec.containers[web].env[B].value",
		"/spec/containers/1/env/1":                 "spec.containers[web].env[B]",
		"/spec/containers/1/env/2":                 "spec.containers[web].env[C]",
		"/spec/containers/1/env/-":                 "spec.containers[web].env[C]",
		"/spec/containers/7/env/0":                 "spec.containers[7].env[\"0\"]",
		"/spec/containers/1/args/1":                "spec.containers[web].args[1]",
		"/spec/ports/1/port":                       "spec.ports[443].port",
		"/spec/rules/0/host":                       `spec.rules["a b.example"].host`,
		"/metadata/labels/app.kubernetes.io~1name": `metadata.labels["app.kubernetes.io/name"]`,
		"/metadata/annotations/example.com~1owner": `metadata.annotations["example.com/owner"]`,
		"/data/8080":                               `data["8080"]`,
		"/data/logging.properties":                 `data["logging.properties"]`,
		"/spec/replicas":                           "spec.replicas",
		"/spec/unknown/0/name":                     `spec.unknown["0"].name`,
	} {
		if got := Path(object, pointer, added); got != want {
			t.Errorf("%s is %s, want %s", pointer, got, want)
		}
	}
	if got := Path(nil, "/spec/replicas", nil); got != "spec.replicas" {
		t.Errorf("without the object it is %s", got)
	}
}
