package build

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
)

// builtBy builds a repository with one root, and returns its objects as JSON and their positions, in the order of Build.
func (r sources) builtBy(t rapid.TB) (objects, origins []string) {
	g := r.graphOf(t)
	built, _, err := g.Target(g.Roots[0]).Build(roomy, func(report *document.Report, object any) {
		text, _ := json.Marshal(object)
		objects, origins = append(objects, string(text)), append(origins, report.Origin.String())
	})
	if err != nil || built.Problems.HasErrors() {
		t.Fatal(err, built.Problems)
	}
	return objects, origins
}

// builtByKustomize returns the objects of the only root as kustomize builds them by itself, and the files that kustomize says they are from: of
// an object that is generated, the kustomization.
func (r sources) builtByKustomize(t rapid.TB) (objects, files []string) {
	g := r.graphOf(t)
	for _, metadata := range [][]string{nil, {types.OriginAnnotations}} {
		b := newBuilder(g.Target(g.Roots[0]))
		if err := b.readAll(); err != nil {
			t.Fatal(err)
		}
		root := b.root.spec
		root.BuildMetadata = metadata
		built, failure, _, err := b.kustomize(map[string]types.Kustomization{b.root.file: root}, b.texts)
		if failure != nil || err != nil {
			t.Fatal(failure, err)
		}
		for _, res := range built.Resources() {
			if origin, _ := res.GetOrigin(); origin != nil {
				files = append(files, path.Join(b.root.dir, origin.Path, origin.ConfiguredIn))
				continue
			}
			value, _, _ := document.Decode(&document.Report{Limits: b.graph.limits}, res.YNode(), math.MaxInt64)
			text, _ := json.Marshal(value)
			objects = append(objects, string(text))
		}
	}
	return objects, files
}

func (r sources) graphOf(t rapid.TB) *Graph {
	g := r.graph(t, limit.Limits{})
	if len(g.Roots) != 1 || g.Problems().HasErrors() {
		t.Fatal(g.Roots, g.Problems())
	}
	return g
}

// styles are the ways in which people write an object, with %s for its kind, its name and a label.
var styles = []string{
	"apiVersion: v1\nkind: %s\nmetadata:\n  name: %s\n  labels: {is: %s}\n",
	"# comment\napiVersion: v1\nkind: %s\nmetadata:\n    # another\n    name: %s\n    annotations: # of it\n      # its own\n      own: \"%s\"\n    labels:\n      a: b\n",
	"{apiVersion: v1, kind: %s, metadata: {name: %s, annotations: {é: %s}}}\n",
	"apiVersion: v1\nkind: %s\nmetadata: {name: %s, annotations: {}, labels: {a: %s}}\n",
	"apiVersion: v1\r\nkind: %s\r\nmetadata:\r\n  name: %s\r\n  annotations:\r\n    a: %s\r\n",
	"{\"apiVersion\": \"v1\", \"kind\": \"%s\", \"metadata\": {\"name\": \"%s\", \"labels\": {\"ü\": \"%s\"}}}\n",
	"apiVersion: v1\nkind: %sList\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: %s-item\n    annotations: {a: '%s'}\n",
	"metadata: &m\n  name: %[2]s\n  annotations: {a: '%[3]s'}\napiVersion: v1\nkind: %[1]s\n",
	"metadata:\n  <<: {annotations: {a: b}}\n  name: %[2]s\n  labels: {a: '%[3]s'}\napiVersion: v1\nkind: %[1]s\n",
	"apiVersion: v1\nkind: %[1]s\nmetadata:\n  annotations:\n  name: %[2]s\n  labels: {a: '%[3]s'}\n",
}

