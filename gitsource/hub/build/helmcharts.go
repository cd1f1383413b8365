package build

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/gitfleet/gitfleet/gitsource/hub/chart"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
)

// The values of valuesMerge.
const (
	mergeOverride = "override"
	mergeMerge    = "merge"
	mergeReplace  = "replace"
)

// charts finds the charts of a kustomization, and reports what is wrong with them whatever the repository has.
func (f *mentionFinder) charts() {
	k := &f.k.spec
	if len(k.HelmChartInflationGenerator) > 0 {
		f.r.Errorf(f.r.Field("helmChartInflationGenerator"), "kustomize has deprecated this field, which is not read; use helmCharts")
	}
	home := ""
	if k.HelmGlobals != nil {
		home = k.HelmGlobals.ChartHome
	}
	for i, c := range k.HelmCharts {
		p := f.r.Field("helmCharts").At(i)
		f.chart(p, &helmChart{HelmChart: c, field: p.String(), line: f.r.LineOf(p), file: f.k.file, home: home, homeField: "helmGlobals.chartHome"})
	}
}

// chart adds a chart whose fields are at p, unless something is wrong with them.
func (f *mentionFinder) chart(p *document.FieldPath, c *helmChart) {
	before := len(f.r.Problems)
	c.home = cmp.Or(c.home, types.HelmDefaultHome)
	if c.Name == "" {
		f.r.Errorf(p, "name is missing; write the name of the chart, which is that of its directory in %s", types.HelmDefaultHome)
	}
	if !slices.Contains([]string{"", mergeOverride, mergeMerge, mergeReplace}, c.ValuesMerge) {
		f.r.Errorf(p.Child("valuesMerge"), "unsupported value %q; use %s, %s or %s", c.ValuesMerge, mergeOverride, mergeMerge, mergeReplace)
	}
	if c.ReleaseName != "" && c.NameTemplate != "" {
		f.r.Errorf(p.Child("nameTemplate"), "cannot be set with releaseName; remove one of them")
	}
	if c.KubeVersion != "" && chart.CheckKubeVersion(c.KubeVersion) != nil {
		f.r.Errorf(p.Child("kubeVersion"), "%q is not a version of Kubernetes; write one such as 1.37.0", c.KubeVersion)
	}
	if c.Repo != "" && !strings.Contains(c.Repo, ":") {
		f.r.Errorf(p.Child("repo"), "%q is a directory, and not the address of a chart repository, which helm needs too; remove repo, and write the directory that has the chart as %s", c.Repo, c.homeField)
	} else if c.Repo != "" && c.Name != "" {
		for _, fault := range validation.RemoteChartFaults(repositoryOf(c.HelmChart)) {
			f.r.Errorf(p.Child(strings.TrimSuffix(fault.Field, "sitory")), "%s", fault.Message) // repo
		}
	}
	if len(f.r.Problems) == before {
		f.k.charts = append(f.k.charts, c)
	}
}

// isInflator reports whether a generator is a chart, which kustomize would render with the helm program.
func isInflator(field string, generator *yaml.Node) bool {
	kind, version := child(generator, "kind"), child(generator, "apiVersion")
	return strings.HasPrefix(field, generators+"[") && kind != nil && kind.Value == inflatorKind && version != nil && version.Value == "builtin"
}

const (
	generators   = "generators"
	inflatorKind = "HelmChartInflationGenerator"
)

// inflator adds the chart of a generator that is in a file, at p, and that an entry of a kustomization refers to. Other than charts of
// helmCharts it has a directory of charts of its own, and does not get the namespace of the kustomization.
func (f *mentionFinder) inflator(p *document.FieldPath, entry mention, file string, generator *yaml.Node) {
	var values map[string]any
	var text []byte
	var config struct {
		types.HelmGlobals
		types.HelmChart
	}
	err := generator.Decode(&values)
	if err == nil {
		text, err = json.Marshal(values)
	}
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if found := wrongType.FindStringSubmatch(fmt.Sprint(err)); found != nil {
		f.reportWrongType(p.Child(found[2]), found)
		return
	}
	if err != nil {
		f.r.Errorf(p, "the fields of the generator cannot be read: %v", err)
		return
	}
	config.Namespace = cmp.Or(config.Namespace, "default")
	f.k.inflators = append(f.k.inflators, entry.value)
	f.chart(p, &helmChart{HelmChart: config.HelmChart, field: entry.field, line: entry.line, file: file, home: config.ChartHome, homeField: "chartHome"})
}

// repositoryOf is the chart that an entry with a repo asks for. Without a version that is the newest.
func repositoryOf(c types.HelmChart) api.ChartSource {
	newest := "*"
	if c.Devel {
		newest = ">0.0.0-0"
	}
	return api.ChartSource{Repository: strings.TrimRight(c.Repo, "/"), Name: c.Name, Version: cmp.Or(c.Version, newest)}
}

// A ChartUse is a chart of the repository that a kustomization renders.
type ChartUse struct {
	// Kustomization is the file, and Origin and Field are the entry in it.
	Kustomization string
	Origin        api.Origin
	Field         string
	// Dir is the directory of the chart, and File its Chart.yaml.
	Dir, File string
}

// Charts are the charts of the repository that kustomizations render, also those of kustomizations that are not built.
func (g *Graph) Charts() []ChartUse {
	var all []ChartUse
	for _, dir := range slices.Sorted(maps.Keys(g.nodes)) {
		k := g.nodes[dir]
		for _, c := range k.charts {
			if c.dir != "" && g.tree.MountOf(c.dir) == "" {
				all = append(all, ChartUse{k.file, api.Origin{Path: k.file, Line: c.line}, c.field, c.dir, path.Join(c.dir, chart.FileName)})
			}
		}
	}
	return all
}
