package validation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/expression"
	"github.com/gitfleet/gitfleet/placement/overlay"
)

// ChartPath is the field at whose line problems of a chart are reported.
const ChartPath = "spec.chart.path"

// DefaultChart sets the defaults of a chart.
func DefaultChart(id api.ID, spec *api.ChartSpec) {
	spec.ReleaseName = cmp.Or(spec.ReleaseName, id.Name)
	spec.WhenMissing = cmp.Or(spec.WhenMissing, api.WhenMissingFail)
	spec.Hooks = cmp.Or(spec.Hooks, api.HooksRun)
	if id.Namespace != "" {
		spec.Namespace = cmp.Or(spec.Namespace, id.Namespace)
	}
}

// CheckChart validates a chart whose defaults are set.
func CheckChart(r *document.Report, id api.ID, spec *api.ChartSpec) {
	checkName(r, id.Name, "the name field cannot have length exceeding 63")
	at := r.Field("spec", "chart", "path")
	if spec.Chart.Path == "" {
		r.Rulef(at, "missing; write the directory of a chart in the repository, such as charts/web")
	} else if p, err := overlay.Parse(spec.Chart.Path); err != nil {
		r.Rulef(at, "%v", err)
	} else if p.HasVariables() {
		r.Rulef(at, "%q has variables, and the chart is the same for all clusters; write a HelmChart for each chart", spec.Chart.Path)
	}
	r.RecordLine(at)
	release := r.Field("spec", "releaseName")
	if len(spec.ReleaseName) > 53 {
		r.Rulef(release, "%q has more than 53 characters, which Helm does not allow; write a shorter one", spec.ReleaseName)
	}
	rules(r, release, validation.IsDNS1123Subdomain(spec.ReleaseName), "%q is not a valid name of a release", spec.ReleaseName)
	checkChartNamespace(r, id, spec.Namespace)
	checkValues(r, r.Object.Child("spec"), spec.ValuesFiles, spec.Values, spec.Capabilities)
	entries := r.Field("spec", "valuesByCluster")
	CheckLength(r, entries, len(spec.ValuesByCluster), 0, 100)
	for i, entry := range spec.ValuesByCluster {
		p := entries.At(i)
		if entry.ClusterSelector == nil && entry.Expression == "" {
			r.Rulef(p, "selects no cluster; write clusterSelector or expression, or move the values to spec.values")
		}
		if entry.ClusterSelector != nil {
			checkClusterSelector(r, p.Child("clusterSelector"), entry.ClusterSelector)
		}
		if entry.Expression != "" {
			if _, err := expression.CompileSelector(entry.Expression); err != nil {
				r.Rulef(p.Child("expression"), "not a CEL expression over cluster, which has name, labels and properties: %v", err)
			}
			r.RecordLine(p.Child("expression"))
		}
		checkValues(r, p, entry.ValuesFiles, entry.Values, entry.Capabilities)
	}
}

func checkChartNamespace(r *document.Report, id api.ID, namespace string) {
	p := r.Field("spec", "namespace")
	switch {
	case namespace == "":
		r.Rulef(p, "missing; write the namespace of the release")
	case id.Namespace != "" && namespace != id.Namespace:
		r.Rulef(p, "is that of the HelmChart, %s, and cannot be another one; remove it, or use a ClusterHelmChart", id.Namespace)
	case id.Namespace == "" && api.ReservedNamespace(namespace):
		r.Rulef(p, "namespace %s is reserved%s; write another one", namespace, api.ReservedHint(namespace))
	default:
		rules(r, p, validation.IsDNS1123Label(namespace), "%q is not a valid namespace", namespace)
	}
}

func checkValues(r *document.Report, p *document.FieldPath, files []string, values json.RawMessage, capabilities *api.ChartCapabilities) {
	many := p.Child("valuesFiles")
	CheckLength(r, many, len(files), 0, 50)
	for i, text := range files {
		if _, err := overlay.Parse(text); err != nil {
			r.Rulef(many.At(i), "%s", strings.Replace(err.Error(), "a directory", "a file", 1))
		}
		r.RecordLine(many.At(i))
	}
	if text := bytes.TrimSpace(values); len(text) > 0 && text[0] != '{' && string(text) != "null" {
		r.Rulef(p.Child("values"), "must be a mapping")
	}
	if capabilities != nil && capabilities.KubeVersion != "" {
		checkKubeVersion(r, p.Child("capabilities", "kubeVersion"), capabilities.KubeVersion)
	}
}

func checkKubeVersion(r *document.Report, p *document.FieldPath, text string) {
	if _, err := version.ParseGeneric(text); err != nil {
		r.Rulef(p, "%q is not a version of Kubernetes; write one such as \"1.37.0\"", text)
	}
}