// drawFleet draws a base, one above it that may include another, a component, and an overlay that includes them.
func drawFleet(t *rapid.T) sources {
	names := rapid.Permutation([]string{"one", "two", "six", "ten", "pod", "web", "log", "job", "key", "map", "tax", "zoo"}).Draw(t, "names")
	files := sources{}
	fill := func(dir string) (resources []string) {
		for i := range rapid.IntRange(1, 2).Draw(t, dir+" files") {
			file, text := fmt.Sprintf("f%d.yaml", i), ""
			for range rapid.IntRange(1, 2).Draw(t, file) {
				style := rapid.SampledFrom(styles).Draw(t, "style")
				kind := rapid.SampledFrom([]string{"ConfigMap", "Service", "Secret"}).Draw(t, "kind")
				text += "---\n" + fmt.Sprintf(style, kind, names[0], "v")
				names = names[1:]
			}
			files[dir+"/"+file] = text
			resources = append(resources, file)
		}
		return resources
	}
	maybe := func(lines ...string) (text string) {
		for _, line := range lines {
			if rapid.Bool().Draw(t, line) {
				text += line + "\n"
			}
		}
		return text
	}
	common := []string{
		"namePrefix: x-", "nameSuffix: -last", "namespace: elsewhere", "commonAnnotations: {c: d}", "labels: [{pairs: {e: f}, includeSelectors: true}]",
		"patches: [{target: {kind: Service}, patch: '[{\"op\": \"add\", \"path\": \"/spec\", \"value\": {\"a\": 1}}]'}]",
		"generatorOptions: {annotations: {g: h}, labels: {i: j}}",
	}
	list := func(entries []string) string { return "[" + strings.Join(entries, ", ") + "]\n" }
	files["base/kustomization.yaml"] = "resources: " + list(fill("base")) + "configMapGenerator:\n- {name: settings, literals: [a=b]}\n" +
		maybe("- {name: more, literals: [a=b], options: {annotations: {k: l}}}") + maybe("secretGenerator: [{name: hidden, literals: [a=b]}]") + maybe(common...)
	files["component/kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: " + list(fill("component")) + maybe("commonAnnotations: {part: of}")
	merged := rapid.SampledFrom([]string{
		"", "configMapGenerator: [{name: settings, behavior: merge, literals: [c=d]}]\n", "configMapGenerator: [{name: settings, behavior: replace, literals: [c=d]}]\n",
		"configMapGenerator: [{name: fresh, literals: [c=d]}]\n",
	}).Draw(t, "generator")
	if strings.Contains(files["base/kustomization.yaml"], "namespace: elsewhere") {
		merged = ""
	}
	files["app/kustomization.yaml"] = "resources: " + list(append(fill("app"), "../base")) + merged + maybe("components: [../component]") + maybe(common...)
	if !strings.Contains(files["app/kustomization.yaml"], "../component") {
		maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, "component/") })
	}
	return files
}

// What is built is what kustomize builds by itself, and each object is from the file that kustomize says.
func TestMarksChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files := drawFleet(t)
		want, from := files.builtByKustomize(t)
		got, origins := files.builtBy(t)
		if !slices.Equal(got, want) {
			t.Fatalf("built\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for i := range from {
			if file, _, _ := strings.Cut(origins[i], ":"); file != from[i] {
				t.Fatalf("%s is from %s, want %s", got[i], origins[i], from[i])
			}
		}
	})
}

// Marks are in nothing that is built, and origins are found without them, where patches and replacements handle annotations as a whole.
func TestMarksInAnnotationsThatAreChanged(t *testing.T) {
	const web = "kind: Deployment\napiVersion: apps/v1\nmetadata:\n  name: web\nspec:\n  template:\n    metadata: {annotations: {a: b}}\n"
	const other = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: other\n  annotations: {c: d}\n"
	for name, test := range map[string]struct {
		kustomization string
		more          sources
		want          []string
	}{
		"copied": {"replacements:\n- source: {kind: ConfigMap, name: other, fieldPath: metadata.annotations}\n  targets: [{select: {kind: Deployment}, fieldPaths: [spec.template.metadata.annotations]}]\n", nil, []string{
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"template":{"metadata":{"annotations":{"c":"d"}}}}} app/web.yaml:1`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"c":"d"},"name":"other"}} app/other.yaml:1`,
		}},
		"replaced": {"namePrefix: my-\npatches: [{target: {kind: ConfigMap}, patch: '[{\"op\": \"replace\", \"path\": \"/metadata/annotations\", \"value\": {\"e\": \"f\"}}]'}]\n", nil, []string{
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"my-web"},"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}} app/web.yaml:1`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"e":"f"},"name":"my-other"}} app/other.yaml:1`,
		}},
		"a resource that is a patch as well": {"patches: [{path: web.yaml, target: {kind: ConfigMap}, options: {allowNameChange: false}}]\n",
			sources{"app/web.yaml": "kind: ConfigMap\napiVersion: v1\nmetadata: {name: web}\ndata: {g: h}\n"}, []string{
				`{"apiVersion":"v1","data":{"g":"h"},"kind":"ConfigMap","metadata":{"name":"web"}} app/web.yaml:1`,
				`{"apiVersion":"v1","data":{"g":"h"},"kind":"ConfigMap","metadata":{"annotations":{"c":"d"},"name":"other"}} app/other.yaml:1`,
			}},
		"generated by plugins": {"generators: [generators.yaml]\n", sources{
			"app/generators.yaml": "# of a file\napiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: made}\nliterals: [a=b]\noptions: {disableNameSuffixHash: true}\n",
		}, []string{
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}} app/web.yaml:1`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"c":"d"},"name":"other"}} app/other.yaml:1`,
			`{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"made"}} app/generators.yaml:2`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			repo := sources{"app/kustomization.yaml": "resources: [web.yaml, other.yaml]\n" + test.kustomization, "app/web.yaml": web, "app/other.yaml": other}
			maps.Copy(repo, test.more)
			objects, origins := repo.builtBy(t)
			for i := range objects {
				objects[i] += " " + origins[i]
			}
			checkLines(t, "objects", objects, test.want)
		})
	}
}

