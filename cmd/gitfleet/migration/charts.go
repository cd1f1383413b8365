package migration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A chartSource is a source of an Application that is a Helm chart.
type chartSource struct {
	source    any
	values    map[string]string
	namespace string
	// release is the name of the Application, and cluster the one that gets it.
	release, cluster string
}

// text returns a field of the source with its parameters filled in.
func (c chartSource) text(keys ...string) string {
	text, _ := filled(textAt(c.source, keys...), c.values)
	return text
}

// addChart adds what a chart deploys under a name.
func (f *finder) addChart(name string, c chartSource) {
	spec, err := f.chartOf(c)
	if err != nil {
		f.leave("Helm chart of %s: %v", name, err)
		return
	}
	text, err := yaml.Marshal(spec)
	if err != nil {
		f.leave("Helm chart of %s: %v", name, err)
		return
	}
	if f.charts[name] == nil {
		f.charts[name] = map[string]map[string]bool{}
	}
	if f.charts[name][string(text)] == nil {
		f.charts[name][string(text)] = map[string]bool{}
	}
	f.charts[name][string(text)][c.cluster] = true
	f.cluster(c.cluster)
}

// chartOf returns the spec of a ClusterHelmChart. The error says why there is none.
func (f *finder) chartOf(c chartSource) (api.ChartSpec, error) {
	spec := api.ChartSpec{ReleaseName: cmp.Or(c.text("helm", "releaseName"), c.release), Namespace: c.namespace}
	dir := path.Clean(strings.TrimPrefix(c.text("path"), "/"))
	switch remote := c.text("chart"); {
	case c.namespace == "":
		return spec, fmt.Errorf("its destination has no namespace")
	case c.namespace == api.Namespace:
		return spec, fmt.Errorf("nothing can be placed in namespace %s", c.namespace)
	case remote != "" && c.text("targetRevision") == "":
		return spec, fmt.Errorf("it has no targetRevision")
	case remote != "":
		spec.Chart = api.ChartSource{Repository: strings.TrimSuffix(c.text("repoURL"), "/"), Name: path.Base(remote), Version: c.text("targetRevision")}
		if !strings.Contains(spec.Chart.Repository, "://") {
			spec.Chart.Repository = "oci://" + path.Join(spec.Chart.Repository, path.Dir(remote))
		}
	case f.hasChart(dir):
		spec.Chart.Path = dir
	default:
		return spec, fmt.Errorf("the repository has no chart in %s", dir)
	}
	if api.ReservedNamespace(c.namespace) {
		spec.ReservedNamespaces = []string{c.namespace}
	}
	files, _ := at(c.source, "helm", "valueFiles").([]any)
	for _, file := range files {
		text, _ := filled(fmt.Sprint(file), c.values)
		switch ref, within, _ := strings.Cut(text, "/"); {
		case strings.Contains(text, "://"):
			return spec, fmt.Errorf("its values %s are not in the repository", text)
		case strings.HasPrefix(ref, "$"):
			text = path.Clean(within)
		case spec.Chart.Path == "":
			return spec, fmt.Errorf("its values %s are in the chart; copy them into the repository", text)
		default:
			text = path.Join(dir, text)
		}
		text, _ = replaced(text, c.cluster, "${cluster.name}")
		spec.ValuesFiles = append(spec.ValuesFiles, text)
	}
	if ignores, _ := at(c.source, "helm", "ignoreMissingValueFiles").(bool); ignores {
		spec.WhenMissing = api.WhenMissingIgnore
	}
	spec.SkipCRDs, _ = at(c.source, "helm", "skipCrds").(bool)
	if at(c.source, "helm", "parameters") != nil {
		return spec, fmt.Errorf("write its parameters into values")
	}
	values := at(c.source, "helm", "valuesObject")
	if text := c.text("helm", "values"); values == nil && text != "" {
		if err := yaml.Unmarshal([]byte(text), &values); err != nil {
			return spec, fmt.Errorf("its values are no YAML")
		}
	}
	if values != nil {
		spec.Values, _ = json.Marshal(values) // decoded from YAML
	}
	return spec, nil
}

const chartManifest = `---
apiVersion: gitfleet.dev/v1alpha1
kind: ClusterHelmChart
metadata:
  name: %s
spec:
`

// chartTexts returns the documents of the charts, and adds them to the placements that select them.
func (f *finder) chartTexts(selected map[selection][]envelope) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f.charts)) {
		for _, text := range slices.Sorted(maps.Keys(f.charts[name])) {
			clusters := slices.Sorted(maps.Keys(f.charts[name][text]))
			e := envelope{"ClusterHelmChart", name}
			if len(f.charts[name]) > 1 {
				e.name += "-" + clusters[0]
			}
			fmt.Fprintf(&b, chartManifest, e.name)
			for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
				b.WriteString("  " + line + "\n")
			}
			key := selection{strings.Join(clusters, ","), f.apart[e]}
			selected[key] = append(selected[key], e)
		}
	}
	return b.String()
}

var (
	parameter   = regexp.MustCompile(`\{\{-?\s*\.?([^{}]*?)\s*-?\}\}`)
	pathSegment = regexp.MustCompile(`^index \.path\.segments (\d+)$`)
	fieldOf     = regexp.MustCompile(`^index \.([\w.]+) "([^"]+)"$`)
)

// filled returns a template with the values of its parameters, and reports whether all of them have one.
func filled(text string, values map[string]string) (string, bool) {
	known := true
	out := parameter.ReplaceAllStringFunc(text, func(found string) string {
		key := parameter.FindStringSubmatch(found)[1]
		if index := pathSegment.FindStringSubmatch(key); index != nil {
			key = "path[" + index[1] + "]"
		}
		if field := fieldOf.FindStringSubmatch(key); field != nil {
			key = field[1] + "." + field[2]
		}
		value, is := values[key]
		known = known && is
		return value
	})
	return out, known
}
