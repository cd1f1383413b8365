package validation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/expression"
	"github.com/gitfleet/gitfleet/placement/overlay"
)

// ChartField returns the field at whose line problems of a chart are reported: its path, or its version in a repository.
func ChartField(spec *api.ChartSpec) string {
	if spec.Chart.Repository != "" {
		return "spec.chart.version"
	}
	return "spec.chart.path"
}

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
	checkChartSource(r, spec.Chart)
	if fault := ReleaseFault(spec.ReleaseName); fault != "" {
		r.Rulef(r.Field("spec", "releaseName"), "%s", fault)
	}
	checkChartNamespace(r, id, spec)
	checkReservedNamespaces(r, id, spec.ReservedNamespaces)
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

// chartRepository matches an address of charts, and chartName the name of a chart in one.
var (
	chartRepository = regexp.MustCompile(`^(oci|https?)://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~%/-]*)?$`)
	chartName       = regexp.MustCompile(`^[A-Za-z0-9]+([._-][A-Za-z0-9]+)*$`)
)

func checkChartSource(r *document.Report, c api.ChartSource) {
	at := r.Field("spec", "chart", "path")
	version := r.Field("spec", "chart", "version")
	r.RecordLine(at)
	r.RecordLine(version)
	switch {
	case c.Repository != "":
		checkRemoteChart(r, c)
		return
	case c.Name != "" || c.Version != "":
		r.Rulef(r.Field("spec", "chart", "repository"), "missing; write the repository of the chart, such as oci://HOST/PATH, or only the path of a chart that is in this one")
		return
	case c.Path == "":
		r.Rulef(at, "missing; write the directory of a chart in the repository, such as charts/web, or the repository, name and version of another one")
		return
	}
	if p, err := overlay.Parse(c.Path); err != nil {
		r.Rulef(at, "%v", err)
	} else if p.HasVariables() {
		r.Rulef(at, "%q has variables, and the chart is the same for all clusters; write a HelmChart for each chart", c.Path)
	}
}

func checkRemoteChart(r *document.Report, c api.ChartSource) {
	field := func(name string) *document.FieldPath { return r.Field("spec", "chart", name) }
	if c.Path != "" {
		r.Rulef(field("path"), "cannot be set with a repository; remove one of them")
	}
	for _, fault := range RemoteChartFaults(c) {
		r.Rulef(field(fault.Field), "%s", fault.Message)
	}
}

// A ChartFault is what is wrong with a field of a chart from elsewhere.
type ChartFault struct{ Field, Message string }

// RemoteChartFaults returns what is wrong with a chart from elsewhere. The fields are repository, name and version.
func RemoteChartFaults(c api.ChartSource) (all []ChartFault) {
	if !chartRepository.MatchString(c.Repository) {
		all = append(all, ChartFault{"repository", fmt.Sprintf("%q is not the address of charts; write oci://HOST/PATH without the name of the chart, or https://HOST/PATH of a repository with an index.yaml, without credentials, which are set in hosts of the configuration", c.Repository)})
	}
	if !chartName.MatchString(c.Name) {
		all = append(all, ChartFault{"name", fmt.Sprintf("%q is not the name of a chart; write it without a path, which belongs to the repository", c.Name)})
	}
	if c.Version == "" {
		all = append(all, ChartFault{"version", "missing; write a version, or a range such as ^1.2, of which gitfleet lock locks the newest"})
	} else if _, err := semver.NewConstraint(c.Version); err != nil {
		all = append(all, ChartFault{"version", fmt.Sprintf("%q is neither a version nor a range of versions such as ^1.2 or 1.x", c.Version)})
	}
	return all
}

// longestRelease is how long Helm allows the name of a release to be.
const longestRelease = 53

// ReleaseFault returns why a text cannot be the name of a release; empty if it can.
func ReleaseFault(name string) string {
	if len(name) > longestRelease {
		return fmt.Sprintf("%q has more than %d characters, which Helm does not allow; write a shorter one", name, longestRelease)
	}
	if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
		return fmt.Sprintf("%q is not a valid name of a release: %s", name, strings.Join(faults, "; "))
	}
	return ""
}

func checkChartNamespace(r *document.Report, id api.ID, spec *api.ChartSpec) {
	p := r.Field("spec", "namespace")
	switch {
	case spec.Namespace == "":
		r.Rulef(p, "missing; write the namespace of the release")
	case id.Namespace != "" && spec.Namespace != id.Namespace:
		r.Rulef(p, "is that of the HelmChart, %s, and cannot be another one; remove it, or use a ClusterHelmChart", id.Namespace)
	default:
		checkDefaultNamespace(r, id, spec.Namespace, spec.ReservedNamespaces)
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
