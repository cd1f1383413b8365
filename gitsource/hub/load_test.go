package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
)

const namespaceText = "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n"

func namespace(name string) string { return fmt.Sprintf(namespaceText, name) }

// load loads a commit with an empty cache.
func load(commit Commit, fsys fs.FS, opts Options) (*Snapshot, error) {
	return NewLoader(opts).Load(commit, fsys)
}

func mustLoad(t testing.TB, l *Loader, tree fs.FS) *Snapshot {
	t.Helper()
	s, err := l.Load(Commit{Hash: "c0ffee"}, tree)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOptionsValidate(t *testing.T) {
	for want, opts := range map[string]Options{
		`path "../up"`: {Path: "../up"},
		`path "/etc"`:  {Path: "/etc"},
	} {
		if err := opts.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want it to name %s", opts, err, want)
		}
	}
	for _, path := range []string{"", ".", "./", "apps", "apps/", "./apps"} {
		if err := (Options{Path: path}).Validate(); err != nil {
			t.Errorf("path %q: %v", path, err)
		}
	}
}

// For each limit, a commit exactly at the limit loads and one just above it does not.
func TestLimits(t *testing.T) {
	documents := strings.Repeat("---\n"+namespace("a"), 1) + "---\n" + namespace("b")
	build := map[string]string{
		"app/kustomization.yaml": "resources: [ns.yaml]\n", "app/ns.yaml": namespace("web"),
	}
	const built = len(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"web"}}`)
	aliased := "apiVersion: example.com/v1\nkind: A\nmetadata: {name: a, namespace: b}\n" +
		"a: &a [x, x, x, x]\nb: [*a, *a, *a, *a]\n"
	tests := map[string]struct {
		files   map[string]string
		fine    Limits
		tooMuch Limits
	}{
		"files":     {map[string]string{"a.yaml": namespace("a"), "b.txt": ""}, Limits{Files: 2}, Limits{Files: 1}},
		"directory": {map[string]string{"a/a.yaml": namespace("a"), "b.txt": ""}, Limits{Files: 3}, Limits{Files: 2}},
		"builds":    {map[string]string{"a/kustomization.yaml": "resources: [n.yaml]\n", "a/n.yaml": namespace("a"), "b/kustomization.yaml": "resources: [n.yaml]\n", "b/n.yaml": namespace("b")}, Limits{Builds: 2}, Limits{Builds: 1}},
		"fileSize":  {map[string]string{"a.yaml": namespace("a")}, Limits{FileSize: int64(len(namespace("a")))}, Limits{FileSize: int64(len(namespace("a"))) - 1}},
		"documents": {map[string]string{"a.yaml": documents}, Limits{Documents: 2}, Limits{Documents: 1}},
		// 37 nodes, and 4 × 6 more from the aliases
		"aliasExpansion": {map[string]string{"a.yaml": strings.Replace(aliased, "*a]", "*a, *a, *a, *a, *a, *a, *a]", 1)}, Limits{AliasExpansion: 2}, Limits{AliasExpansion: 1}},
		"depth":          {map[string]string{"a.yaml": namespace("a")}, Limits{Depth: 2}, Limits{Depth: 1}},
		"directories":    {map[string]string{"a/b/c.yaml": namespace("a")}, Limits{Depth: 2}, Limits{Depth: 1}},
		"objects":        {map[string]string{"a.yaml": documents}, Limits{Objects: 2}, Limits{Objects: 1}},
		"buildOutput":    {build, Limits{BuildOutput: int64(built)}, Limits{BuildOutput: int64(built) - 1}},
		"buildTime":      {build, Limits{BuildTime: time.Minute}, Limits{BuildTime: time.Nanosecond}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tree := newMemoryTree(test.files)
			if _, err := load(Commit{}, tree, Options{Limits: test.fine}); err != nil {
				t.Errorf("at the limit %+v: %v", test.fine, err)
			}
			_, err := load(Commit{}, tree, Options{Limits: test.tooMuch})
			if problem := (*LoadError)(nil); !errors.As(err, &problem) {
				t.Errorf("above the limit %+v: %v, want problems", test.tooMuch, err)
			}
		})
	}
}

// A commit that cannot be read is never taken for a commit with fewer objects.
func TestReadFailuresAreNotProblems(t *testing.T) {
	tree := newMemoryTree(map[string]string{
		".gitfleetignore":        "*.txt\n",
		"a/ns.yaml":              namespace("a"),
		"b/.gitfleetignore":      "x.yaml\n",
		"app/kustomization.yaml": "resources: [ns.yaml, ../base]\ntransformers: [t.yaml]\n",
		"app/ns.yaml":            namespace("web"),
		"app/t.yaml":             "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: p}\nlabels: {a: b}\nfieldSpecs: [{path: metadata/labels, create: true}]\n",
		"base/kustomization.yml": "resources: [ns.yaml]\n",
		"base/ns.yaml":           namespace("base"),
	})
	failing := &failingTree{memoryTree: tree, after: 1 << 30}
	mustLoad(t, NewLoader(Options{}), failing)
	calls := failing.calls
	if calls < 20 {
		t.Fatalf("only %d calls", calls)
	}
	for n := range calls {
		s, err := load(Commit{}, &failingTree{memoryTree: tree, after: n}, Options{})
		if problem := (*LoadError)(nil); s != nil || err == nil || errors.As(err, &problem) {
			t.Fatalf("call %d fails: snapshot %v, error %v; want an error that is no problem of the commit", n, s, err)
		}
		if !errors.Is(err, errBroken) {
			t.Errorf("call %d fails: %v does not wrap the cause", n, err)
		}
	}
}

var errBroken = errors.New("object not found")

// A failingTree fails after a number of calls.
type failingTree struct {
	*memoryTree
	calls, after int
}

func (f *failingTree) call() error {
	f.calls++
	if f.calls > f.after {
		return errBroken
	}
	return nil
}

func (f *failingTree) Hash(name string) (string, error) {
	if err := f.call(); err != nil {
		return "", err
	}
	return f.memoryTree.Hash(name)
}

func (f *failingTree) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.call(); err != nil {
		return nil, err
	}
	return f.memoryTree.ReadDir(name)
}

func (f *failingTree) Stat(name string) (fs.FileInfo, error) {
	if err := f.call(); err != nil {
		return nil, err
	}
	return f.memoryTree.Stat(name)
}

func (f *failingTree) Open(name string) (fs.File, error) {
	if err := f.call(); err != nil {
		return nil, err
	}
	return f.memoryTree.Open(name)
}

func TestLoadProcessesOnlyChanges(t *testing.T) {
	files := manyFiles(200)
	files["app/kustomization.yaml"] = "resources: [../base]\n"
	files["base/kustomization.yaml"] = "resources: [ns.yaml]\n"
	files["base/ns.yaml"] = namespace("base")
	files["other/kustomization.yaml"] = "resources: [ns.yaml]\n"
	files["other/ns.yaml"] = namespace("other")
	l := NewLoader(Options{})
	first := mustLoad(t, l, newMemoryTree(files))
	if l.built != 2 {
		t.Fatalf("built %d kustomizations, want 2", l.built)
	}

	same := newMemoryTree(files)
	second := mustLoad(t, l, same)
	const kustomizations = 3
	if same.reads != kustomizations || l.built != 2 {
		t.Errorf("of an unchanged commit %d files were read, want only the kustomizations, and %d more built", same.reads, l.built-2)
	}
	samePointers(t, first.Objects, second.Objects, "")

	files["apps/team-001/object-00077.yaml"] = manifest(77, 1)
	changed := newMemoryTree(files)
	third := mustLoad(t, l, changed)
	if changed.reads != 1+kustomizations || l.built != 2 {
		t.Errorf("of a commit of one file %d files were read, want it and the kustomizations, and %d more built", changed.reads, l.built-2)
	}
	samePointers(t, first.Objects, third.Objects, "object-00077")

	files["base/ns.yaml"] = namespace("renamed")
	mustLoad(t, l, newMemoryTree(files))
	if l.built != 3 {
		t.Errorf("after a change of a base %d kustomizations were built, want one more", l.built-2)
	}
}

// samePointers checks that all objects of two commits have the same pointers, but for one
// object.
func samePointers(t *testing.T, before, after []*api.Object, but string) {
	t.Helper()
	if len(before) != len(after) {
		t.Fatalf("%d objects, then %d", len(before), len(after))
	}
	for i := range before {
		if (before[i] != after[i]) != (before[i].ID.Name == but) {
			t.Errorf("%s is shared: %t", before[i].ID, before[i] == after[i])
		}
	}
}

// A build that took too long is tried again; one that is invalid is not.
func TestTimedOutBuildsAreRepeated(t *testing.T) {
	tree := newMemoryTree(map[string]string{"app/kustomization.yaml": "resources: [ns.yaml]\n", "app/ns.yaml": namespace("web")})
	l := NewLoader(Options{Limits: Limits{BuildTime: time.Nanosecond}})
	if _, err := l.Load(Commit{}, tree); err == nil {
		t.Fatal("a build in a nanosecond")
	}
	l.opts.Limits.BuildTime = time.Minute
	mustLoad(t, l, tree)

	broken := newMemoryTree(map[string]string{"app/kustomization.yaml": "resources: [ns.yaml]\npatches: [{patch: nonsense}]\n", "app/ns.yaml": namespace("web")})
	built := l.built
	for range 2 {
		if _, err := l.Load(Commit{}, broken); err == nil {
			t.Fatal("a broken patch")
		}
	}
	if l.built != built+1 {
		t.Errorf("built %d times, want once", l.built-built)
	}
}

// Two commits that are loaded in turn, such as the newest and one that is still rolled out, are
// both cached. What neither of them uses is dropped from the cache.
func TestTheLastTwoLoadsAreCached(t *testing.T) {
	trees := commits(200, 4)
	l := NewLoader(Options{})
	mustLoad(t, l, trees[0])
	mustLoad(t, l, trees[1])
	for range 3 {
		for _, tree := range trees[:2] {
			before := tree.reads
			mustLoad(t, l, tree)
			if tree.reads != before {
				t.Fatalf("going back read %d times", tree.reads-before)
			}
		}
	}
	for range 3 {
		for _, tree := range trees {
			mustLoad(t, l, tree)
		}
	}
	if got, most := len(l.cache), 200+3; got > most {
		t.Errorf("%d files are remembered, want at most %d", got, most)
	}
}

// A loader that has loaded other commits before returns the same result as a new one.
func TestCachedLoadsEqualFreshLoads(t *testing.T) {
	pool := map[string][]string{
		"a.yaml":                 {namespace("a"), namespace("b"), namespace("a") + "---\n" + namespace("c"), "broken: [", "apiVersion: v1\n"},
		"b.yaml":                 {namespace("b"), "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t, namespace: n}\n"},
		"crd.yaml":               {crdText("Cluster"), crdText("Namespaced")},
		"thing.yaml":             {"apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: u}\n", "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: u, namespace: n}\n"},
		"app/kustomization.yaml": {"resources: [../base]\n", "resources: [../base, c.yaml]\nnamePrefix: x-\n", "resources: [none.yaml]\n"},
		"app/c.yaml":             {namespace("c"), namespace("x")},
		"base/kustomization.yml": {"resources: [ns.yaml]\n", "kind: Component\nresources: [ns.yaml]\n"},
		"base/ns.yaml":           {namespace("base"), namespace("c"), "{"},
		".gitfleetignore":        {"a.yaml\n", "app\n", "base\n"},
	}
	rapid.Check(t, func(t *rapid.T) {
		l := NewLoader(Options{})
		files := map[string]string{}
		for range rapid.IntRange(1, 6).Draw(t, "commits") {
			for _, name := range slices.Sorted(maps.Keys(pool)) {
				if n := rapid.IntRange(-2, len(pool[name])-1).Draw(t, name); n >= 0 {
					files[name] = pool[name][n]
				} else if n == -1 {
					delete(files, name)
				}
			}
			tree := newMemoryTree(maps.Clone(files))
			if rapid.Bool().Draw(t, "fails") {
				l.Load(Commit{}, &failingTree{memoryTree: tree, after: rapid.IntRange(0, 30).Draw(t, "after")})
			}
			s, err := l.Load(Commit{}, tree)
			got := describe(s, err)
			s, err = load(Commit{}, tree, Options{})
			if want := describe(s, err); got != want {
				t.Fatalf("the loader returned\n%s\nand a new one\n%s", got, want)
			}
		}
	})
}

func crdText(scope string) string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\n" +
		"spec: {group: example.com, scope: " + scope + ", names: {kind: Thing, plural: things}}\n"
}

// A directory without hashes, such as a checkout, loads like a commit.
func TestACheckoutLoadsLikeACommit(t *testing.T) {
	archive := map[string]string{
		"app/kustomization.yaml": "resources: [ns.yaml]\nconfigMapGenerator: [{name: a, namespace: b, files: [x.txt]}]\n",
		"app/ns.yaml":            namespace("web"), "app/x.txt": "x", "a.yaml": namespace("a"),
	}
	dir := t.TempDir()
	for name, text := range archive {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := load(Commit{}, os.DirFS(dir), Options{})
	got := describe(s, err)
	s, err = load(Commit{}, newMemoryTree(archive), Options{})
	if want := describe(s, err); got != want {
		t.Errorf("the checkout loads as\n%s\nand the commit\n%s", got, want)
	}
}

// A repository with every kind of remote reference causes no network access.
func TestNothingIsDownloadedOrRun(t *testing.T) {
	var visits atomic.Int32
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) })}
	go server.Serve(listener)
	defer server.Close()
	bin := t.TempDir()
	marker := filepath.Join(bin, "ran")
	for _, program := range []string{"git", "helm", "sh"} {
		script := "#!/bin/sh\necho ran >> " + marker + "\n"
		if err := os.WriteFile(filepath.Join(bin, program), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)

	address := "http://" + listener.Addr().String()
	lines := map[string]string{
		"resources":             "resources: [" + address + "/a.yaml]",
		"resources with blank":  "resources: [\" " + address + "/a.yaml\"]",
		"upper case field":      "RESOURCES: [" + address + "/a.yaml]",
		"bases":                 "bases: [" + address + "/org/repo]",
		"components":            "components: [" + address + "/org/repo]",
		"crds":                  "crds: [" + address + "/a.json]",
		"configurations":        "configurations: [" + address + "/a.yaml]",
		"openapi":               "openapi: {path: " + address + "/a.json}",
		"patch":                 "patches: [{path: " + address + "/a.yaml}]",
		"patchesJson6902":       "patchesJson6902: [{target: {kind: Namespace, name: web, version: v1}, path: " + address + "/a.yaml}]",
		"patchesStrategicMerge": "patchesStrategicMerge: [\"" + address + "/{a: b}\"]",
		"replacements":          "replacements: [{path: " + address + "/a.yaml}]",
		"generator":             "configMapGenerator: [{name: a, files: [" + address + "/a]}]",
		"secret generator":      "secretGenerator: [{name: a, env: " + address + "/a}]",
		"git":                   "resources: [\"git@127.0.0.1:org/repo\", \"git::" + address + "/org/repo\", \"file:///org/repo\", \"github.com/org/repo\", \"me@127.0.0.1/org/repo\"]",
		"generators":            "generators: [" + address + "/a.yaml, git@127.0.0.1:org/repo]",
		"transformer":           "transformers: [\"{apiVersion: builtin, kind: PatchTransformer, metadata: {name: a}, pAth: '" + address + "/a.yaml'}\"]",
		"kelvin transformer":    "transformers: [\"{apiVersion: builtin, kind: PatchStrategicMergeTransformer, metadata: {name: a}, path\u017f: ['" + address + "/a.yaml']}\"]",
		"helm":                  "helmCharts: [{name: a, repo: " + address + "}]",
		"helm plugin":           "generators: [\"{apiVersion: builtin, kind: HelmChartInflationGenerator, metadata: {name: a}, name: a, repo: '" + address + "'}\"]",
		"exec plugin":           "transformers: [\"{apiVersion: v1, kind: X, metadata: {name: a, annotations: {config.kubernetes.io/function: 'exec: {path: git}'}}}\"]",
	}
	for name, line := range lines {
		_, err := load(Commit{}, fstest.MapFS{
			"kustomization.yaml": {Data: []byte(line + "\n")},
			// files with the names of remote references do not change that
			"git@127.0.0.1:org/repo/kustomization.yaml": {Data: []byte("namePrefix: a-\n")},
		}, Options{Path: "."})
		if problem := (*LoadError)(nil); !errors.As(err, &problem) {
			t.Errorf("%s: %v, want problems", name, err)
		}
	}
	if n := visits.Load(); n > 0 {
		t.Errorf("%d requests were made", n)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program was run")
	}
}

// kustomize keeps state in global variables. Loaders may still run concurrently; the race
// detector checks that.
func TestLoadersRunConcurrently(t *testing.T) {
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			l := NewLoader(Options{})
			for j := range 3 {
				name := fmt.Sprintf("web-%d-%d", i, j)
				s, err := l.Load(Commit{}, newMemoryTree(map[string]string{
					"app/kustomization.yaml": "namePrefix: a-\nresources: [ns.yaml]\nopenapi: {version: v1.21.2}\nlabels: [{pairs: {a: b}}]\n",
					"app/ns.yaml":            namespace(name),
					"b/kustomization.yaml":   "resources: [ns.yaml]\n",
					"b/ns.yaml":              namespace("b-" + name),
				}))
				if err != nil || len(s.Objects) != 2 || s.Objects[1].ID.Name != name {
					t.Errorf("%s: %v %v", name, s, err)
				}
			}
		})
	}
	group.Wait()
}

// Several goroutines may use one loader.
func TestLoaderIsSafeForConcurrentUse(t *testing.T) {
	l := NewLoader(Options{})
	trees := commits(100, 3)
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			if s, err := l.Load(Commit{}, trees[i%3]); err != nil || len(s.Objects) != 100 {
				t.Errorf("load: %v", err)
			}
		})
	}
	group.Wait()
}

// No message about a hostile repository contains the value of a Secret.
func TestProblemsHaveNoSecrets(t *testing.T) {
	scenes, _ := filepath.Glob("testdata/hostile/*.txtar")
	found := false
	for _, name := range scenes {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		scene, want, _ := strings.Cut(string(text), "-- want --\n")
		found = found || strings.Contains(scene, "hunter2")
		for _, secret := range []string{"hunter2", "123456789012345", "aHVudGVyMg"} {
			if strings.Contains(want, secret) {
				t.Errorf("%s repeats %s", name, secret)
			}
		}
	}
	if !found {
		t.Error("no scene has a secret")
	}
}

// If the last two commits together exceed the memory of one commit, only the last one is cached.
func TestCacheIsLimited(t *testing.T) {
	first, second := newMemoryTree(map[string]string{"a.yaml": manifest(1, 0)}), newMemoryTree(map[string]string{"a.yaml": manifest(1, 1)})
	l := NewLoader(Options{})
	mustLoad(t, l, first)
	var size int64
	for _, p := range l.cache {
		size += p.Size
	}
	for limit, want := range map[int64]int{3 * size: 0, size + size/2: 1} {
		l := NewLoader(Options{Limits: Limits{CommitSize: limit}})
		mustLoad(t, l, first)
		mustLoad(t, l, second)
		before := first.reads
		mustLoad(t, l, first)
		if got := first.reads - before; got != want {
			t.Errorf("with a limit of %d commits, going back reads %d files, want %d", limit/size, got, want)
		}
	}
}
