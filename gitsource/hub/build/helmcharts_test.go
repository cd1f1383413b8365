package build

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/kustomize/kyaml/yaml/merge2"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/test/checkout"
)

// webChart is a chart with what kustomize may change, and with hooks.
func webChart(dir string) sources {
	return sources{
		dir + "/Chart.yaml":  "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		dir + "/values.yaml": "image: {name: web, tag: \"1\"}\nports: [80, 81]\nreplicas: 1\nlabels: {a: \"1\"}\n",
		dir + "/templates/web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-web
  namespace: {{ .Release.Namespace }}
  labels: {{ toJson .Values.labels }}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: {{ .Release.Name }}
      containers:
      - name: web
        image: {{ .Values.image.name }}:{{ .Values.image.tag }}
        args: [{{ .Capabilities.KubeVersion.Version }}, "{{ .Capabilities.APIVersions.Has "example.com/v1" }}"]
        ports: {{ range .Values.ports }}
        - containerPort: {{ . }}{{ end }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Release.Name }}
  annotations: {c: d}
`,
		dir + "/templates/NOTES.txt":   "Thank you.\n",
		dir + "/templates/none.yaml":   "{{ if .Values.none }}kind: none{{ end }}\n",
		dir + "/crds/thing.yaml":       "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\nspec: {group: example.com, names: {kind: Thing, plural: things}, scope: Namespaced}\n",
		dir + "/templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n  namespace: {{ .Release.Namespace }}\ndata: {a: b}\n",
	}
}

func with(all ...sources) sources {
	out := sources{}
	for _, files := range all {
		maps.Copy(out, files)
	}
	return out
}

// chartRepositories are the fields of helmCharts and what kustomize does with the objects of charts.
var chartRepositories = map[string]sources{
	"a chart with nothing else": with(webChart("charts/web"), sources{"kustomization.yaml": "helmCharts:\n- name: web\n"}),
	"all fields": with(webChart("more/web"), sources{
		"kustomization.yaml": `helmGlobals: {chartHome: more}
helmCharts:
- name: web
  releaseName: shop
  namespace: shop
  includeCRDs: true
  kubeVersion: "1.31"
  apiVersions: [example.com/v1]
  valuesFile: values.yaml
  additionalValuesFiles: [values/extra.yaml]
  valuesInline: {image: {tag: "2"}, ports: null, replicas: 3}
`,
		"values.yaml":       "image: {name: shop, tag: \"1\"}\nports: [90]\n",
		"values/extra.yaml": "labels: {b: \"2\"}\n",
	}),
	"values that are merged": with(webChart("charts/web"), sources{
		"kustomization.yaml": "helmCharts:\n- {name: web, valuesMerge: merge, valuesInline: {replicas: 4, image: {tag: \"2\", pull: always}}}\n",
	}),
	"values that replace those of the file": with(webChart("charts/web"), sources{
		"kustomization.yaml": "helmCharts:\n- {name: web, valuesFile: v.yaml, valuesMerge: replace, valuesInline: {replicas: 4}}\n", "v.yaml": "replicas: 5\nports: [1]\n",
	}),
	"a template of the name": with(webChart("charts/web"), sources{
		"kustomization.yaml": "helmCharts:\n- {name: web, nameTemplate: '{{ printf \"%s-%d\" (upper \"a\" | lower) 7 }}'}\n",
	}),
	"the same chart twice": with(webChart("charts/web"), sources{
		"kustomization.yaml": "helmCharts:\n- {name: web, releaseName: a, namespace: a}\n- {name: web, releaseName: b, namespace: b}\n",
	}),
	"generators": generatedCharts,
	"transformers, patches and generators": with(webChart("charts/web"), sources{
		"kustomization.yaml": `namePrefix: my-
namespace: shop
labels: [{pairs: {team: shop}, includeSelectors: true}]
images: [{name: web, newTag: "9"}]
replicas: [{name: x-web, count: 7}]
configMapGenerator: [{name: other, literals: [a=b]}]
patches:
- target: {kind: ServiceAccount}
  patch: |-
    - {op: add, path: /metadata/annotations/a, value: b}
helmCharts:
- {name: web, releaseName: x}
`,
	}),
	"a base whose overlay sets the namespace": with(webChart("base/charts/web"), sources{
		"kustomization.yaml":      "namespace: prod\nnameSuffix: -one\nresources: [base]\n",
		"base/kustomization.yaml": "helmCharts:\n- {name: web, releaseName: x}\n",
	}),
	"a component": with(webChart("component/charts/web"), sources{
		"kustomization.yaml":           "resources: [ns.yaml]\ncomponents: [component]\n",
		"ns.yaml":                      namespaceText,
		"component/kustomization.yaml": "kind: Component\nhelmCharts:\n- {name: web, releaseName: x}\n",
	}),
}

// A kustomization with charts builds what kustomize builds with the helm program, which the end-to-end tests build.
func TestChartsAreThoseOfKustomizeWithHelm(t *testing.T) {
	helm, built, err := checkout.BuiltHelm()
	if err != nil {
		t.Fatal(err)
	}
	if !built {
		t.Skip("make builds Helm for the end-to-end tests")
	}
	for name, repo := range chartRepositories {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, repo.mapFS()); err != nil {
				t.Fatal(err)
			}
			options := krusty.MakeDefaultOptions()
			options.PluginConfig = types.EnabledPluginConfig(types.BploUseStaticallyLinked)
			options.PluginConfig.HelmConfig = types.HelmConfig{Enabled: true, Command: helm}
			if !strings.Contains(repo["kustomization.yaml"], "kubeVersion") {
				options.PluginConfig.HelmConfig.KubeVersion = "1.37.0"
			}
			built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, r := range built.Resources() {
				text, err := r.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, canonical(t, text))
			}
			slices.Sort(want)
			checkLines(t, "objects", repo.objects(t), want)
		})
	}
}

func canonical(t *testing.T, text []byte) string {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// objects builds the kustomization of the root directory, and returns its objects, sorted.
func (r sources) objects(t *testing.T) []string {
	t.Helper()
	g := r.graph(t, limit.Limits{})
	var all []string
	built, _, err := g.Target(".").Build(roomy, func(_ *document.Report, object any) {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, canonical(t, text))
	})
	if err != nil || built.Problems.HasErrors() || g.Problems().HasErrors() {
		t.Fatal(err, built.Problems, g.Problems())
	}
	slices.Sort(all)
	return all
}

// Objects of charts have the position of their template, and hooks are prepared as those of a HelmChart.
func TestChartOrigins(t *testing.T) {
	repo := with(webChart("base/charts/web"), sources{
		"prod/kustomization.yaml": "resources: [../base]\nnamePrefix: a-\nnamespace: shop\n",
		"base/kustomization.yaml": "helmCharts:\n- {name: web, releaseName: x}\n",
		"base/charts/web/templates/hooks.yaml": `apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  namespace: {{ .Release.Namespace }}
  annotations: {helm.sh/hook: "pre-install,pre-upgrade"}
spec: {template: {spec: {restartPolicy: Never}}}
---
apiVersion: v1
kind: Pod
metadata: {name: test, annotations: {helm.sh/hook: test}}
---
apiVersion: v1
kind: Pod
metadata: {name: bye, annotations: {helm.sh/hook: post-delete}}
`,
	})
	objects, problems, result := repo.build(t, limit.Limits{}, roomy)
	slices.Sort(objects)
	var job string
	for i, o := range objects {
		if name, is := strings.CutPrefix(o, "Job a-migrate-"); is {
			job, _, _ = strings.Cut(name, " ")
			objects[i] = strings.Replace(o, job, "HASH", 1)
		}
	}
	checkLines(t, "objects", objects, []string{
		"ConfigMap a-web base/charts/web/templates/config.yaml:1",
		"Deployment a-x-web base/charts/web/templates/web.yaml:1",
		"Job a-migrate-HASH base/charts/web/templates/hooks.yaml:1",
		"ServiceAccount a-x base/charts/web/templates/web.yaml:21",
	})
	if len(job) != 8 {
		t.Errorf("the name of the Job ends with %q", job)
	}
	checkLines(t, "problems", problems, []string{
		"base/charts/web/templates/hooks.yaml:13: left out: bye is a hook for post-delete, which is not supported (built by prod/kustomization.yaml) (warning)",
	})
	if len(result.Charts) != 1 {
		t.Errorf("renderings: %v", result.Charts)
	}
	repo["base/kustomization.yaml"] = "helmCharts:\n- {name: web, releaseName: x, skipHooks: true}\n"
	objects, _, _ = repo.build(t, limit.Limits{}, roomy)
	if len(objects) != 3 {
		t.Errorf("with skipHooks: %s", objects)
	}
}

// What is wrong with an entry of helmCharts is reported with its line, before anything is built.
func TestChartFaults(t *testing.T) {
	repo := with(webChart("app/charts/web"), webChart("common/web"), sources{
		"app/values.yaml": "replicas: 1\n", "app/charts/file": "a", "app/charts/link": "link", "app/charts/none/a.yaml": "a",
	})
	for entry, want := range map[string]string{
		"name: web": "",
		"name: web, valuesFile: values.yaml, additionalValuesFiles: [charts/web/values.yaml]": "",
		"repo: https://charts.example.com":                 " name is missing; write the name of the chart, which is that of its directory in charts",
		"name: web, valuesMerge: deep":                     `.valuesMerge: unsupported value "deep"; use override, merge or replace`,
		"name: web, releaseName: a, nameTemplate: b":       ".nameTemplate: cannot be set with releaseName; remove one of them",
		"name: web, kubeVersion: latest":                   `.kubeVersion: "latest" is not a version of Kubernetes; write one such as 1.37.0`,
		"name: db":                                         " the commit has no app/charts/db; correct the name or helmGlobals.chartHome, commit the chart, or write its repo and version",
		"name: file":                                       " app/charts/file is a file, and a chart is a directory; unpack it, or correct the name",
		"name: link":                                       " app/charts/link is a symbolic link, which is never followed; commit the directory itself",
		"name: none":                                       " the commit has no app/charts/none/Chart.yaml, so that app/charts/none is no chart; correct the name or helmGlobals.chartHome",
		"name: ../../../web":                               ` the chart ../../../web in "charts" is outside of the repository; write a relative path in helmGlobals.chartHome`,
		"name: web, valuesFile: none.yaml":                 ".valuesFile: the commit has no app/none.yaml; correct the name, or add the file",
		"name: web, valuesFile: ../common/web/values.yaml": ".valuesFile: common/web/values.yaml is not in or below app, and kustomize takes files only from there; refer to a directory with a kustomization, or move the file",
		"name: web, additionalValuesFiles: ['https://a.example']":    `.additionalValuesFiles: "https://a.example" is remote, and nothing is downloaded while a commit is read; copy its content into the repository`,
		"name: db, repo: 'https://charts.example.com', version: 1.x": " the chart https://charts.example.com/db:1.x is not locked; run gitfleet lock, and commit gitfleet.lock.yaml",
		"name: db, repo: 'oci://r.example/charts/'":                  " the chart oci://r.example/charts/db:* is not locked; run gitfleet lock, and commit gitfleet.lock.yaml",
		"name: db, repo: 'git@example.com:a'":                        `.repo: "git@example.com:a" is not the address of charts; write oci://HOST/PATH without the name of the chart, or https://HOST/PATH of a repository with an index.yaml, without credentials, which are set in hosts of the configuration`,
		"name: web, repo: ../common":                                 `.repo: "../common" is a directory, and not the address of a chart repository, which helm needs too; remove repo, and write the directory that has the chart as helmGlobals.chartHome`,
		"name: db, repo: 'https://charts.example.com', version: new": `.version: "new" is neither a version nor a range of versions such as ^1.2 or 1.x`,
	} {
		files := maps.Clone(repo)
		files["app/kustomization.yaml"] = "helmCharts:\n- {" + entry + "}\n"
		g, err := Read(tree.New(files.mapFS(), 1<<20), []string{"app"}, limit.Limits{}.WithDefaults(), Remotes{LockFile: lockfile.Name})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		if want != "" {
			all = []string{"app/kustomization.yaml:2: helmCharts[0]" + strings.Replace(want, " ", ": ", 1)}
			if strings.HasPrefix(want, ".") {
				all = []string{"app/kustomization.yaml:2: helmCharts[0]" + want}
			}
		}
		checkLines(t, entry, messages(g), all)
	}
	// A chart of another directory of the repository may be used.
	common := maps.Clone(repo)
	common["app/kustomization.yaml"] = "helmGlobals: {chartHome: ../common}\nhelmCharts:\n- {name: web, namespace: a}\n"
	if objects, problems, _ := common.build(t, limit.Limits{}, roomy); len(objects) != 3 || len(problems) > 0 {
		t.Errorf("%s %s", objects, problems)
	}
}

