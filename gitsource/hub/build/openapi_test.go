package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
)

// schemaOf is an OpenAPI schema that has one kind, whose list spec.steps is merged by name.
func schemaOf(group, version, kind string) string {
	return fmt.Sprintf(`{"definitions": {"a.Kind": {"type": "object", "x-kubernetes-group-version-kind": [{"group": %q, "version": %q, "kind": %q}],
  "properties": {"spec": {"$ref": "#/definitions/a.Spec"}}},
 "a.Spec": {"type": "object", "properties": {"steps": {"type": "array", "x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge",
  "items": {"type": "object"}}}}}, "paths": {"/zones": {"get": {"x-kubernetes-group-version-kind": {"group": "example.com", "version": "v1", "kind": "Zone"}}}}}
`, group, version, kind)
}

// neighbours are kustomizations, some of which change what kustomize keeps per process.
func neighbours() sources {
	const (
		deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: web}\nspec:\n  template:\n    spec:\n      containers:\n" +
			"      - {name: web, image: \"registry.example/web:1\"}\n      - {name: agent, image: \"registry.example/agent:1\"}\n"
		patch = "- patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: web, namespace: web}\n    spec: {template: {spec: {containers: [{name: web, env: [{name: A, value: b}]}]}}}\n"
		pipe  = "apiVersion: example.com/v1\nkind: Pipe\nmetadata: {name: main, namespace: web}\nspec: {steps: [{name: build, image: \"a:1\"}, {name: test, image: \"b:1\"}]}\n"
		merge = "- patch: |-\n    apiVersion: example.com/v1\n    kind: Pipe\n    metadata: {name: main, namespace: web}\n    spec: {steps: [{name: build, image: \"a:2\"}]}\n"
		zone  = "apiVersion: example.com/v1\nkind: Zone\nmetadata: {name: a}\n"
	)
	all := sources{"base/kustomization.yaml": "resources: [a.yaml, pipe.yaml, zone.yaml]\n", "base/a.yaml": deployment, "base/pipe.yaml": pipe, "base/zone.yaml": zone}
	for name, text := range map[string]string{
		"plain":        "",
		"namespace":    "namespace: other\n",
		"schema":       "openapi: {path: schema.json}\n",
		"override":     "openapi: {path: deployment.json}\n",
		"version":      "openapi: {version: v1.21.2}\n",
		"no-version":   "openapi: {version: v9}\n",
		"both":         "openapi: {version: v1.21.2, path: schema.json}\n",
		"no-schema":    "openapi: {path: broken.json}\n",
		"crds":         "crds: [schema.json]\nnamePrefix: a-\n",
		"generators":   "configMapGenerator: [{name: a, literals: [a=b]}]\n",
		"components":   "components: [../part]\n",
		"config":       "configurations: [config.yaml]\nnamePrefix: b-\n",
		"prefix":       "namePrefix: b-\n",
		"transformers": "transformers: [t.yaml]\n",
		"failing":      "patches: [{patch: \"[{op: remove, path: /a}]\", target: {kind: Pipe}}]\n",
		"slow":         "openapi: {path: deployment.json}\nnameSuffix: -slow\n",
	} {
		patches := "patches:\n" + patch + merge
		if strings.Contains(text, "patches:") {
			patches = ""
		}
		all[name+"/kustomization.yaml"] = "resources: [../base]\n" + text + patches
		all[name+"/schema.json"] = schemaOf("example.com", "v1", "Pipe")
		all[name+"/deployment.json"] = schemaOf("apps", "v1", "Deployment")
		all[name+"/broken.json"] = `{"definitions": {"a": ["b"]}}`
		all[name+"/config.yaml"] = "namePrefix: [{path: metadata/name, kind: Zone}, {path: spec/steps/name, kind: Pipe}]\n"
		all[name+"/t.yaml"] = "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: p}\nlabels: {a: b}\nfieldSpecs: [{path: metadata/labels, create: true}]\n"
	}
	all["part/kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nopenapi: {path: schema.json}\ncommonAnnotations: {a: b}\n"
	all["part/schema.json"] = schemaOf("example.com", "v1", "Pipe")
	all["with-schema/kustomization.yaml"] = "resources: [pipe.yaml]\nopenapi: {path: schema.json}\n"
	all["with-schema/pipe.yaml"], all["with-schema/schema.json"] = pipe, schemaOf("example.com", "v1", "Pipe")
	all["of-a-base/kustomization.yaml"] = "resources: [../with-schema]\npatches:\n" + merge
	return all
}

// buildText returns the objects and problems of a build as text.
func buildText(t testing.TB, target Target) string {
	var out strings.Builder
	for {
		result, transient, err := target.Build(roomy, func(_ *document.Report, object any) {
			text, _ := json.Marshal(object)
			fmt.Fprintf(&out, "%s\n", text)
		})
		if errors.Is(err, ErrBusy) {
			continue // as the daemon, which tries again
		}
		if err != nil {
			t.Error(err)
		}
		for _, p := range result.Problems {
			fmt.Fprintln(&out, p.Marked())
		}
		fmt.Fprintln(&out, transient)
		return out.String()
	}
}

