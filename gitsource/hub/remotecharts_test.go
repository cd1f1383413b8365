package hub

import (
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
	"github.com/gitfleet/gitfleet/placement/api"
)

const chartDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// remoteChart is a repository with a chart of a registry, for two clusters with values of their own.
func remoteChart() fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	cluster := func(name string) string {
		return "{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: " + name + "}}\n"
	}
	return fstest.MapFS{
		"east.yaml": file(cluster("east")), "west.yaml": file(cluster("west")),
		"c.yaml":             file("apiVersion: gitfleet.dev/v1alpha1\nkind: HelmChart\nmetadata: {name: web, namespace: shop}\nspec:\n  chart:\n    repository: oci://example.com/charts/\n    name: web\n    version: ^1\n  valuesFiles: ['values/${cluster.name}.yaml']\n"),
		"values/east.yaml":   file("greeting: east\n"),
		"values/west.yaml":   file("greeting: west\n"),
		"other.yaml":         file("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n"),
		"gitfleet.lock.yaml": file("charts:\n- {repository: 'oci://example.com/charts', name: web, version: ^1, resolved: 1.2.0, digest: '" + chartDigest + "'}\n"),
	}
}

func webChart(template string) fstest.MapFS {
	return fstest.MapFS{
		"Chart.yaml":        {Data: []byte("{apiVersion: v2, name: web, version: 1.2.0}\n")},
		"templates/cm.yaml": {Data: []byte(template)},
	}
}

const greeting = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {greeting: {{ .Values.greeting }}}\n"

// A chart of a registry is rendered for each cluster from what is locked. Its objects come from the object that asks for it, since
// the chart is not in the repository.
func TestRemoteChart(t *testing.T) {
	files, asked := remoteChart(), lockfile.Chart{}
	loader := NewLoader(Options{Charts: func(c lockfile.Chart) (fs.FS, error) { asked = c; return webChart(greeting), nil }})
	s, err := loader.Load(Commit{}, files)
	if err != nil {
		t.Fatal(err)
	}
	if asked.Digest != chartDigest || asked.Resolved != "1.2.0" {
		t.Errorf("asked for %+v", asked)
	}
	if len(s.Charts) != 1 || s.Charts[0].Chart != asked || s.Charts[0].Missing {
		t.Errorf("charts %+v", s.Charts)
	}
	built := s.Object(api.ID{Group: "gitfleet.dev", Kind: "HelmChart", Namespace: "shop", Name: "web"}).Overlay
	greetings := map[string]bool{}
	for _, b := range built.Builds {
		for _, o := range b.Objects {
			data, _ := o.Content.Object["data"].(map[string]any)
			greetings[data["greeting"].(string)] = true
			if o.Origin.Path != "c.yaml" || o.Origin.Line != 8 || !strings.HasPrefix(o.Origin.Kustomization, "example.com/charts/web@1.2.0-0123456789ab/") {
				t.Errorf("the object is from %+v", o.Origin)
			}
			if sources := s.Sources[o.Origin.Kustomization]; strings.Join(sources, " ") != "gitfleet.lock.yaml values/east.yaml values/west.yaml" {
				t.Errorf("it is made from %v", sources)
			}
		}
	}
	if !greetings["east"] || !greetings["west"] || len(s.Warnings) > 0 {
		t.Errorf("objects %v, warnings %v", greetings, s.Warnings)
	}
	before := loader.built
	if _, err := loader.Load(Commit{}, files); err != nil || loader.built != before {
		t.Errorf("the same commit renders %d again (%v)", loader.built-before, err)
	}
}

