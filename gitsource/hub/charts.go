package hub

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/expression"
	"github.com/gitfleet/gitfleet/placement/overlay"
)

// A chartUse is what a HelmChart or a ClusterHelmChart refers to.
type chartUse struct {
	it  *item
	dir string
	// meant is the directory of the chart that was probably meant if dir has none; empty if there is none.
	meant string
	// remote is a chart that is not in the repository, and unavailable why its files are not there.
	remote      *RemoteChart
	unavailable string
	// paths are those of the files of values, by their texts.
	paths map[string]valuesPath
	// files are the files of values that exist and that some cluster may have. Those that have objects stay in the hub.
	files map[string]bool
	// selectors select the clusters of each of spec.valuesByCluster.
	selectors []clusterSelector
	// choices say what each cluster of the commit has, by its name, and inputs what a choice means.
	choices map[string]api.ChartChoice
	inputs  map[string]*chartInputs
	// faults say why it is not known what clusters have, by their names.
	faults map[string]*choiceFault
}

// field is the one at whose line problems of the chart are reported.
func (u *chartUse) field() string { return validation.ChartField(u.it.chart) }

// origin is the position of what is in the chart at path and line, as far as that is in the repository.
func (u *chartUse) origin(path string, line int) api.Origin {
	if u.remote == nil || path != u.dir && !strings.HasPrefix(path, u.dir+"/") {
		return api.Origin{Path: path, Line: line}
	}
	return u.it.at(u.field())
}

// A valuesPath is the path of a file of values, or says why it is none.
type valuesPath struct {
	overlay.Path
	err error
}

// A choiceFault is why it is not known what a cluster has.
type choiceFault struct {
	// field of the chart is what cannot be resolved for the cluster.
	field string
	err   error
}

func (f *choiceFault) Error() string { return f.field + ": " + f.err.Error() }

// chartInputs are what a chart is rendered with, for some clusters.
type chartInputs struct {
	clusters []string
	// layers are the values, each replacing those before it.
	layers      []valuesLayer
	kubeVersion string
	apiVersions []string
}

// A valuesLayer is a file of values, or else inline values.
type valuesLayer struct {
	file   string
	values json.RawMessage
}

// A clusterSelector selects clusters.
type clusterSelector struct {
	everywhere bool
	terms      []labels.Selector
	expression *expression.Expression
}

func newClusterSelector(v api.ClusterValues) clusterSelector {
	s := clusterSelector{everywhere: v.ClusterSelector == nil || len(v.ClusterSelector.ClusterSelectorTerms) == 0}
	if v.ClusterSelector != nil {
		for _, term := range v.ClusterSelector.ClusterSelectorTerms {
			if selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector); err == nil { // validated before
				s.terms = append(s.terms, selector)
			}
		}
	}
	if v.Expression != "" {
		s.expression, _ = expression.CompileSelector(v.Expression) // validated before
	}
	return s
}

func (s clusterSelector) matches(c overlay.Cluster) (bool, error) {
	byLabels := s.everywhere || slices.ContainsFunc(s.terms, func(t labels.Selector) bool { return t.Matches(labels.Set(c.Labels)) })
	if !byLabels || s.expression == nil {
		return byLabels, nil
	}
	return s.expression.Holds(map[string]any{"name": c.Name, "labels": textMap(c.Labels), "properties": textMap(c.Properties)})
}

func textMap(of map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range of {
		out[key] = value
	}
	return out
}

// newChartUse finds what a chart refers to. If a path may mean more than maxFiles files of values, some of them are missing.
func newChartUse(t *tree.Tree, it *item, hub string, remotes build.Remotes, maxFiles int) (*chartUse, error) {
	u := &chartUse{
		it: it, paths: map[string]valuesPath{}, files: map[string]bool{},
		choices: map[string]api.ChartChoice{}, inputs: map[string]*chartInputs{}, faults: map[string]*choiceFault{},
	}
	if c := it.chart.Chart; c.Repository != "" {
		asked := lockfile.Request{Repository: strings.TrimRight(c.Repository, "/"), Name: c.Name, Version: c.Version}
		remote := RemoteChart{}
		u.dir, remote, u.unavailable = remotes.Chart(t, asked)
		u.remote = &remote
	} else {
		u.dir = path.Join(hub, it.chart.Chart.Path)
	}
	patterns := slices.Clone(it.chart.ValuesFiles)
	for _, entry := range it.chart.ValuesByCluster {
		patterns = append(patterns, entry.ValuesFiles...)
		u.selectors = append(u.selectors, newClusterSelector(entry))
	}
	for _, text := range patterns {
		p, err := overlay.Parse(text)
		u.paths[text] = valuesPath{p, err}
		if err != nil {
			continue // reported when the chart was decoded
		}
		names, err := expand(t, maxFiles, hub, p, fs.FileMode.IsRegular)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			u.files[name] = true
		}
	}
	return u, nil
}

