package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// placementTable lists the placements of a report. Qualified names have their
// kind; others, if there are only ResourcePlacements, a column for the namespace.
func placementTable(r *status.Report, wide, qualified bool) output.Table {
	namespaces := !qualified && len(r.ResourcePlacements) > 0
	t := output.Table{Header: []string{"NAME", "TYPE", "CLUSTERS", "SCHEDULED", "APPLIED", "AVAILABLE", "COMMIT", "AGE"}}
	if wide {
		t.Header = append(t.Header, "GEN", "INDEX", "WHERE", "MESSAGE")
	}
	if namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
	details := map[string]*status.Detail{}
	for _, d := range r.Details {
		details[d.Placement] = d
	}
	add := func(key api.PlacementKey, m metav1.ObjectMeta, spec api.PlacementSpec, s api.PlacementStatus) {
		prefix := api.PlacementPrefix
		name := key.Name
		if key.Namespace != "" {
			prefix = api.ResourcePlacementPrefix
		}
		if qualified {
			name = key.String()
		}
		d := details[key.String()]
		progress := []string{clusterCount(s), overview.ConditionStatus(s.Conditions, prefix+api.Scheduled), share(s, api.Applied), share(s, api.Available)}
		if m.DeletionTimestamp != nil {
			progress = []string{strconv.Itoa(len(d.Clusters)), "Deleted", "-", "-"}
		}
		row := slices.Concat([]string{name, placementType(spec)}, progress, []string{commitOf(d), output.Since(r.At, m.CreationTimestamp.Time)})
		if namespaces {
			row = append([]string{key.Namespace}, row...)
		}
		if wide {
			row = append(row, strconv.FormatInt(m.Generation, 10), s.ObservedResourceIndex, where(s), overview.FirstProblem(s))
		}
		t.Rows = append(t.Rows, row)
	}
	for _, p := range r.Placements {
		add(api.PlacementKey{Name: p.Name}, p.ObjectMeta, p.Spec, p.Status)
	}
	for _, p := range r.ResourcePlacements {
		add(api.PlacementKey{Namespace: p.Namespace, Name: p.Name}, p.ObjectMeta, p.Spec, p.Status)
	}
	return t
}

// placementType returns the placement type, PickAll by default.
func placementType(s api.PlacementSpec) string {
	if s.Policy == nil || s.Policy.PlacementType == "" {
		return string(api.PickAll)
	}
	return string(s.Policy.PlacementType)
}

// clusterCount returns the number of selected clusters, and of how many if some are missing.
func clusterCount(s api.PlacementStatus) string {
	found := 0
	for _, c := range s.PlacementStatuses {
		if c.ClusterName != "" {
			found++
		}
	}
	if found < len(s.PlacementStatuses) {
		return fmt.Sprintf("%d/%d", found, len(s.PlacementStatuses))
	}
	return strconv.Itoa(found)
}

// share counts the clusters for which a condition is true.
func share(s api.PlacementStatus, typ string) string {
	yes, all := 0, 0
	for _, c := range s.PlacementStatuses {
		if c.ClusterName == "" {
			continue
		}
		all++
		if overview.ConditionStatus(c.Conditions, typ) == string(metav1.ConditionTrue) {
			yes++
		}
	}
	return fmt.Sprintf("%d/%d", yes, all)
}

// commitOf returns the commit of the content of the clusters, or the number of commits if they
// differ.
func commitOf(d *status.Detail) string {
	if d == nil {
		return "-"
	}
	var commits []string
	for _, c := range d.Clusters {
		if s := output.ShortHash(c.Commit); s != "" && !slices.Contains(commits, s) {
			commits = append(commits, s)
		}
	}
	switch len(commits) {
	case 0:
		return "-"
	case 1:
		return commits[0]
	}
	return fmt.Sprintf("%d commits", len(commits))
}

func where(s api.PlacementStatus) string {
	var names []string
	for _, c := range s.PlacementStatuses {
		if c.ClusterName != "" {
			names = append(names, c.ClusterName)
		}
	}
	return strings.Join(names, ",")
}