// What a kustomization builds depends on its files alone: neither on what the process built
// before, with which schemas and results, nor on what it builds at the same time.
func TestBuildsAreIsolated(t *testing.T) {
	g, late := neighbours().graph(t, limit.Limits{}), neighbours().graph(t, limit.Limits{BuildTime: time.Nanosecond})
	if g.Problems().HasErrors() {
		t.Fatal(g.Problems().Err())
	}
	targets, alone := map[string]Target{}, map[string]string{}
	for _, dir := range g.Roots {
		targets[dir] = g.Target(dir)
		if dir == "slow" {
			targets[dir] = late.Target(dir)
		}
		buildLock <- struct{}{} // a build that timed out may still run
		openapi.ResetOpenAPI()  // as in a process of its own
		<-buildLock
		alone[dir] = buildText(t, targets[dir])
	}
	for dir, want := range map[string]string{
		"plain":      `"image":"registry.example/web:1","name":"web"},{"image":"registry.example/agent:1"`,
		"schema":     `{"image":"a:2","name":"build"},{"image":"b:1","name":"test"}`,
		"override":   `"containers":[{"env":[{"name":"A","value":"b"}],"name":"web"}]`,
		"of-a-base":  `{"image":"a:2","name":"build"},{"image":"b:1","name":"test"}`,
		"no-version": "the specified OpenAPI version is not built in",
		"no-schema":  "invalid schema file",
		"slow":       "the build took longer than 1ns",
	} {
		if !strings.Contains(alone[dir], want) {
			t.Errorf("%s alone:\n%s\nwant %s", dir, alone[dir], want)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		order := rapid.SliceOfN(rapid.SampledFrom(g.Roots), 1, 6).Draw(rt, "order")
		got := make([]string, len(order))
		if rapid.Bool().Draw(rt, "in parallel") {
			var group sync.WaitGroup
			for i, dir := range order {
				group.Go(func() { got[i] = buildText(t, targets[dir]) })
			}
			group.Wait()
		} else {
			for i, dir := range order {
				got[i] = buildText(t, targets[dir])
			}
		}
		for i, dir := range order {
			if got[i] != alone[dir] {
				rt.Fatalf("%s builds\n%s\nalone it builds\n%s", dir, got[i], alone[dir])
			}
		}
	})
}

// A schema that would make a build endless, and then all others wait, is refused, with its line.
func TestSchemasAreChecked(t *testing.T) {
	const app = "resources: [ns.yaml]\ncrds: [schema.yaml]\nopenapi: {path: schema.yaml}\n"
	for name, test := range map[string]struct{ schema, want string }{
		"references that end": {"definitions:\n  a: {$ref: '#/definitions/b'}\n  b: {$ref: '#/definitions/c~1d'}\n  c/d: {type: object}\n", ""},
		"a recursive type":    {"definitions:\n  a: {properties: {a: {$ref: '#/definitions/a'}}}\n", ""},
		"a reference to itself": {"definitions:\n  a:\n    $ref: '#/definitions/a'\n",
			"app/schema.yaml:3: definitions.a[$ref]: the references of this schema lead to themselves, so that a build would never end; remove one of them (built by app/kustomization.yaml)"},
		"a cycle through a property": {"definitions:\n  a: {properties: {b: {$ref: '#/definitions/c'}}}\n  c: {$ref: '#/definitions/a/properties/b'}\n",
			"app/schema.yaml:2: definitions.a.properties.b[$ref]: the references of this schema lead to themselves, so that a build would never end; remove one of them (built by app/kustomization.yaml)"},
		"no schema": {"[a]\n", "app/schema.yaml:1: definitions: an OpenAPI schema is a mapping that has definitions, which is a mapping of schemas (built by app/kustomization.yaml)"},
		"a list of definitions": {"definitions: [a]\n",
			"app/schema.yaml:1: definitions: an OpenAPI schema is a mapping that has definitions, which is a mapping of schemas (built by app/kustomization.yaml)"},
		"a kind without a version": {"definitions:\n  a:\n    x-kubernetes-group-version-kind: [{group: example.com, kind: A}]\n",
			"app/schema.yaml:3: definitions.a.x-kubernetes-group-version-kind: kustomize needs a group, a version and a kind here, as strings (built by app/kustomization.yaml)"},
	} {
		_, problems, _ := sources{"app/kustomization.yaml": app, "app/ns.yaml": namespaceText, "app/schema.yaml": test.schema}.build(t, limit.Limits{}, roomy)
		if test.want != "" && len(problems) == 0 || len(problems) > 0 && problems[0] != test.want {
			t.Errorf("%s: %q, want %q", name, problems, test.want)
		}
	}
}

// BenchmarkBuilds builds kustomizations of which none, or every other one, has its own schema.
func BenchmarkBuilds(b *testing.B) {
	for name, dirs := range map[string][]string{"plain": {"plain", "plain"}, "every other one with a schema": {"plain", "schema"}} {
		b.Run(name, func(b *testing.B) {
			g := maps.Clone(neighbours()).graph(b, limit.Limits{})
			for i := 0; b.Loop(); i++ {
				buildText(b, g.Target(dirs[i%2]))
			}
		})
	}
}
