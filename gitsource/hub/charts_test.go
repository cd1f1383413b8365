package hub

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	helmvalues "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/placement/api"
)

// chartFiles are a chart of a number of objects, with one of four files of values for each cluster.
func chartFiles(objects, clusters int) map[string]string {
	files := map[string]string{
		"charts/web/Chart.yaml":  "apiVersion: v2\nname: web\nversion: 1.0.0\nappVersion: \"1\"\n",
		"charts/web/values.yaml": "replicas: 1\nresources: {limits: {cpu: 100m}}\n",
		"charts/web/templates/_helpers.tpl": `{{- define "web.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}`,
		"fleet/chart.yaml": "apiVersion: gitfleet.dev/v1alpha1\nkind: HelmChart\nmetadata: {name: web, namespace: web}\nspec:\n  chart: {path: charts/web}\n  valuesFiles: ['values/${cluster.labels.tier}.yaml']\n",
	}
	for i := range objects {
		files[fmt.Sprintf("charts/web/templates/object-%d.yaml", i)] = strings.ReplaceAll(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-NUMBER
  labels: {{- include "web.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels: {{- include "web.labels" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "web.labels" . | nindent 8 }}
    spec:
      containers:
      - name: {{ .Chart.Name }}
        image: "registry.example.com/web:{{ .Values.tag | default .Chart.AppVersion }}"
        {{- with .Values.resources }}
        resources: {{- toYaml . | nindent 10 }}
        {{- end }}
`, "NUMBER", fmt.Sprint(i))
	}
	for i := range 4 {
		files[fmt.Sprintf("values/%d.yaml", i)] = fmt.Sprintf("replicas: %d\n", i+1)
	}
	for i := range clusters {
		files[fmt.Sprintf("fleet/cluster-%04d.yaml", i)] = fmt.Sprintf("{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: c%d, labels: {tier: %q}}}\n", i, fmt.Sprint(i%4))
	}
	return files
}

// A chart is rendered once for all clusters with the same values, and again only if it or they change.
func TestChartsAreRenderedOnce(t *testing.T) {
	files := chartFiles(3, 30)
	load := loadsOf(t, files)
	first := load(4)
	if again := load(4); again.Objects[0] != first.Objects[0] {
		t.Error("a chart that has not changed is another object")
	}
	files["values/2.yaml"] = "replicas: 9\n"
	changed := load(5)
	content := func(s *Snapshot, cluster string) *api.OverlayBuild {
		o := s.Objects[0].Overlay
		return o.Builds[o.Chart[cluster].Build]
	}
	if content(first, "c1") != content(changed, "c1") && content(first, "c1").Hash != content(changed, "c1").Hash {
		t.Error("clusters with other values have other content")
	}
	if content(first, "c2").Hash == content(changed, "c2").Hash || first.Objects[0].Hash == changed.Objects[0].Hash {
		t.Error("the changed values change nothing")
	}
	files["charts/web/values.yaml"] = "replicas: 1\n"
	load(9)
	files["fleet/other.yaml"] = "{apiVersion: v1, kind: Namespace, metadata: {name: web}}\n"
	load(9)
}

// The renderings of a commit have a limit in common, whether they are cached or not.
func TestChartStepsOfACommit(t *testing.T) {
	l, files := NewLoader(Options{}), chartFiles(3, 30)
	if _, err := l.Load(Commit{}, newMemoryTree(files)); err != nil {
		t.Fatal(err)
	}
	l.chartSteps = 100
	if _, err := l.Load(Commit{}, newMemoryTree(files)); err == nil || !strings.Contains(err.Error(), "fleet/chart.yaml:1: up to here the charts of the commit take more than 100 steps") {
		t.Errorf("got %v", err)
	}
}

// A rendering that takes too long refuses the commit, and is repeated.
func TestTimedOutRenderingsAreRepeated(t *testing.T) {
	files := chartFiles(1, 1)
	files["charts/web/templates/loop.yaml"] = "{{ range 100000 }}{{ end }}"
	l := NewLoader(Options{Limits: Limits{BuildTime: time.Nanosecond}})
	if _, err := l.Load(Commit{}, newMemoryTree(files)); err == nil || !strings.Contains(err.Error(), "raise limits.buildTime") {
		t.Fatalf("got %v", err)
	}
	l.opts.Limits.BuildTime = time.Minute
	if _, err := l.Load(Commit{}, newMemoryTree(files)); err != nil {
		t.Error(err)
	}
}

// What a chart has must be granted to the files that it is in and that are read for it, which are in the same path or shared.
func TestGrantsOfCharts(t *testing.T) {
	files := fstest.MapFS{}
	for name, text := range chartFiles(1, 1) {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	all := []string{"*"}
	grants := func(fleet, charts, values grant.Grant) grant.Set {
		fleet.Path, charts.Path, values.Path = "fleet", "charts", "values"
		fleet.Field, charts.Field, values.Field = "paths[0]", "paths[1]", "paths[2]"
		return grant.Set{&fleet, &charts, &values}
	}
	everything := grant.Grant{Namespaces: all, Kinds: all, Placements: all}
	shared := func(path, namespace string) grant.Grant {
		return grant.Grant{Namespaces: []string{namespace}, SharedBases: []string{path}}
	}
	for name, test := range map[string]struct {
		grants  grant.Set
		refused string
	}{
		"shared":                        {grants(everything, shared("charts", "web"), shared("values", "web")), ""},
		"values of another path":        {grants(everything, shared("charts", "web"), grant.Grant{Namespaces: all}), "values/0.yaml is not in path fleet"},
		"a chart of another path":       {grants(everything, grant.Grant{Namespaces: all}, shared("values", "web")), "charts/web/Chart.yaml is not in path fleet"},
		"a chart for another namespace": {grants(everything, shared("charts", "shop"), shared("values", "web")), "files in path charts may not produce Deployment.apps/web/web-0"},
		"values for another namespace":  {grants(everything, shared("charts", "web"), shared("values", "shop")), "files in path values may not produce Deployment.apps/web/web-0"},
	} {
		checkGrants(t, name, files, test.grants, test.refused)
	}
}

// BenchmarkChart renders a chart of 40 objects for 1,000 clusters with four files of values, in a commit that changes the chart. It
// reports what a rendering takes in addition to what Helm's own engine takes for it.
func BenchmarkChart(b *testing.B) {
	files := chartFiles(40, 1_000)
	var trees []*memoryTree
	for i := range 4 {
		files["charts/web/values.yaml"] = fmt.Sprintf("replicas: 1\nversion: %d\nresources: {limits: {cpu: 100m}}\n", i)
		trees = append(trees, newMemoryTree(files))
	}
	l := NewLoader(Options{})
	if _, err := l.Load(Commit{}, trees[0]); err != nil {
		b.Fatal(err)
	}
	var loads, helm time.Duration
	n := 0
	for i := 1; b.Loop(); i++ {
		start := time.Now()
		if _, err := l.Load(Commit{}, trees[i%len(trees)]); err != nil {
			b.Fatal(err)
		}
		loads += time.Since(start)
		start = time.Now()
		for range 4 {
			renderByHelm(b, files)
		}
		helm += time.Since(start)
		n += 4
	}
	if l.built != n+4 {
		b.Fatalf("%d renderings, want %d", l.built, n+4)
	}
	b.ReportMetric(float64(helm.Microseconds())/1000/float64(n), "helm-ms/rendering")
	b.ReportMetric(float64((loads-helm).Microseconds())/1000/float64(n), "more-ms/rendering")
}

func renderByHelm(b *testing.B, files map[string]string) {
	b.Helper()
	var chart []*archive.BufferedFile
	for name := range maps.Keys(files) {
		if relative, is := strings.CutPrefix(name, "charts/web/"); is {
			chart = append(chart, &archive.BufferedFile{Name: relative, Data: []byte(files[name])})
		}
	}
	c, err := loader.LoadFiles(chart)
	if err != nil {
		b.Fatal(err)
	}
	values := map[string]any{"replicas": 2}
	if err := util.ProcessDependencies(c, values); err != nil {
		b.Fatal(err)
	}
	all, err := helmvalues.ToRenderValues(c, values, common.ReleaseOptions{Name: "web", Namespace: "web"}, common.DefaultCapabilities)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := engine.Render(c, all); err != nil {
		b.Fatal(err)
	}
}
