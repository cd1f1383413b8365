package build

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
)

// sources maps file names to their content. The content "link" or "module" makes it a
// symbolic link or a submodule.
type sources map[string]string

func (r sources) mapFS() fstest.MapFS {
	files := fstest.MapFS{}
	for name, text := range r {
		file := &fstest.MapFile{Data: []byte(text)}
		switch text {
		case "link":
			file.Mode = fs.ModeSymlink
		case "module":
			file.Mode = fs.ModeIrregular
		}
		files[name] = file
	}
	return files
}

// graph reads the kustomizations in all directories of the repository that have one.
func (r sources) graph(t rapid.TB, limits limit.Limits) *Graph {
	t.Helper()
	var dirs []string
	for name := range r {
		if slices.Contains(FileNames, path.Base(name)) {
			dirs = append(dirs, path.Dir(name))
		}
	}
	slices.Sort(dirs)
	g, err := Read(tree.New(r.mapFS(), 1<<20), slices.Compact(dirs), limits.WithDefaults(), Remotes{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// parsed returns the kustomization of a file, whose references are not resolved.
func parsed(name, text string) *kustomization {
	k := &kustomization{file: name}
	g := &Graph{tree: tree.New(sources{name: text}.mapFS(), 1<<20), limits: limit.Limits{}.WithDefaults()}
	if err := g.readFile(k, name, k.parse); err != nil {
		panic(err)
	}
	return k
}

func checkLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n  %s\nwant:\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func messages(g *Graph) []string {
	var out []string
	for _, p := range g.Problems().Sort() {
		out = append(out, p.Marked())
	}
	return out
}

const namespaceText = "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n"

// A reference must be to something in the commit that kustomize reads there. Each refusal names
// the field and its line.
func TestReferences(t *testing.T) {
	const remote = `" is a remote base that is not locked; run gitfleet lock, and commit gitfleet.lock.yaml`
	const outside = `" is outside of the repository; write a relative path to something in it`
	repo := sources{
		"app/ns.yaml": namespaceText, "app/sub/ns.yaml": namespaceText, "app/link.yaml": "link", "app/module": "module",
		"app/plain/ns.yaml": namespaceText, "ns.yaml": namespaceText, "link": "link",
		"base/kustomization.yml": "resources: [ns.yaml]\n", "base/ns.yaml": namespaceText,
		"component/Kustomization": "kind: Component\nresources: [ns.yaml]\n", "component/ns.yaml": namespaceText,
		"kustomization.yaml": "resources: [ns.yaml]\n",
	}
	for text, want := range map[string]string{
		"resources: [ns.yaml, sub/ns.yaml, ./sub/../ns.yaml, ../base]": "",
		"components: [../component]":                                   "",
		"resources: ['']":                                              "resources[0]: is empty; name a file, or remove the entry",
		"resources: [none.yaml]":                                       "resources[0]: the commit has no app/none.yaml; correct the name, or add the file",
		"resources: [../none]":                                         "resources[0]: the commit has no none; correct the name, or add the file",
		"resources: [ns.yaml/below]":                                   "resources[0]: the commit has no app/ns.yaml/below; correct the name, or add the file",
		"resources: [plain]":                                           "resources[0]: the directory app/plain has no kustomization.yaml; add one, or list its files",
		"resources: [.]":                                               "resources[0]: app contains this kustomization, so they would refer to each other in a cycle; remove the reference",
		"resources: [..]":                                              "resources[0]: . contains this kustomization, so they would refer to each other in a cycle; remove the reference",
		"resources: [../ns.yaml]":                                      "resources[0]: ns.yaml is not in or below app, and kustomize takes files only from there; refer to a directory with a kustomization, or move the file",
		"resources: [../base/ns.yaml]":                                 "resources[0]: base/ns.yaml is not in or below app, and kustomize takes files only from there; refer to a directory with a kustomization, or move the file",
		"resources: [../component]":                                    "resources[0]: component is a component; list it under components",
		"components: [../base]":                                        "components[0]: base is no component; list it under resources, or write kind: Component in its file",
		"resources: [../..]":                                           `resources[0]: "../..` + outside,
		"resources: [../../etc]":                                       `resources[0]: "../../etc` + outside,
		"resources: [/etc]":                                            `resources[0]: "/etc` + outside,
		"resources: ['https://example.com/a/b']":                       `resources[0]: "https://example.com/a/b` + remote,
		"resources: [github.com/org/app]":                              `resources[0]: "github.com/org/app` + remote,
		"resources: ['git@example.com:org/app']":                       `resources[0]: "git@example.com:org/app` + remote,
		"resources: [link.yaml]":                                       "resources[0]: app/link.yaml is a symbolic link, which is never followed; commit the file itself",
		"resources: [../link/base]":                                    "resources[0]: link is a symbolic link, which is never followed; commit the file itself",
		"resources: [module]":                                          "resources[0]: app/module is a submodule, which is never followed; commit the file itself",
		"components: [../component/ns.yaml]":                           "components[0]: component/ns.yaml is a file; a component is a directory with a kustomization of kind Component",
		"resources: [ns.yaml]\npatches: [{path: plain}]":               "patches[0].path: app/plain is a directory; name a file",
		"resources: [ns.yaml]\npatches: [{path: none.yaml}]":           "patches[0].path: the commit has no app/none.yaml; correct the name, or add the file",
		"resources: [ns.yaml]\ncrds: [none.json]":                      "crds[0]: the commit has no app/none.json; correct the name, or add the file",
		"resources: [ns.yaml]\nconfigurations: [none.yaml]":            "configurations[0]: the commit has no app/none.yaml; correct the name, or add the file",
		"resources: [ns.yaml]\nopenapi: {path: none.json}":             "openapi.path: the commit has no app/none.json; correct the name, or add the file",
		"resources: [ns.yaml]\nreplacements: [{path: none.yaml}]":      "replacements[0].path: the commit has no app/none.yaml; correct the name, or add the file",
		"configMapGenerator: [{name: a, files: [a=none.txt]}]":         "configMapGenerator[0].files[0]: the commit has no app/none.txt; correct the name, or add the file",
		"configMapGenerator: [{name: a, env: none.env}]":               "configMapGenerator[0].env: the commit has no app/none.env; correct the name, or add the file",
		"secretGenerator: [{name: a, envs: [none.env]}]":               "secretGenerator[0].envs[0]: the commit has no app/none.env; correct the name, or add the file",
		"configMapGenerator: [{name: a, files: ['git@host:a']}]":       "configMapGenerator[0].files[0]: the commit has no app/git@host:a; correct the name, or add the file",
		"resources: [ns.yaml]\ntransformers: [none.yaml]":              "transformers[0]: the commit has no app/none.yaml; correct the name, or add the file",
	} {
		files := maps.Clone(repo)
		files["app/kustomization.yaml"] = text + "\n"
		line := strings.Count(text, "\n") + 1
		var got []string
		for _, m := range messages(files.graph(t, limit.Limits{})) {
			if !strings.HasSuffix(m, "(warning)") {
				got = append(got, m)
			}
		}
		var all []string
		if want != "" {
			all = []string{fmt.Sprintf("app/kustomization.yaml:%d: %s", line, want)}
		}
		checkLines(t, text, got, all)
	}
}

// A kustomization file that kustomize could not read is refused with what it expects.
func TestReadKustomization(t *testing.T) {
	const deprecated = ": kustomize has deprecated this field; use "
	for text, want := range map[string][]string{
		"namePrefix: a-":                      nil,
		"":                                    {"k: a kustomization is one document, and this file has 0"},
		"namePrefix: a-\n---\nnamePrefix: b-": {"k: a kustomization is one document, and this file has 2"},
		"[a]":                                 {"k:1: a kustomization is a mapping with fields such as resources"},
		"{}":                                  {"k:1: the kustomization is empty; list something under resources, or remove the file"},
		"\nresource: [a.yaml]":                {"k:2: resource: unknown field; did you mean resources?"},
		"images: [&a {name: a}, {<<: *a, nam: b}]": {"k:1: images[1].nam: unknown field; did you mean name?"},
		"namePrefix: a-\nimages: [{nam: a}]":       {"k:2: images[0].nam: unknown field; did you mean name?"},
		"namePrefix: a-\nresources: a.yaml":        {"k:2: resources: must be a list, not text; write it with - before each item"},
		"replicas: [{name: a, count: \"3\"}]":      {"k:1: replicas[0].count: must be a whole number, not text; write it without quotes"},
		"namePrefix: 3":                            {"k:1: namePrefix: must be a string, not a number; write it in quotes"},
		"namePrefix: a-\ncommonLabels: [a]":        {"k:2: commonLabels: must be a mapping, not a list; write it as NAME: VALUE"},
		"generatorOptions: {immutable: \"true\"}":  {"k:1: generatorOptions.immutable: must be true or false, not text; write it without quotes"},
		"a: [": {"k:1: not valid YAML: did not find expected node content; check the indentation and the quotes of this line and the one above"},
		"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nspec: {}": {"k:1: apiVersion: a file of this name is read as a kustomization of kustomize, and this is an object of kustomize.toolkit.fluxcd.io/v1; rename the file"},
		"images:\n- {name: a, newTag: '1'}\n- {name: b, newTag: 2}":                 {"k:3: images[1].newTag: must be a string, not a number; write it in quotes"},
		"labels:\n- pairs: {a: b}\n- pairs:\n    c: true":                           {"k:4: labels[1].pairs.c: must be a string, not a boolean; write it in quotes"},
		"patches:\n- a.yaml": {"k:2: patches[0]: must be a mapping, not text; write it as path: FILE"},
		"replacements:\n- source: {kind: A}\n  targets: [{fieldPaths: [a]}]": {"k:3: replacements[0].targets[0]: has no select; write the kind and the name of the objects"},
		"patches:\n- {path: a.yaml, target: {name: 'web('}}":                 {`k:2: patches[0].target.name: "web(" is no regular expression, as which kustomize reads it; correct it`},
		"patches:\n- {path: a.yaml, target: {labelSelector: a=b=c}}":         nil, // kustomize may never read it
		"kind: ConfigMap\nnamePrefix: a-":                                    {"k:1: kind: kind should be Kustomization or Component"},
		"kind: Component\napiVersion: v1\nnamePrefix: a-":                    {"k:2: apiVersion: apiVersion for Component should be kustomize.config.k8s.io/v1alpha1"},
		"namePrefix: a-\nhelmCharts: [{nam: a}]":                             {"k:2: helmCharts[0].nam: unknown field; did you mean name?"},
		"namePrefix: a-\nhelmGlobals: {}":                                    nil,
		"helmChartInflationGenerator: [{}]":                                  {"k:1: helmChartInflationGenerator: kustomize has deprecated this field, which is not read; use helmCharts"},
		"namePrefix: a-\ncommonLabels: {a: b}":                               {"k:2: commonLabels" + deprecated + "labels with includeSelectors: true (warning)"},
		"namePrefix: a-\nbases: []":                                          {"k:2: bases" + deprecated + "resources (warning)"},
		"namePrefix: a-\nimageTags: []":                                      {"k:2: imageTags" + deprecated + "images (warning)"},
		"namePrefix: a-\npatchesJson6902: []":                                {"k:2: patchesJson6902" + deprecated + "patches (warning)"},
		"namePrefix: a-\npatchesStrategicMerge: []":                          {"k:2: patchesStrategicMerge" + deprecated + "patches (warning)"},
		"namePrefix: a-\nvars: []":                                           {"k:2: vars" + deprecated + "replacements (warning)"},
	} {
		var got []string
		for _, p := range parsed("k", text).problems {
			got = append(got, p.Marked())
		}
		checkLines(t, text, got, want)
	}
}

// Generators and transformers are those that kustomize has itself. Others are programs.
func TestPlugins(t *testing.T) {
	const (
		at      = "k:1: transformers[0]: "
		builtin = "apiVersion: builtin, metadata: {name: a}, "
		program = " is no built-in plugin of kustomize, and other plugins are programs, which are never run; use a built-in one, or commit the output of the plugin"
	)
	for plugin, want := range map[string]string{
		builtin + "kind: LabelTransformer":                   "",
		builtin + "kind: HelmChartInflationGenerator":        at + "charts are rendered only where they are listed under helmCharts or generators of a kustomization; move it there",
		builtin + "kind: SedTransformer":                     at + "SedTransformer" + program,
		"apiVersion: example.com/v1, kind: PatchTransformer": at + "PatchTransformer" + program,
		"apiVersion: builtin":                                at + "a generator or transformer has apiVersion: builtin and a kind",
	} {
		text := "transformers: [\"{" + plugin + "}\"]"
		var want2 []string
		if want != "" {
			want2 = []string{want}
		}
		var got []string
		for _, p := range parsed("k", text).problems {
			got = append(got, p.Error())
		}
		checkLines(t, text, got, want2)
	}
}

// A plugin that is configured in a file is read from there, and its references are resolved
// like those of the kustomization.
func TestPluginFiles(t *testing.T) {
	const kustomization = "resources: [ns.yaml]\ntransformers: [plugin.yaml]\n"
	for plugin, want := range map[string][]string{
		"apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npath: ns.yaml\n":                            nil,
		"apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\nPath: none.yaml\n":                          {"app/kustomization.yaml:1: the commit has no app/none.yaml; correct the name, or add the file"},
		"apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: a}\nreplacements: [{path: ../ns.yaml}]\n": {"app/kustomization.yaml:1: the commit has no ns.yaml; correct the name, or add the file"},
		"apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: a}\nfiles: [a=none.txt]\n":                       {"app/kustomization.yaml:1: the commit has no app/none.txt; correct the name, or add the file"},
		"- a\n":  {"app/plugin.yaml:1: a generator or transformer is a mapping with apiVersion: builtin and a kind"},
		"a: [\n": {"app/plugin.yaml:1: not valid YAML: did not find expected node content; check the indentation and the quotes of this line and the one above"},
	} {
		g := sources{"app/kustomization.yaml": kustomization, "app/ns.yaml": namespaceText, "app/plugin.yaml": plugin}.graph(t, limit.Limits{})
		checkLines(t, plugin, messages(g), want)
	}
}

// What no other kustomization includes is built. What a kustomization lists belongs to it, and
// so do the other manifests beside it.
func TestRootsAndOwners(t *testing.T) {
	g := sources{
		"prod/kustomization.yaml": "resources: [../base]\ncomponents: [../tls]\n", "test/kustomization.yaml": "resources: [../base]\nsortOptions: {order: fiffo}\n",
		"base/kustomization.yml": "resources: [ns.yaml, sub/ns.yaml]\nconfigMapGenerator: [{name: a, files: [data/a.txt]}]\nsortOptions: {}\n", // in a base it is not read
		"base/ns.yaml":           namespaceText, "base/sub/ns.yaml": namespaceText, "base/data/a.txt": "a",
		"tls/Kustomization": "kind: Component\nnamePrefix: a-\n", "unused/kustomization.yaml": "kind: Component\nnamePrefix: a-\n",
	}.graph(t, limit.Limits{})
	if want := []string{"prod", "test"}; !slices.Equal(g.Roots, want) {
		t.Errorf("roots %v, want %v", g.Roots, want)
	}
	checkLines(t, "problems", messages(g), []string{`test/kustomization.yaml:2: sortOptions.order: "fiffo" is no order of kustomize; did you mean fifo?`, "unused/kustomization.yaml:1: no kustomization uses this component, so it has no effect (warning)"})
	for name, want := range map[string]struct {
		owner  string
		listed bool
	}{
		"base/ns.yaml":        {"base/kustomization.yml", true},
		"base/other.yaml":     {"base/kustomization.yml", false},
		"base/sub/ns.yaml":    {"base/kustomization.yml", true},
		"base/sub/other.yaml": {"base/kustomization.yml", false}, // the kustomization lists manifests of this directory
		"base/data/a.txt":     {"base/kustomization.yml", true},
		"base/data/b.yaml":    {"", false}, // it has only data
		"plain/ns.yaml":       {"", false},
		"tls/a.yaml":          {"tls/Kustomization", false},
	} {
		if owner, listed := g.Owner(name); owner != want.owner || listed != want.listed {
			t.Errorf("%s belongs to %q, %t; want %q, %t", name, owner, listed, want.owner, want.listed)
		}
	}
	target := g.Target("prod")
	if want := []string{"base/data/a.txt", "base/kustomization.yml", "base/ns.yaml", "base/sub/ns.yaml", "prod/kustomization.yaml", "tls/Kustomization"}; !slices.Equal(target.Sources(), want) {
		t.Errorf("sources %v, want %v", target.Sources(), want)
	}
}

// A circle is reported once, at the reference that closes it, also if nothing outside refers to
// it.
func TestCycles(t *testing.T) {
	for name, test := range map[string]struct {
		repo sources
		want []string
	}{
		"two": {
			sources{"a/kustomization.yaml": "resources:\n- ../b\n", "b/kustomization.yaml": "resources:\n- ../a\n"},
			[]string{"b/kustomization.yaml:2: resources[0]: these kustomizations refer to each other in a cycle: a -> b -> a; remove one of the references"},
		},
		"below a root": {
			sources{"root/kustomization.yaml": "resources: [../c]\n", "c/kustomization.yaml": "resources: [../d]\n", "d/kustomization.yaml": "namePrefix: a-\nresources: [../c]\n"},
			[]string{"d/kustomization.yaml:2: resources[0]: these kustomizations refer to each other in a cycle: c -> d -> c; remove one of the references"},
		},
		"a base twice is none": {
			sources{"a/kustomization.yaml": "resources: [../b, ../c]\n", "b/kustomization.yaml": "resources: [../c]\n", "c/kustomization.yaml": "namePrefix: a-\n"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkLines(t, "problems", messages(test.repo.graph(t, limit.Limits{})), test.want)
		})
	}
}

// Repeated references multiply: fourteen levels of two references are more than ten thousand
// kustomizations.
func TestVisitsAreLimited(t *testing.T) {
	pyramid := func(levels int) sources {
		repo := sources{"l0/kustomization.yaml": "namePrefix: a-\n"}
		for i := range levels {
			repo[fmt.Sprintf("l%d/kustomization.yaml", i+1)] = fmt.Sprintf("resources: [../l%d, ../l%d/.]\n", i, i)
		}
		return repo
	}
	// n levels have 2^(n+1) - 1 kustomizations
	checkLines(t, "twelve levels", messages(pyramid(12).graph(t, limit.Limits{})), nil)
	checkLines(t, "thirteen levels", messages(pyramid(13).graph(t, limit.Limits{})), []string{
		"l13/kustomization.yaml: the build would go through more than 10000 kustomizations; refer to each base fewer times",
	})
}

// A list of very many references that are all wrong is reported in part.
func TestProblemsOfAKustomizationAreLimited(t *testing.T) {
	g := sources{"app/kustomization.yaml": "resources: [" + strings.Repeat("none.yaml, ", 1000) + "]\n"}.graph(t, limit.Limits{})
	if n := len(g.Problems()); n != 101 {
		t.Errorf("%d problems, want 101", n)
	}
}

// Kustomization files that are too large for the memory of a commit are not all read, and a
// file above the size limit is a problem.
func TestGraphLimits(t *testing.T) {
	repo := sources{}
	for i := range 10 {
		repo[fmt.Sprintf("k%d/kustomization.yaml", i)] = "configMapGenerator: [{name: a, literals: [" + strings.Repeat("a=b, ", 100) + "]}]\n"
	}
	g := repo.graph(t, limit.Limits{CommitSize: 20_000})
	if g.Size <= 20_000 || g.Last == "" || len(g.nodes) == 10 {
		t.Errorf("%d of 10 kustomizations are read, up to %s, with %d bytes", len(g.nodes), g.Last, g.Size)
	}
	huge := sources{"app/kustomization.yaml": "# " + strings.Repeat("a", 1<<20) + "\nnamePrefix: a-\n"}
	checkLines(t, "problems", messages(huge.graph(t, limit.Limits{})), []string{
		"app/kustomization.yaml: the file is larger than 1 MiB; split it, or raise limits.fileSize",
	})
}