// expand returns the entries of a type that a path may mean. If these are more than maxEntries, others are missing.
func expand(t *tree.Tree, maxEntries int, hub string, p overlay.Path, is func(fs.FileMode) bool) ([]string, error) {
	names := []string{hub}
	patterns := p.Patterns()
	for i, pattern := range patterns {
		var next []string
		for _, dir := range names {
			if pattern == ".." {
				if dir != "." {
					next = append(next, path.Dir(dir))
				}
				continue
			}
			l, err := t.List(dir)
			if err != nil {
				return nil, err
			}
			if !strings.ContainsAny(pattern, `*?[\`) {
				l = l.Only(pattern)
			}
			for _, e := range l {
				wanted := e.IsDir()
				if i == len(patterns)-1 {
					wanted = is(e.Type())
				}
				if wanted && overlay.Match(pattern, e.Name()) {
					next = append(next, path.Join(dir, e.Name()))
				}
			}
		}
		if names = next; len(names) > maxEntries {
			break
		}
	}
	return names, nil
}

// choose decides what a cluster has.
func (u *chartUse) choose(hub string, c overlay.Cluster) {
	inputs, fault := u.inputsFor(hub, c)
	if fault != nil {
		u.choices[c.Name] = api.ChartChoice{Err: fault.Error()}
		u.faults[c.Name] = fault
		return
	}
	key := inputs.key()
	u.choices[c.Name] = api.ChartChoice{Build: key}
	if u.inputs[key] == nil {
		u.inputs[key] = inputs
	}
	u.inputs[key].clusters = append(u.inputs[key].clusters, c.Name)
}

func (u *chartUse) inputsFor(hub string, c overlay.Cluster) (*chartInputs, *choiceFault) {
	spec := u.it.chart
	in := &chartInputs{kubeVersion: schema.KubernetesVersion + ".0"}
	if spec.Capabilities != nil {
		in.addCapabilities(*spec.Capabilities)
	}
	if declared := c.Properties[api.KubeVersionProperty]; declared != "" {
		in.kubeVersion = declared
	}
	if fault := u.addLayers(in, hub, c, "spec", spec.ValuesFiles, spec.Values); fault != nil {
		return nil, fault
	}
	for i, entry := range spec.ValuesByCluster {
		field := fmt.Sprintf("spec.valuesByCluster[%d]", i)
		matches, err := u.selectors[i].matches(c)
		if err != nil {
			return nil, &choiceFault{field + ".expression", fmt.Errorf("for cluster %s: %w", c.Name, err)}
		}
		if !matches {
			continue
		}
		if entry.Capabilities != nil {
			in.addCapabilities(*entry.Capabilities)
		}
		if fault := u.addLayers(in, hub, c, field, entry.ValuesFiles, entry.Values); fault != nil {
			return nil, fault
		}
	}
	return in, nil
}

// addCapabilities sets the version of Kubernetes, if one is given, and adds versions of APIs.
func (in *chartInputs) addCapabilities(c api.ChartCapabilities) {
	if c.KubeVersion != "" {
		in.kubeVersion = c.KubeVersion
	}
	in.apiVersions = append(in.apiVersions, c.APIVersions...)
}

func (u *chartUse) addLayers(in *chartInputs, hub string, c overlay.Cluster, field string, files []string, values json.RawMessage) *choiceFault {
	for i, text := range files {
		at := fmt.Sprintf("%s.valuesFiles[%d]", field, i)
		p := u.paths[text]
		if p.err != nil {
			return &choiceFault{at, p.err}
		}
		relative, err := p.For(c)
		if err != nil {
			return &choiceFault{at, err}
		}
		switch name := path.Join(hub, relative); {
		case u.files[name]:
			in.layers = append(in.layers, valuesLayer{file: name})
		case u.it.chart.WhenMissing != api.WhenMissingIgnore:
			return &choiceFault{at, fmt.Errorf("for cluster %s the commit has no file %s; add it, or write whenMissing: %s if the cluster needs none",
				c.Name, name, api.WhenMissingIgnore)}
		}
	}
	if len(values) > 0 && string(values) != "null" {
		in.layers = append(in.layers, valuesLayer{values: values})
	}
	return nil
}

// key identifies inputs within a chart.
func (in *chartInputs) key() string {
	key := fmt.Sprintf("Kubernetes %q", in.kubeVersion)
	for _, layer := range in.layers {
		if layer.file != "" {
			key += fmt.Sprintf(", file %q", layer.file)
			continue
		}
		hash, _ := api.HashOf(layer.values, nil) // JSON from a decoded object
		key += ", values " + hash
	}
	for _, version := range in.apiVersions {
		key += fmt.Sprintf(", API %q", version)
	}
	return key
}

// warnUnusedValues warns of files of values that no cluster has, and of values for no cluster.
func (u *chartUse) warnUnusedValues(a *assembly, clusters []overlay.Cluster, valuesOf map[string]bool) {
	if len(clusters) == 0 {
		return
	}
	used := map[string]bool{}
	for _, in := range u.inputs {
		for _, layer := range in.layers {
			used[layer.file] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(u.files)) {
		if !used[name] && valuesOf[name] {
			a.problem(problem.Warning, api.Origin{Path: name, Line: 1}, "", "no cluster uses these values of %s (%s: %s), so they have no effect; remove them, or correct the labels of clusters", u.it.id, u.it.at(u.field()), u.field())
		}
	}
	for i, s := range u.selectors {
		matching := slices.ContainsFunc(clusters, func(c overlay.Cluster) bool { ok, err := s.matches(c); return ok || err != nil })
		if !matching {
			field := fmt.Sprintf("spec.valuesByCluster[%d]", i)
			a.problem(problem.Warning, u.it.at(field), field, "matches no cluster of the commit, so it has no effect; remove it, or correct the selector or the labels of clusters")
		}
	}
}
