package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A table has a header and rows; the first column names the row.
type table struct {
	header []string
	rows   [][]string
}

// print writes the table, without the header if that is not wanted.
func (t table) print(w io.Writer, f format) {
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	if !f.noHeaders {
		fmt.Fprintln(tw, strings.Join(t.header, "\t"))
	}
	room := t.room(pageOf(w))
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = harmless(cell)
		}
		last := len(cells) - 1
		lines := []string{cells[last]}
		if room > 0 && wide(cells[last]) > room {
			lines = wrap(cells[last], room)
		}
		for _, line := range lines {
			cells[last] = line
			fmt.Fprintln(tw, strings.Join(cells, "\t"))
			clear(cells)
		}
	}
	tw.Flush()
}

// room is how wide the last column may be on a terminal; zero if it is not
// bounded.
func (t table) room(p page) int {
	const least = 20
	if !p.terminal {
		return 0
	}
	room := p.width
	for i, name := range t.header[:len(t.header)-1] {
		column := wide(name)
		for _, row := range t.rows {
			column = max(column, wide(row[i]))
		}
		room -= column + 3
	}
	return max(room, least)
}

// placementTable lists the placements of a report. Qualified names have their
// kind; others, if there are only ResourcePlacements, a column for the namespace.
func placementTable(r *status.Report, wide, qualified bool) table {
	namespaces := !qualified && len(r.ResourcePlacements) > 0
	t := table{header: []string{"NAME", "TYPE", "CLUSTERS", "SCHEDULED", "APPLIED", "AVAILABLE", "COMMIT", "AGE"}}
	if wide {
		t.header = append(t.header, "GEN", "INDEX", "WHERE", "MESSAGE")
	}
	if namespaces {
		t.header = append([]string{"NAMESPACE"}, t.header...)
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
		progress := []string{clusterCount(s), conditionOf(s.Conditions, prefix+api.Scheduled), share(s, api.Applied), share(s, api.Available)}
		if m.DeletionTimestamp != nil {
			progress = []string{strconv.Itoa(len(d.Clusters)), "Deleted", "-", "-"}
		}
		row := slices.Concat([]string{name, placementType(spec)}, progress, []string{commitOf(d), age(r.At, m.CreationTimestamp)})
		if namespaces {
			row = append([]string{key.Namespace}, row...)
		}
		if wide {
			row = append(row, strconv.FormatInt(m.Generation, 10), s.ObservedResourceIndex, where(s), firstTrouble(s))
		}
		t.rows = append(t.rows, row)
	}
	for _, p := range r.Placements {
		add(api.PlacementKey{Name: p.Name}, p.ObjectMeta, p.Spec, p.Status)
	}
	for _, p := range r.ResourcePlacements {
		add(api.PlacementKey{Namespace: p.Namespace, Name: p.Name}, p.ObjectMeta, p.Spec, p.Status)
	}
	return t
}

func placementType(s api.PlacementSpec) string {
	if s.Policy == nil || s.Policy.PlacementType == "" {
		return string(api.PickAll)
	}
	return string(s.Policy.PlacementType)
}

// clusterCount is how many clusters are selected, and of how many if some are
// missing.
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

func conditionOf(cs []metav1.Condition, typ string) string {
	for _, c := range cs {
		if c.Type == typ {
			return string(c.Status)
		}
	}
	return "-"
}

// share counts the clusters for which a condition is true.
func share(s api.PlacementStatus, typ string) string {
	yes, all := 0, 0
	for _, c := range s.PlacementStatuses {
		if c.ClusterName == "" {
			continue
		}
		all++
		if conditionOf(c.Conditions, typ) == string(metav1.ConditionTrue) {
			yes++
		}
	}
	return fmt.Sprintf("%d/%d", yes, all)
}

// commitOf is the commit that brought what the clusters hold, or a range.
func commitOf(d *status.Detail) string {
	if d == nil {
		return "-"
	}
	var commits []string
	for _, c := range d.Clusters {
		if s := short(c.Commit); s != "" && !slices.Contains(commits, s) {
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

func age(now time.Time, since metav1.Time) string {
	if since.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(since.Time))
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

// firstTrouble is the first condition that is not true, in the words of the
// cluster it is about.
func firstTrouble(s api.PlacementStatus) string {
	for _, c := range s.PlacementStatuses {
		for _, cond := range c.Conditions {
			if cond.Status != metav1.ConditionTrue {
				text := cond.Message
				if len(c.FailedPlacements) > 0 {
					f := c.FailedPlacements[0]
					text = f.ID().String() + ": " + cause(f.Condition.Message)
				}
				if c.ClusterName == "" {
					return text
				}
				return c.ClusterName + ": " + text
			}
		}
	}
	for _, cond := range s.Conditions {
		if cond.Status != metav1.ConditionTrue {
			return cond.Message
		}
	}
	return ""
}

func clusterTable(r *status.Report, wide, qualified bool) table {
	t := table{header: []string{"NAME", "JOINED", "HEALTHY", "LAST-SEEN", "NODES", "AVAILABLE-CPU", "AVAILABLE-MEMORY", "VERSION"}}
	if wide {
		t.header = append(t.header, "LABELS", "MESSAGE")
	}
	for _, c := range r.Clusters {
		healthy, seen, message := "-", "-", ""
		for _, a := range c.Status.AgentStatus {
			healthy, seen = conditionOf(a.Conditions, api.Healthy), age(r.At, a.LastReceivedHeartbeat)
			message = messageOf(a.Conditions)
		}
		if message == "" {
			message = messageOf(c.Status.Conditions)
		}
		name := c.Name
		if qualified {
			name = "mc/" + name
		}
		row := []string{
			name, conditionOf(c.Status.Conditions, api.Joined), healthy, seen, property(c, "kubernetes-fleet.io/node-count"),
			quantity(c.Status.ResourceUsage.Available, "cpu"), quantity(c.Status.ResourceUsage.Available, "memory"), property(c, "k8s.io/k8s-version"),
		}
		if wide {
			row = append(row, labelsText(c.Labels), message)
		}
		t.rows = append(t.rows, row)
	}
	return t
}

func messageOf(cs []metav1.Condition) string {
	for _, c := range cs {
		if c.Status != metav1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

func property(c *api.MemberCluster, name string) string {
	if v, ok := c.Status.Properties[name]; ok {
		return v.Value
	}
	return "-"
}

func quantity(list api.ResourceList, name string) string {
	if q, ok := list[name]; ok {
		return q.String()
	}
	return "-"
}

func labelsText(m map[string]string) string {
	var out []string
	for k, v := range m {
		if k != api.MemberNameLabel {
			out = append(out, k+"="+v)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}