// What is wrong with a chart is reported when it is rendered, with the position in the chart.
func TestChartsThatCannotBeRendered(t *testing.T) {
	for name, test := range map[string]struct{ entry, file, text, want string }{
		"random":        {"", "templates/a.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: {{ randAlphaNum 5 }}}\n", "app/charts/web/templates/a.yaml:4: randAlphaNum has another result each time, so that Secret a (app/charts/web/templates/a.yaml: data.a) would never be as Git says; set the value that the chart makes up otherwise, refer to a Secret that exists (many charts have existingSecret), or commit the object itself"},
		"fail":          {"", "templates/a.yaml", "\n{{ fail \"no\" }}", "app/charts/web/templates/a.yaml:2: the chart refuses its values: no"},
		"not YAML":      {"", "templates/a.yaml", "a: b: c\n", "app/charts/web/templates/a.yaml: in what it renders, line 1: not valid YAML: mapping values are not allowed in this context; check the indentation here, and put text that has a colon in quotes"},
		"not an object": {"", "templates/a.yaml", "- a\n", "app/charts/web/templates/a.yaml: the chart renders a list, and not an object"},
		"a Pod":         {"", "templates/a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {helm.sh/hook: pre-install}}\n", "app/charts/web/templates/a.yaml:1: a is a Pod that is a hook, and only Jobs are run as hooks; make it a Job, or write hooks: Ignore, which is skipHooks: true in a kustomization"},
		"the name":      {", nameTemplate: '{{ randAlpha 3 }}'", "a", "", "app/kustomization.yaml:2: helmCharts[0].nameTemplate: randAlpha has another result each time, so that the release would have another name; write releaseName"},
		"a long name":   {", nameTemplate: '{{ repeat 54 \"a\" }}'", "a", "", "app/kustomization.yaml:2: helmCharts[0].nameTemplate: \"" + strings.Repeat("a", 54) + "\" has more than 53 characters, which Helm does not allow; write a shorter one"},
		"the values":    {", valuesInline: {image: text}", "a", "", "app/kustomization.yaml:2: helmCharts[0].valuesInline: cannot be merged with app/charts/web/values.yaml: image is a mapping in one of them and text in the other"},
		"a values file": {", valuesFile: v.yaml", "../../v.yaml", "- a\n", "app/v.yaml:1: values are a mapping, not a list"},
		"encrypted":     {", valuesFile: v.yaml", "../../v.yaml", "a: ENC[AES256_GCM,data:9mF0Zg==,iv:aXY=,tag:dGFn,type:str]\nsops: {mac: 'ENC[AES256_GCM,data:aGVsbG8=,iv:aXY=,tag:dGFn,type:str]'}\n", "app/v.yaml:1: it is encrypted with SOPS, and files of charts are not decrypted; refer to a Secret that exists, such as one that a SealedSecret or an ExternalSecret makes"},
	} {
		repo := webChart("app/charts/web")
		repo["app/kustomization.yaml"] = "helmCharts:\n- {name: web, namespace: a" + test.entry + "}\n"
		repo[filepath.Join("app/charts/web", test.file)] = test.text
		_, problems, _ := repo.build(t, limit.Limits{}, roomy)
		if !strings.HasPrefix(test.want, "app/kustomization.yaml") {
			test.want += " (built by app/kustomization.yaml)"
		}
		checkLines(t, name, problems, []string{test.want})
	}
}

