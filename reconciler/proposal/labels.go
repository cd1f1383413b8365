package proposal

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/proposal/rollback"
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

// labelNames are the names of the labels that pull requests and issues may have, whatever the change.
func labelNames() []string {
	out := []string{driftLabel, holdLabel, issueLabel, severityLabel + defaultSeverity}
	for _, s := range severities {
		out = append(out, severityLabel+s.name)
	}
	return out
}

// labelOf returns a label with its color and description, for when it is created.
func labelOf(name string) forge.Label {
	switch {
	case name == driftLabel:
		return forge.Label{Name: name, Color: "#0969da", Description: "Something was changed on member clusters"}
	case name == holdLabel:
		return forge.Label{Name: name, Color: "#8250df", Description: "Keeps the object on the clusters as it is, also after closing"}
	case name == rollback.Label:
		return forge.Label{Name: name, Color: "#cf222e", Description: "Content that has failed in an update run, and was rolled back"}
	case name == issueLabel:
		return forge.Label{Name: name, Color: "#bf8700", Description: "No edit of the files in Git makes the change"}
	case strings.HasPrefix(name, severityLabel):
		colors := map[string]string{"rbac": "#cf222e", "image": "#bc4c00", "replicas": "#1a7f37"}
		return forge.Label{Name: name, Color: cmp.Or(colors[strings.TrimPrefix(name, severityLabel)], "#6e7781"), Description: "What kind of field was changed on member clusters"}
	}
	return forge.Label{Name: name, Color: "#57606a", Description: "The placement whose object was changed"}
}

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
func (c *change) severity() string {
	for _, s := range severities {
		if slices.ContainsFunc(c.paths, func(d api.Difference) bool { return s.fits(c.id, d.Path) }) {
			return s.name
		}
	}
	return defaultSeverity
}

// labels returns the labels of the pull request or issue.
func (c *change) labels() []string {
	if c.rollback != nil {
		return rollbackLabels(c)
	}
	all := []string{driftLabel, severityLabel + c.severity()}
	for _, d := range c.drifts {
		_, name, _ := strings.Cut(d.Placement, "/")
		label := placementLabel + name
		if label = label[:min(len(label), longestLabel)]; !slices.Contains(all, label) {
			all = append(all, label)
		}
	}
	if c.reason != nil {
		all = append(all, issueLabel)
	}
	return all
}

// rollbackLabels are those of an offer to undo content.
func rollbackLabels(c *change) []string {
	labels := c.rollback.Labels()
	if c.reason != nil {
		labels = append(labels, issueLabel)
	}
	return labels
}
