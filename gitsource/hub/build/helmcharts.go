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
	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A helmChart is an entry of helmCharts, or a generator of kind HelmChartInflationGenerator.
type helmChart struct {
	types.HelmChart
	// field and line are the entry in the kustomization, and file is the file that has the fields of the chart.
	field string
	line  int
	file  string
	// home is the directory of charts, relative to the kustomization, and homeField where it is set.
	home, homeField string
	// dir is the directory of the chart, and remote says that it is not in the repository.
	dir    string
	remote bool
	// values are the files of valuesFile, which is empty for that of the chart, and of additionalValuesFiles.
	values     string
	additional []string
}

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
		f.r.Errorf(p.Child(found[2]), "kustomize expects %s here, not %s", found[3], found[1])
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

// resolveCharts finds the directories of the charts of a kustomization, and their files of values.
func (g *Graph) resolveCharts(k *kustomization) error {
	for _, c := range k.charts {
		local := path.Join(k.dir, c.home)
		if c.Repo != "" && c.Version != "" { // as kustomize does
			local = path.Join(local, c.Name+"-"+c.Version)
		}
		local = path.Join(local, c.Name)
		at := mention{field: c.field, line: c.line}
		if path.IsAbs(c.home) || local == ".." || strings.HasPrefix(local, "../") || g.tree.MountOf(local) != g.tree.MountOf(k.dir) {
			k.fail(at, "the chart %s in %q is outside of the repository; write a relative path in %s", c.Name, c.home, c.homeField)
			continue
		}
		if err := g.resolveChart(k, c, at, local); err != nil {
			return err
		}
		for i, text := range slices.Concat([]string{c.ValuesFile}, c.AdditionalValuesFiles) {
			m := mention{field: c.field + ".valuesFile", line: c.line, value: text, kind: valuesFile}
			if i > 0 {
				m.field = c.field + ".additionalValuesFiles"
			} else if text == "" {
				continue
			}
			name, err := g.resolveValues(k, c, m, local)
			if err != nil {
				return err
			}
			if i > 0 {
				c.additional = append(c.additional, name)
			} else {
				c.values = name
			}
		}
	}
	return nil
}

// resolveChart finds the directory of a chart: the one that kustomize would use if it is there, or else the chart that is locked.
func (g *Graph) resolveChart(k *kustomization, c *helmChart, at mention, local string) error {
	mode, found, ok, err := g.tree.Lookup(local)
	switch {
	case err != nil:
		return err
	case ok && mode.IsRegular():
		k.fail(at, "%s is a file, and a chart is a directory; unpack it, or correct the name", found)
		return nil
	case ok && !mode.IsDir():
		k.fail(at, "%s is %s, which is never followed; commit the directory itself", found, modeText(mode))
		return nil
	case !ok && c.Repo == "":
		k.fail(at, "the commit has no %s; correct the name or %s, commit the chart, or write its repo and version", local, c.homeField)
		return nil
	case ok:
		c.dir = local
	default:
		asked := repositoryOf(c.HelmChart)
		dir, use, unavailable := g.remotes.Chart(g.tree, lockfile.Request{Repository: asked.Repository, Name: asked.Name, Version: asked.Version})
		g.remoteCharts = append(g.remoteCharts, use)
		if k.locked = true; unavailable != "" {
			k.fail(at, "%s", unavailable)
			return nil
		}
		c.dir, c.remote = dir, true
	}
	file := path.Join(c.dir, chart.FileName)
	if is, err := g.tree.IsFile(file); err != nil {
		return err
	} else if !is {
		k.fail(at, "the commit has no %s, so that %s is no chart; correct the name or %s", file, c.dir, c.homeField)
		c.dir = ""
	}
	return nil
}

// resolveValues finds a file of values. One that kustomize would find in a chart that it has pulled is in the locked chart.
func (g *Graph) resolveValues(k *kustomization, c *helmChart, m mention, local string) (name string, err error) {
	k.mentions = append(k.mentions, m)
	name = path.Join(k.dir, m.value)
	rest, within := strings.CutPrefix(name, local+"/")
	if within && c.dir == "" {
		return name, nil // reported for the chart
	}
	if within && c.remote {
		name = path.Join(c.dir, rest)
		if is, err := g.tree.IsFile(name); err != nil || is {
			return name, err
		}
		k.fail(m, "the chart %s has no %s; correct the name", c.Name, rest)
		return name, nil
	}
	return name, g.resolve(k, m)
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
