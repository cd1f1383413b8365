package proposal

import (
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The labels of pull requests and issues.
const (
	driftLabel = "gitfleet/drift"
	// holdLabel keeps the object as it is while a pull request or issue has it, even a closed
	// one.
	holdLabel = "gitfleet/hold"
	// issueLabel is the label of issues, for changes that people have to make in Git by hand.
	issueLabel      = "gitfleet/manual-edit"
	placementLabel  = "placement/"
	severityLabel   = "gitfleet/severity: "
	longestLabel    = 50 // the maximum of the forges
	defaultSeverity = "other"
)

// severities are tried in order. The first one that matches one of the fields is that of the
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

// severity returns the severity of a change, for its label.
func (o *offer) severity() string {
	for _, s := range severities {
		if slices.ContainsFunc(o.paths, func(d api.Difference) bool { return s.fits(o.id, d.Path) }) {
			return s.name
		}
	}
	return defaultSeverity
}

// labels returns the labels with which a pull request or issue is opened.
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
