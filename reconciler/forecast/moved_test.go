package forecast

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gitfleet/gitfleet/gitsource/hub"
)

// commit loads an archive, in which some text is replaced.
func commit(t *testing.T, archive, old, replacement string) *hub.Snapshot {
	t.Helper()
	if !strings.Contains(archive, old) {
		t.Fatalf("no %q in the archive", old)
	}
	files := fstest.MapFS{}
	for _, f := range txtar.Parse([]byte(strings.Replace(archive, old, replacement, 1))).Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	s, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{}, files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const patchedByIndex = `
-- base/kustomization.yaml --
resources: [web.yaml]
-- base/web.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx:1
        args: [--port=80, --verbose]
        env:
        - {name: A, value: one}
        - {name: B, value: two}
-- overlay/kustomization.yaml --
resources: [../base]
namePrefix: eu-
patches:
- path: patch.yaml
- target: {kind: Deployment}
  patch: |-
    - {op: remove, path: /spec/template/spec/containers/0/env/0}
    - {op: add, path: /spec/template/spec/containers/0, value: {name: first, image: "busybox:1"}}
    - op: replace
      path: /spec/template/spec/containers/1/args/1
      value: --quiet
- target: {kind: Deployment}
  patch: |-
    - {op: test, path: /spec/template/spec/containers/0/name, value: first}
    - {op: replace, path: /spec/template/spec/containers/0/image, value: "busybox:2"}
- target: {kind: Deployment}
  path: metadata.yaml
replacements:
- source: {kind: Deployment, name: web, fieldPath: metadata.namespace}
  targets:
  - select: {kind: Deployment, name: web}
    fieldPaths: [spec.template.spec.containers.1.env.0.value]
-- overlay/patch.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {replicas: 3}
-- overlay/metadata.yaml --
# JSON, below a comment
[{"op": "replace", "path": "/spec/template/spec/containers/1/image", "value": "nginx:eu"}]
-- shop.yaml --
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: shop, annotations: {gitfleet.dev/ignore-fields: /spec/template/spec/containers/0/resources}}
spec:
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers: [{name: api, image: "api:1"}]
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceOverride
metadata: {name: api, namespace: shop}
spec:
  resourceSelectors: [{group: apps, version: v1, kind: Deployment, name: api}]
  policy:
    overrideRules:
    - clusterSelector: {clusterSelectorTerms: []}
      jsonPatchOverrides:
      - {op: replace, path: /spec/template/spec/containers/0/image, value: "api:eu"}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceOverride
metadata: {name: wrapped, namespace: shop}
spec:
  resourceSelectors: [{group: batch, version: v1, kind: Job, name: wrapped}]
  policy:
    overrideRules:
    - clusterSelector: {clusterSelectorTerms: []}
      jsonPatchOverrides:
      - {op: replace, path: /spec/template/spec/containers/0/image, value: "api:eu"}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceEnvelope
metadata: {name: envelope, namespace: shop}
data:
  job:
    apiVersion: batch/v1
    kind: Job
    metadata: {name: wrapped, namespace: shop}
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: job, image: "job:1"}]}}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: shop}]
`

// An index in a patch is reported once it means another item than in the commit before, at its file and line, and never
// for another reason.
func TestMovedItems(t *testing.T) {
	for name, test := range map[string]struct {
		old, replacement string
		want             []string
	}{
		"nothing":         {"nginx:1", "nginx:1", nil},
		"another content": {"nginx:1", "nginx:2", nil},
		"a container in front": {"      - name: web\n        image: nginx:1", "      - {name: log, image: logger, args: [a, b], env: [{name: X}, {name: Y, value: y}]}\n      - name: web\n        image: nginx:1", []string{
			`overlay/kustomization.yaml:22: replacements[0].targets[0].fieldPaths[0]: /spec/template/spec/containers/1/env/0/value means another item of Deployment.apps/shop/eu-web than before: the item at index 1 of the list has the name "log" now, and had "web"; "web" is at index 2`,
			`overlay/kustomization.yaml:7: patches[1][0].path: /spec/template/spec/containers/0/env/0 means another item of Deployment.apps/shop/eu-web than before: the item at index 0 of the list has the name "log" now, and had "web"; "web" is at index 1`,
			`overlay/kustomization.yaml:9: patches[1][2].path: /spec/template/spec/containers/1/args/1 means another item of Deployment.apps/shop/eu-web than before: the item at index 1 of the list has the name "log" now, and had "web"; "web" is at index 2`,
			`overlay/metadata.yaml:2: [0].path: /spec/template/spec/containers/1/image means another item of Deployment.apps/shop/eu-web than before: the item at index 1 of the list has the name "log" now, and had "web"; "web" is at index 2`,
		}},
		"an env entry in front": {"        - {name: A, value: one}", "        - {name: Z, value: one}\n        - {name: A, value: one}", []string{
			`overlay/kustomization.yaml:22: replacements[0].targets[0].fieldPaths[0]: /spec/template/spec/containers/1/env/0/value means another item of Deployment.apps/shop/eu-web than before: the item at index 0 of the list has the name "A" now, and had "B"; "B" is at index 1`,
			`overlay/kustomization.yaml:7: patches[1][0].path: /spec/template/spec/containers/0/env/0 means another item of Deployment.apps/shop/eu-web than before: the item at index 0 of the list has the name "Z" now, and had "A"; "A" is at index 1`,
		}},
		"an argument in front": {"[--port=80", "[--debug, --port=80", []string{
			`overlay/kustomization.yaml:9: patches[1][2].path: /spec/template/spec/containers/1/args/1 means another item of Deployment.apps/shop/eu-web than before: the item at index 1 of the list is another one now; the earlier one is at index 2`,
		}},
		"an edited argument": {"--verbose", "--silent", nil},
		"in an override": {`[{name: api,`, `[{name: log, image: logger}, {name: api,`, []string{
			`shop.yaml:15: spec.policy.overrideRules[0].jsonPatchOverrides[0].path: /spec/template/spec/containers/0/image means another item of Deployment.apps/shop/api than before: the item at index 0 of the list has the name "log" now, and had "api"; "api" is at index 1`,
			`shop.yaml:5: metadata.annotations[gitfleet.dev/ignore-fields]: /spec/template/spec/containers/0/resources means another item of Deployment.apps/shop/api than before: the item at index 0 of the list has the name "log" now, and had "api"; "api" is at index 1`,
		}},
		"in an envelope": {`[{name: job,`, `[{name: log, image: logger}, {name: job,`, []string{
			`shop.yaml:26: spec.policy.overrideRules[0].jsonPatchOverrides[0].path: /spec/template/spec/containers/0/image means another item of Job.batch/shop/wrapped than before: the item at index 0 of the list has the name "log" now, and had "job"; "job" is at index 1`,
		}},
		"the index follows the item":  {"containers/1/args/1", "containers/1/args/0", nil},
		"a container behind":          {"- {name: B, value: two}", "- {name: B, value: two}\n      - {name: log, image: logger}", nil},
		"the patch comes with a test": {`{op: replace, path: /spec/template/spec/containers/0/image, value: "busybox:2"}`, `{op: replace, path: /spec/template/spec/containers/0/image, value: "busybox:3"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := commit(t, patchedByIndex, "nginx:1", "nginx:1")
			after := commit(t, patchedByIndex, test.old, test.replacement)
			var got []string
			for _, p := range MovedItems(func() *hub.Snapshot { return before }, after) {
				text, _, _ := strings.Cut(p.Error(), "; correct the index")
				got = append(got, text)
			}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}