// Where patches, replacements and transformers address annotations, a build is what kustomize builds by itself, and fails if kustomize does.
func TestMarksInAnnotationsThatAreAddressed(t *testing.T) {
	const bare = "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: web\n"
	objects := map[string]string{"none": bare, "empty": bare + "  annotations: {}\n", "one": bare + "  annotations: {a: b}\n", "null": bare + "  annotations:\n"}
	patch := func(operations string) string {
		return "patches: [{target: {kind: ConfigMap}, patch: '[" + operations + "]'}]\n"
	}
	for name, kustomization := range map[string]string{
		"nothing":              "",
		"a prefix":             "namePrefix: my-\n",
		"added below":          patch(`{"op": "add", "path": "/metadata/annotations/c", "value": "d"}`),
		"added in a generator": "configMapGenerator: [{name: made, literals: [a=b]}]\n" + patch(`{"op": "add", "path": "/metadata/annotations/c", "value": "d"}`),
		"added by index":       patch(`{"op": "add", "path": "/metadata/annotations/c", "value": "d"}, {"op": "add", "path": "/metadata/finalizers", "value": ["a"]}, {"op": "replace", "path": "/metadata/finalizers/0", "value": "b"}`),
		"no JSON":              patch(`{"op": "add", "path": "/metadata/finalizers", "value": [a]}, {"op": "replace", "path": "/metadata/finalizers/0", "value": "b"}`),
		"removed":              patch(`{"op": "remove", "path": "/metadata/annotations"}`),
		"removed below":        patch(`{"op": "remove", "path": "/metadata/annotations/a"}`),
		"tested":               patch(`{"op": "test", "path": "/metadata/annotations", "value": {"a": "b"}}`),
		"copied":               patch(`{"op": "copy", "from": "/metadata/annotations", "path": "/data"}`),
		"a copy of metadata":   patch(`{"op": "copy", "from": "/metadata", "path": "/copy"}`),
		"empty":                patch(`{"op": "add", "path": "/metadata/annotations", "value": {}}`),
		"merged":               "patches: [{target: {kind: ConfigMap}, patch: '{kind: ConfigMap, metadata: {name: web, annotations: {c: d}}}'}]\n",
		"merged as empty":      "patches: [{target: {kind: ConfigMap}, patch: '{kind: ConfigMap, metadata: {name: web, annotations: {}}}'}]\n",
		"deleted by a merge":   "patches: [{target: {kind: ConfigMap}, patch: '{kind: ConfigMap, metadata: {name: web, annotations: null}}'}]\n",
		"a source":             "replacements: [{source: {kind: ConfigMap, name: web, fieldPath: metadata.annotations}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data], options: {create: true}}]}]\n",
		"a target":             "replacements: [{source: {kind: ConfigMap, name: web, fieldPath: metadata.name}, targets: [{select: {kind: ConfigMap}, fieldPaths: [metadata.annotations]}]}]\n",
		"a transformer":        "transformers: ['{apiVersion: builtin, kind: AnnotationsTransformer, metadata: {name: t}, annotations: {c: d}, fieldSpecs: [{path: metadata/annotations, create: false}]}']\n",
	} {
		for style, object := range objects {
			repo := sources{"app/kustomization.yaml": "resources: [web.yaml]\n" + kustomization, "app/web.yaml": object}
			alone := newBuilder(repo.graphOf(t).Target("app"))
			if err := alone.readAll(); err != nil {
				t.Fatal(err)
			}
			want := ""
			if _, failure, _, err := alone.kustomize(nil, alone.texts); err != nil {
				t.Fatal(err)
			} else if failure == nil {
				objects, _ := repo.builtByKustomize(t)
				want = strings.Join(objects, "\n")
			}
			got := ""
			built, _, err := repo.graphOf(t).Target("app").Build(roomy, func(r *document.Report, object any) {
				text, _ := json.Marshal(object)
				got = strings.TrimPrefix(got+"\n"+string(text), "\n")
				if from := r.Origin.String(); !strings.Contains(string(text), "made") && from != "app/web.yaml:1" {
					t.Errorf("%s, %s: it is from %s", name, style, from)
				}
			})
			if err != nil || got != want || built.Problems.HasErrors() != (want == "") {
				t.Errorf("%s, %s: built\n%s\nwant\n%s\n%v %v", name, style, got, want, built.Problems, err)
			}
		}
	}
}

// The name of an object that has a hash of all of it is the one that kustomize gives it.
func TestMarksAreInNoHash(t *testing.T) {
	repo := sources{
		"app/kustomization.yaml": "resources: [web.yaml]\n",
		"app/web.yaml":           "apiVersion: example.com/v1\nkind: Sealed\nmetadata:\n  name: web\n  annotations: {kustomize.config.k8s.io/needs-hash: \"true\"}\nspec: {a: b}\n",
	}
	want, _ := repo.builtByKustomize(t)
	got, origins := repo.builtBy(t)
	checkLines(t, "objects", append(got, origins...), append(want, "app/web.yaml:1"))
}