// A base with a chart that has no namespace cannot be in two of them at once.
func TestChartInTwoNamespaces(t *testing.T) {
	repo := with(webChart("base/charts/web"), sources{
		"kustomization.yaml":      "resources: [a, b]\n",
		"a/kustomization.yaml":    "namespace: a\nnamePrefix: a-\nresources: [../base]\n",
		"b/kustomization.yaml":    "namespace: b\nnamePrefix: b-\nresources: [../base]\n",
		"base/kustomization.yaml": "helmCharts:\n- {name: web}\n",
	})
	_, problems, _ := repo.build(t, limit.Limits{}, roomy)
	checkLines(t, "problems", problems, []string{
		"base/kustomization.yaml:2: helmCharts[0]: its base is built for several namespaces (a, b) at once, so that it is not known in which one the chart is; write namespace here (built by kustomization.yaml)",
	})
}

// A locked chart is taken from the cache, its objects have the position of the entry, and its files of values may be named as if
// kustomize had pulled it.
func TestLockedChart(t *testing.T) {
	request := lockfile.Request{Repository: "oci://r.example/charts", Name: "web", Version: "^1"}
	locked := lockfile.Chart{Request: request, Resolved: "1.0.0", Digest: "sha256:" + strings.Repeat("a", 64)}
	files := sources{}
	for name, text := range webChart("web") {
		files[strings.TrimPrefix(name, "web/")] = text
	}
	repo := sources{"app/kustomization.yaml": "namespace: a\nhelmCharts:\n- name: web\n  repo: oci://r.example/charts\n  version: ^1\n  valuesFile: charts/web-^1/web/values.yaml\n"}
	var err error
	remotes := Remotes{LockFile: lockfile.Name, Lock: lockfile.File{Charts: []lockfile.Chart{locked}}, Charts: func(c lockfile.Chart) (fs.FS, error) {
		return files.mapFS(), err
	}}
	read := func() *Graph {
		g, err := Read(tree.New(repo.mapFS(), 1<<20), []string{"app"}, limit.Limits{}.WithDefaults(), remotes)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := read()
	var objects []string
	built, _, failed := g.Target("app").Build(roomy, func(r *document.Report, object any) {
		objects = append(objects, fmt.Sprintf("%s %s", object.(map[string]any)["kind"], r.Origin))
	})
	if failed != nil || len(built.Problems)+len(g.Problems()) > 0 {
		t.Fatal(failed, built.Problems, g.Problems())
	}
	slices.Sort(objects)
	checkLines(t, "objects", objects, []string{"ConfigMap app/kustomization.yaml:3", "Deployment app/kustomization.yaml:3", "ServiceAccount app/kustomization.yaml:3"})
	if want := []string{"app/kustomization.yaml", lockfile.Name}; !slices.Equal(g.Target("app").Sources(), want) {
		t.Errorf("sources %v", g.Target("app").Sources())
	}
	if got := g.RemoteCharts(); len(got) != 1 || got[0].Missing || got[0].Chart != locked || len(g.Charts()) > 0 {
		t.Errorf("charts %v", got)
	}
	files["templates/web.yaml"] = "{{ fail \"no\" }}"
	built, _, _ = read().Target("app").Build(roomy, func(*document.Report, any) {})
	if len(built.Problems) != 1 || built.Problems[0].Error() != "app/kustomization.yaml:3: helmCharts[0]: r.example/charts/web@1.0.0-aaaaaaaaaaaa/templates/web.yaml:1: the chart refuses its values: no" {
		t.Errorf("problems %v", built.Problems)
	}
	err = fs.ErrNotExist
	g = read()
	checkLines(t, "missing", messages(g), []string{"app/kustomization.yaml:3: helmCharts[0]: the chart oci://r.example/charts/web:^1, locked at version 1.0.0 with digest " + locked.Digest + ", is not in the cache: file does not exist"})
	if got := g.RemoteCharts(); len(got) != 1 || !got[0].Missing {
		t.Errorf("charts %v", got)
	}
}

// A chart is rendered once for the overlays of its base, and what it costs is limited.
func TestChartsAreRenderedOnce(t *testing.T) {
	repo := with(webChart("base/charts/web"), sources{
		"base/kustomization.yaml": "helmCharts:\n- {name: web, namespace: a}\n",
		"a/kustomization.yaml":    "resources: [../base]\n", "b/kustomization.yaml": "resources: [../base]\n",
	})
	g := repo.graph(t, limit.Limits{})
	all := map[string]int64{}
	for _, dir := range g.Roots {
		built, _, err := g.Target(dir).Build(roomy, func(*document.Report, any) {})
		if err != nil || len(built.Problems) > 0 {
			t.Fatal(err, built.Problems)
		}
		maps.Copy(all, built.Charts)
	}
	if steps := g.charts["base/charts/web"].Steps; len(all) != 1 || all["base/kustomization.yaml: chart 0 in a"] != steps {
		t.Errorf("%v, and the chart took %d steps", all, steps)
	}
	before, err := g.Target("a").Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	repo["base/charts/web/templates/config.yaml"] += "#\n"
	if after, err := repo.graph(t, limit.Limits{}).Target("a").Fingerprint(); err != nil || after == before {
		t.Error("another template does not change the fingerprint", err)
	}
	repo["base/charts/web/templates/config.yaml"] = `kind: {{ $x := repeat 10000000 "x" }}{{ $y := print $x "" }}{{ range 2000 }}{{ if eq $x $y }}{{ end }}{{ end }}`
	built, _, err := repo.graph(t, limit.Limits{}).Target("a").Build(roomy, func(*document.Report, any) {})
	if err != nil || len(built.Problems) != 1 || !strings.Contains(built.Problems[0].Message, "too many steps") {
		t.Error(err, built.Problems)
	}
}

// Inline values are merged as kustomize merges them.
func TestMergeValues(t *testing.T) {
	leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Just[any]("text"), rapid.Just[any](1.5), rapid.Just[any](true), rapid.Just[any]([]any{"a", 2.0}))
	var table func(depth int) *rapid.Generator[map[string]any]
	table = func(depth int) *rapid.Generator[map[string]any] {
		value := leaf
		if depth > 0 {
			value = rapid.OneOf(leaf, rapid.Map(table(depth-1), func(m map[string]any) any { return m }))
		}
		return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), value, 0, 3)
	}
	rapid.Check(t, func(t *rapid.T) {
		file, inline := table(2).Draw(t, "file"), table(2).Draw(t, "inline")
		how := rapid.SampledFrom([]string{"", mergeOverride, mergeMerge}).Draw(t, "how")
		source, err := yaml.FromMap(inline)
		if err != nil {
			t.Fatal(err)
		}
		into, err := yaml.FromMap(file)
		if err != nil {
			t.Fatal(err)
		}
		if how == mergeMerge {
			source, into = into, source
		}
		var want map[string]any
		merged, failed := merge2.Merge(source, into, yaml.MergeOptions{})
		if failed == nil {
			want, err = merged.Map()
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := mergeValues(file, inline, how)
		if (err != nil) != (failed != nil) {
			t.Fatalf("got %v, %v, want %v, %v", got, err, want, failed)
		}
		gotText, _ := json.Marshal(got)
		wantText, _ := json.Marshal(want)
		if err == nil && string(gotText) != string(wantText) {
			t.Fatalf("got %s, want %s", gotText, wantText)
		}
	})
}