// What is not locked, or not in the cache, or cannot be rendered, fails for the clusters of the chart with file, line and the fix, and
// does not refuse the commit.
func TestRemoteChartsThatFail(t *testing.T) {
	const at = "c.yaml:8: spec.chart.version: "
	have := func(template string) func(lockfile.Chart) (fs.FS, error) {
		return func(lockfile.Chart) (fs.FS, error) { return webChart(template), nil }
	}
	for name, test := range map[string]struct {
		change  func(fstest.MapFS)
		charts  func(lockfile.Chart) (fs.FS, error)
		want    string
		missing bool
	}{
		"not locked": {
			change: func(files fstest.MapFS) { delete(files, "gitfleet.lock.yaml") }, charts: have(greeting),
			want: at + "the chart oci://example.com/charts/web:^1 is not locked; run gitfleet lock, and commit gitfleet.lock.yaml, for east, west",
		},
		"another range is locked": {
			change: func(files fstest.MapFS) {
				files["gitfleet.lock.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(string(files["gitfleet.lock.yaml"].Data), "^1", "^2", 1))}
			},
			charts: have(greeting), want: "is not locked; run gitfleet lock",
		},
		"not in the cache": {
			charts: func(lockfile.Chart) (fs.FS, error) { return nil, errors.New("the registry is down") }, missing: true,
			want: at + "the chart oci://example.com/charts/web:^1, locked at version 1.2.0 with digest " + chartDigest + ", is not in the cache: the registry is down, for east, west",
		},
		"a template error": {charts: have("{{ fail .Values.greeting }}"), want: at + "example.com/charts/web@1.2.0-0123456789ab/templates/cm.yaml:1: "},
		"no YAML":          {charts: have("a: b: c\n"), want: at + "example.com/charts/web@1.2.0-0123456789ab/templates/cm.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(remoteChart())
			if test.change != nil {
				test.change(files)
			}
			s, err := NewLoader(Options{Charts: test.charts}).Load(Commit{}, files)
			if err != nil {
				t.Fatal(err)
			}
			if text := s.Warnings.Err().Error(); !strings.Contains(text, test.want) {
				t.Errorf("got %s", text)
			}
			if len(s.Charts) != 1 || s.Charts[0].Missing != test.missing {
				t.Errorf("charts %+v", s.Charts)
			}
			chart := s.Object(api.ID{Group: "gitfleet.dev", Kind: "HelmChart", Namespace: "shop", Name: "web"})
			for _, b := range chart.Overlay.Builds {
				if b.Err == "" || len(b.Objects) > 0 {
					t.Errorf("the build has %+v", b)
				}
			}
			if s.Object(api.ID{Kind: "Namespace", Name: "shop"}) == nil {
				t.Error("another object is missing")
			}
		})
	}
}

// Where paths are granted, the lock file has to be granted what the charts that it locks produce.
func TestRemoteChartsAreGranted(t *testing.T) {
	grants := grant.Set{
		{Path: "", Namespaces: []string{"other"}, Kinds: []string{"*"}},
		{Path: "team", Namespaces: []string{"shop"}, Kinds: []string{"*"}},
	}
	files := remoteChart()
	for _, name := range []string{"c.yaml", "values/east.yaml", "values/west.yaml"} {
		files["team/"+name] = &fstest.MapFile{Data: []byte(strings.Replace(string(files[name].Data), "values/$", "team/values/$", 1))}
		delete(files, name)
	}
	delete(files, "other.yaml")
	_, err := NewLoader(Options{Grants: grants, Charts: func(lockfile.Chart) (fs.FS, error) { return webChart(greeting), nil }}).Load(Commit{}, files)
	if err == nil || !strings.Contains(err.Error(), "files in the path of the whole repository may not produce ConfigMap/shop/web") {
		t.Errorf("got %v", err)
	}
}

// The fields that say which chart it is are checked.
func TestRemoteChartFields(t *testing.T) {
	for fields, want := range map[string]string{
		"path: a, repository: 'oci://x/y', name: web, version: '1'":    "spec.chart.path: cannot be set with a repository",
		"name: web, version: '1'":                                      "spec.chart.repository: missing",
		"repository: 'git://x/y', name: web, version: '1'":             "is not the address of charts",
		"repository: 'https://me:pw@x/y', name: web, version: '1'":     "is not the address of charts",
		"repository: 'oci://x/y', name: ../web, version: '1'":          "is not the name of a chart",
		"repository: 'oci://x/y', name: web":                           "spec.chart.version: missing",
		"repository: 'oci://x/y', name: web, version: latest":          "is neither a version nor a range",
		"repository: 'oci://${cluster.name}/y', name: a, version: '1'": "is not the address of charts",
	} {
		_, err := NewLoader(Options{}).Load(Commit{}, fstest.MapFS{"c.yaml": {Data: []byte("{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterHelmChart, metadata: {name: c}, spec: {namespace: web, chart: {" + fields + "}}}\n")}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", fields, err)
		}
	}
}
