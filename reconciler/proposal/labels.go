package proposal

import (
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The labels of pull requests and issues.
const (
	driftLabel = "gitfleet/drift"
	// holdLabel has the object left as it is for as long as a pull request has it, also
	// one that was closed.
	holdLabel = "gitfleet/hold"
	// issueLabel is that of the issues of changes that people have to make in Git by hand.
	issueLabel      = "gitfleet/manual-edit"
	placementLabel  = "placement/"
	severityLabel   = "gitfleet/severity: "
	longestLabel    = 50 // what the forges allow
	defaultSeverity = "other"
)

// severities are tried in order; the first that fits one of the fields is that of the
// change.
var severities = []struct {
	name string
	fits func(id api.ID, path string) bool
}{
	{"rbac", func(id api.ID, _ string) bool {
		return id.Group == "rbac.authorization.k8s.io" || id.Kind == "ServiceAccount" && id.Group == ""
	}},
	{"image", func(_ api.ID, path string) bool { return strings.HasSuffix(path, "/image") }},
	{"replicas", func(_ api.ID, path string) bool { return strings.HasSuffix(path, "/replicas") }},
}

// severity says what kind of change it is.
func (o *offer) severity() string {
	for _, s := range severities {
		if slices.ContainsFunc(o.paths, func(d api.Difference) bool { return s.fits(o.id, d.Path) }) {
			return s.name
		}
	}
	return defaultSeverity
}

// labels are those that a pull request or an issue is opened with.
func (o *offer) labels() []string {
	all := []string{driftLabel, severityLabel + o.severity()}
	for _, d := range o.drifts {
		_, name, _ := strings.Cut(d.Placement, "/")
		label := placementLabel + name
		if label = label[:min(len(label), longestLabel)]; !slices.Contains(all, label) {
			all = append(all, label)
		}
	}
	return all
}
