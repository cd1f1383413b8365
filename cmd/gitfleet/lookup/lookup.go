// Package lookup resolves names as users write them.
package lookup

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Placement returns the full name for a full or partial one: crp/NAME, rp/NAMESPACE/NAME,
// rp/NAME, NAMESPACE/NAME or NAME.
func Placement(text string, known []string) (string, error) {
	if key, err := api.ParsePlacement(text); err == nil {
		return key.String(), Name("placement", key.String(), known)
	}
	var found []string
	for _, name := range known {
		if key, err := api.ParsePlacement(name); err == nil && meansPlacement(text, key) {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return "", &status.UnknownError{What: "placement", Name: text, Exist: known}
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s can be %s: write one of them", text, strings.Join(found, " or "))
}

// meansPlacement reports whether a partial name matches a placement.
func meansPlacement(text string, key api.PlacementKey) bool {
	kind, name, slash := strings.Cut(text, "/")
	if namespaced, ok := api.NamesPlacements(kind); ok && slash {
		return name == key.Name && namespaced == (key.Namespace != "")
	}
	return text == key.Name || key.Namespace != "" && text == key.Namespace+"/"+key.Name
}

// Name returns a *status.UnknownError if a name is neither empty nor among those that
// exist.
func Name(what, name string, names []string) error {
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return &status.UnknownError{What: what, Name: name, Exist: slices.Sorted(slices.Values(names))}
}

// InReport returns a *status.UnknownError if there is no such placement or
// cluster.
func InReport(r *status.Report, placement, cluster string) error {
	var clusters []string
	for _, c := range r.Clusters {
		clusters = append(clusters, c.Name)
	}
	if err := Name("placement", placement, Placements(r)); err != nil {
		return err
	}
	return Name("cluster", cluster, clusters)
}

// Placements returns the names of the placements in a report.
func Placements(r *status.Report) []string {
	var names []string
	for _, d := range r.Details {
		names = append(names, d.Placement)
	}
	return names
}
