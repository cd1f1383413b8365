package build

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
)

// References to repositories are split as kustomize splits them.
func TestParseRemote(t *testing.T) {
	for text, want := range map[string]string{
		"github.com/org/repo":                                                  "https://github.com/org/repo  .",
		"github.com/org/repo//path/to?ref=v1":                                  "https://github.com/org/repo v1 path/to",
		"github.com/org/repo/path/to?ref=v1":                                   "https://github.com/org/repo v1 path/to",
		"https://github.com/org/repo/tree?version=v2":                          "https://github.com/org/repo v2 tree",
		"HTTPS://GitHub.com/org/repo.git//a?timeout=90s&submodules=false&ref=": "https://github.com/org/repo.git  a",
		"https://example.com/group/sub/repo.git//path?ref=main":                "https://example.com/group/sub/repo.git main path",
		"https://example.com/group/sub/repo.git/path?ref=main":                 "https://example.com/group/sub/repo.git main path",
		"https://example.com/group/sub/repo//path":                             "https://example.com/group/sub/repo  path",
		"https://dev.azure.com/org/project/_git/repo/path/to?ref=x":            "https://dev.azure.com/org/project/_git/repo x path/to",
		"git@github.com:org/repo//path?ref=v1":                                 "git@github.com:org/repo v1 path",
		"git@example.com:org/repo.git/path":                                    "git@example.com:org/repo.git  path",
		"ssh://git@example.com:2222/org/repo//path":                            "ssh://git@example.com:2222/org/repo  path",
		"ssh://git@github.com/org/repo":                                        "git@github.com:org/repo  .",
		"git::https://example.com/org/repo//a":                                 "https://example.com/org/repo  a",
		"file:///srv/bases.git//web?ref=v1":                                    "file:///srv/bases.git v1 web",
		"file:///srv/bases":                                                    "file:///srv/bases  .",
		"https://example.com/org/repo//../..":                                  "its directory is outside of the repository",
		"https://example.com":                                                  "it names no host",
		"https://example.com/org":                                              "it names no repository; write HOST/ORGANIZATION/REPOSITORY, and // in front of the directory",
		"s3::https://example.com/bucket/a":                                     "scheme s3::https:// is not supported; use https:// or ssh://",
		"example.com/org/repo":                                                 "it has no scheme; write https:// in front",
	} {
		a, err := parseRemote(text)
		got := a.url + " " + a.ref + " " + a.dir
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// Addresses of files on GitHub mean files of its repositories.
func TestRawFile(t *testing.T) {
	for text, want := range map[string]string{
		"https://raw.githubusercontent.com/org/repo/v1/a/b.yaml":              "https://github.com/org/repo v1 a/b.yaml",
		"https://raw.githubusercontent.com/org/repo/refs/heads/main/b.yaml":   "https://github.com/org/repo main b.yaml",
		"https://github.com/org/repo/raw/refs/tags/v1/b.yaml":                 "https://github.com/org/repo v1 b.yaml",
		"https://github.com/org/repo/raw/v1/../../../b.yaml":                  "",
		"https://github.com/org/repo/releases/download/v1/install.yaml":       "",
		"http://raw.githubusercontent.com/org/repo/v1/b.yaml":                 "",
		"https://raw.githubusercontent.com/org/repo/v1":                       "",
		"https://raw.githubusercontent.com/org/repo/v1/b.yaml?token=abcdefgh": "",
	} {
		a, is := rawFile(text)
		got := ""
		if is {
			got = a.url + " " + a.ref + " " + a.dir
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

const commit = "0123456789abcdef0123456789abcdef01234567"

// remoteGraph reads the kustomization in app, with repositories by their URL.
func remoteGraph(t *testing.T, repo sources, repositories map[string]sources) *Graph {
	t.Helper()
	g, err := Read(tree.New(repo.mapFS(), 1<<20), []string{"app"}, limit.Limits{}.WithDefaults(), Remotes{
		LockFile: lockfile.Name,
		Lock:     lockfile.File{Bases: []lockfile.Base{{URL: "https://github.com/org/bases", Ref: "v1", Commit: commit}, {URL: "https://example.com/org/nested.git", Commit: commit}}},
		Files: func(url, _ string) (fs.FS, error) {
			if files := repositories[url]; files != nil {
				return files.mapFS(), nil
			}
			return nil, errors.New("the server is down")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A locked base is built from the files of its commit, with the bases that it has itself, and its objects have the line of the
// reference as their origin.
func TestRemoteBases(t *testing.T) {
	repo := sources{"app/kustomization.yaml": "namePrefix: my-\nresources:\n- github.com/org/bases//web/prod?ref=v1\n- https://raw.githubusercontent.com/org/bases/v1/files/raw.yaml\n- ns.yaml\ncomponents: ['https://github.com/org/bases//part?ref=v1']\n", "app/ns.yaml": namespaceText}
	g := remoteGraph(t, repo, map[string]sources{
		"https://github.com/org/bases": {
			"web/prod/kustomization.yaml": "commonLabels: {a: b}\nresources: [../base, 'https://example.com/org/nested.git']\n",
			"web/base/kustomization.yml":  "resources: [web.yaml]\nconfigMapGenerator: [{name: g, namespace: web, literals: [a=b]}]\n",
			"web/base/web.yaml":           "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: web}}\n",
			"part/kustomization.yaml":     "kind: Component\nnameSuffix: -part\n",
			"files/kustomization.yaml":    "namePrefix: not-\nresources: [raw.yaml]\n",
			"files/raw.yaml":              "{apiVersion: v1, kind: ConfigMap, metadata: {name: raw, namespace: web}}\n",
		},
		"https://example.com/org/nested.git": {"Kustomization": "resources: [n.yaml]\n", "n.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: nested, namespace: web}}\n"},
	})
	checkLines(t, "problems", messages(g), nil)
	target := g.Target("app")
	if got, want := target.Sources(), []string{"app/kustomization.yaml", "app/ns.yaml", lockfile.Name}; !slices.Equal(got, want) {
		t.Errorf("sources %v", got)
	}
	var got []string
	built, _, err := target.Build(1<<20, func(r *document.Report, value any) {
		object := value.(map[string]any)
		got = append(got, r.Origin.String()+" "+object["metadata"].(map[string]any)["name"].(string))
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(built.Problems) > 0 {
		t.Error(built.Problems)
	}
	slices.Sort(got)
	checkLines(t, "objects", got, []string{
		"app/kustomization.yaml my-nested-part", "app/kustomization.yaml:3 my-g-part-4h2mbtbbt6", "app/kustomization.yaml:3 my-web-part", "app/kustomization.yaml:4 my-raw-part", "app/ns.yaml:1 web",
	})
	var uses []string
	for _, u := range g.Uses() {
		uses = append(uses, u.String())
	}
	checkLines(t, "uses", uses, []string{"https://example.com/org/nested.git", "https://github.com/org/bases?ref=v1"})
}

// What is not locked, not fetched, not there, or leads out of its repository is refused with the fix.
func TestRemoteBasesNot(t *testing.T) {
	repositories := map[string]sources{"https://github.com/org/bases": {
		"escape/kustomization.yaml": "resources: [../../../../app/ns.yaml]\n", "link/kustomization.yaml": "resources: [l.yaml]\n", "link/l.yaml": "link",
	}}
	for text, want := range map[string]string{
		"github.com/org/bases//web?ref=v2":                         `app/kustomization.yaml:1: resources[0]: "github.com/org/bases//web?ref=v2" is a remote base that is not locked; run gitfleet lock, and commit gitfleet.lock.yaml`,
		"https://example.com/org/nested.git":                       `app/kustomization.yaml:1: resources[0]: "https://example.com/org/nested.git", at commit ` + commit + `, is not in the cache: the server is down`,
		"https://example.com/org/other?ref=" + commit:              `app/kustomization.yaml:1: resources[0]: "https://example.com/org/other?ref=` + commit + `", at commit ` + commit + `, is not in the cache: the server is down`,
		"github.com/org/bases//none?ref=v1":                        "app/kustomization.yaml:1: resources[0]: https://github.com/org/bases at commit " + commit + " has no kustomization.yaml in directory none; correct the address",
		"github.com/org/bases//escape?ref=v1":                      "github.com/org/bases@" + commit + `/escape/kustomization.yaml:1: resources[0]: "../../../../app/ns.yaml" is outside of the repository of this kustomization`,
		"github.com/org/bases//link?ref=v1":                        "github.com/org/bases@" + commit + "/link/kustomization.yaml:1: resources[0]: github.com/org/bases@" + commit + "/link/l.yaml is a symbolic link, which is never followed; commit the file itself",
		"https://raw.example.com/org/repo/v1/crds.yaml":            `app/kustomization.yaml:1: resources[0]: "https://raw.example.com/org/repo/v1/crds.yaml" is a remote file, which is not fetched; download it into the repository, and refer to the copy`,
		"https://raw.githubusercontent.com/org/bases/v1/none.yaml": "app/kustomization.yaml:1: resources[0]: https://github.com/org/bases has no file none.yaml at v1; correct the address",
		"https://github.com/org/bases/raw/v2/crds.yaml":            `app/kustomization.yaml:1: resources[0]: "https://github.com/org/bases/raw/v2/crds.yaml" is a remote base that is not locked; run gitfleet lock, and commit gitfleet.lock.yaml`,
		"ftp://example.com/org/repo":                               `app/kustomization.yaml:1: resources[0]: "ftp://example.com/org/repo" cannot be a remote base: scheme ftp:// is not supported; use https:// or ssh://`,
	} {
		g := remoteGraph(t, sources{"app/kustomization.yaml": "resources: ['" + text + "']\n", "app/ns.yaml": namespaceText}, repositories)
		checkLines(t, text, messages(g), []string{want})
	}
}

// A directory of the repository that has the name under which a remote base is found is not confused with it.
func TestRemoteBaseIsNoDirectory(t *testing.T) {
	g := remoteGraph(t, sources{"app/kustomization.yaml": "resources: ['github.com/org/bases//web?ref=v1', './../github.com/org/bases@" + commit + "/web']\n"},
		map[string]sources{"https://github.com/org/bases": {"web/kustomization.yaml": "namePrefix: a-\n"}})
	if got := messages(g); len(got) != 1 || !strings.Contains(got[0], "is outside of the repository of this kustomization") {
		t.Errorf("got %v", got)
	}
}
