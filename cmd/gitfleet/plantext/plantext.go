// Package plantext writes plans as text.
package plantext

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
)

// Plan returns a plan as text: what changes, where each placement goes, what each cluster gets,
// and what needs attention.
func Plan(d forecast.Document, changes forecast.Changes) string {
	var all strings.Builder
	b := &all
	Changes(b, changes, d.Deletions)
	printRecreations(b, d.Recreations)
	for _, p := range d.Placements {
		printPlacement(b, p, len(d.Clusters))
	}
	printClusters(b, d.Clusters)
	for i, problem := range d.Problems {
		if i == 0 {
			fmt.Fprintln(b)
		}
		fmt.Fprintf(b, "%s: %s\n", problem.Severity, problem.Error())
	}
	return b.String()
}

// Changes writes what changes, and which deletions; nothing if plans were not compared.
func Changes(b *strings.Builder, c forecast.Changes, deletions []forecast.Deletion) {
	switch {
	case !c.Compared:
		return
	case c.None() && !c.ContentsKnown:
		fmt.Fprint(b, "No cluster gains or loses an object. Only the names of the earlier objects are known, so what they contain is not compared: compare two commits, as REPO@FROM..TO.\n\n")
		return
	case c.None():
		fmt.Fprint(b, "Nothing changes: the same clusters get the same objects.\n\n")
		return
	}
	if len(c.Placements)+len(c.Clusters) > 0 {
		fmt.Fprintln(b, "Changes:")
		for _, p := range c.Placements {
			printPlacementChange(b, p)
		}
		for _, p := range c.Clusters {
			printClusterChange(b, p)
		}
		fmt.Fprintln(b)
	}
	printContents(b, c.Contents)
	if len(deletions) > 0 {
		fmt.Fprintf(b, "%s\n", Deletions(deletions))
		printBlocked(b, deletions)
		fmt.Fprintln(b)
	}
}

// maxLines is the maximum number of lines of the difference of an object; the JSON has all of them.
const maxLines = 60

// printContents writes the objects whose content changes, with their differences.
func printContents(b *strings.Builder, all []forecast.ContentChange) {
	for i, c := range all {
		if i == 0 {
			fmt.Fprintln(b, "Changed objects:")
		}
		fmt.Fprintf(b, "  ~ %s  (%s) on %s%s\n", c.After.ID, c.Placement, forecast.FewOf(c.Clusters), c.Note())
		if at := c.After.Origin; at.Path != "" {
			fmt.Fprintf(b, "    %s\n", output.Escape(at.String()))
		}
		lines := slices.Collect(strings.Lines(c.Diff()))
		for _, line := range lines[:min(len(lines), maxLines)] {
			fmt.Fprintf(b, "    %s\n", output.Escape(strings.TrimSuffix(line, "\n")))
		}
		switch rest := len(lines) - maxLines; {
		case rest > 0:
			fmt.Fprintf(b, "    and %s more; -o json has all of them\n", output.Count(rest, "line"))
		case len(lines) == 0:
			fmt.Fprintf(b, "    %s\n", c.NoDiff())
		}
	}
	if len(all) > 0 {
		fmt.Fprintln(b)
	}
}

func printPlacementChange(b *strings.Builder, c forecast.PlacementChange) {
	if c.RenamedFrom != "" {
		fmt.Fprintf(b, "  %s\n", Rename(c.RenamedFrom, c.Placement))
		if len(c.Gained)+len(c.Lost)+len(c.Settings) == 0 && c.PolicyTo == "" {
			return
		}
	}
	fmt.Fprintf(b, "  %s", strings.TrimSuffix(c.Placement+" "+c.Summary(), " "))
	if len(c.Gained) > 0 {
		fmt.Fprintf(b, ": gains %s", strings.Join(c.Gained, ", "))
	}
	if len(c.Lost) > 0 {
		fmt.Fprintf(b, "%s leaves %s", map[bool]string{true: ";", false: ":"}[len(c.Gained) > 0], strings.Join(c.Lost, ", "))
	}
	fmt.Fprintln(b)
	if c.PolicyTo != "" {
		fmt.Fprintf(b, "    policy: %s → %s\n", c.PolicyFrom, c.PolicyTo)
	}
	for _, s := range c.Settings {
		fmt.Fprintf(b, "    %s: %s → %s\n", s.Field, output.Escape(cmp.Or(s.From, "<none>")), output.Escape(cmp.Or(s.To, "<none>")))
	}
}

// printBlocked writes why deletions would be blocked. Objects of a placement whose deletion is blocked for the
// same reason on the same clusters share one line.
func printBlocked(b *strings.Builder, all []forecast.Deletion) {
	type object struct {
		placement, why string
		id             api.ID
	}
	type reason struct{ placement, why, clusters string }
	type blocked = output.Group[object, forecast.Deletion]
	objects := output.GroupBy(blockedOf(all), func(d forecast.Deletion) object { return object{d.Placement, d.Blocked, d.ID()} })
	for i, g := range output.GroupBy(objects, func(o blocked) reason {
		return reason{o.Key.placement, o.Key.why, strings.Join(clustersOf(o.Items), ",")}
	}) {
		if i == 0 {
			fmt.Fprintln(b, "Blocked deletions:")
		}
		fmt.Fprintf(b, "  %s on %s: %s\n", g.Key.placement, forecast.FewOf(clustersOf(g.Items[0].Items)), g.Key.why)
		for _, o := range g.Items[:min(len(g.Items), maxRows)] {
			fmt.Fprintf(b, "    %s\n", o.Key.id)
		}
		if n := len(g.Items) - maxRows; n > 0 {
			fmt.Fprintf(b, "    and %s more; -o json has all of them\n", output.Count(n, "object"))
		}
	}
}

// blockedOf returns the deletions that would be blocked.
func blockedOf(all []forecast.Deletion) []forecast.Deletion {
	return slices.DeleteFunc(slices.Clone(all), func(d forecast.Deletion) bool { return d.Blocked == "" })
}

// clustersOf returns the clusters of deletions, without duplicates.
func clustersOf(all []forecast.Deletion) []string {
	var names []string
	for _, g := range output.GroupBy(all, func(d forecast.Deletion) string { return d.Cluster }) {
		names = append(names, g.Key)
	}
	return names
}

// printRecreations writes which objects would be recreated. An object of a placement on several
// clusters has one line.
func printRecreations(b *strings.Builder, all []forecast.Recreation) {
	rows := output.GroupBy(all, func(r forecast.Recreation) [2]string {
		what := "recreated, since an immutable field changes"
		switch {
		case r.Blocked != "":
			what = "recreated, blocked: " + r.Blocked
		case !r.Certain:
			what = "may be recreated: only the cluster knows which fields are immutable"
		}
		return [2]string{fmt.Sprintf("%s  (%s)", r.ID(), r.Placement), what}
	})
	for i, row := range rows {
		if i == 0 {
			fmt.Fprintln(b, "Recreated objects:")
		}
		var clusters []string
		for _, r := range row.Items {
			clusters = append(clusters, r.Cluster)
		}
		fmt.Fprintf(b, "  %s on %s: %s\n", row.Key[0], forecast.FewOf(clusters), row.Key[1])
	}
	if len(rows) > 0 {
		fmt.Fprintln(b)
	}
}

// Rename describes the renaming of a placement.
func Rename(from, to string) string {
	return fmt.Sprintf("%s is renamed to %s; its clusters and rollout carry over", from, to)
}

func printClusterChange(b *strings.Builder, c forecast.ClusterChange) {
	switch {
	case c.Gone:
		fmt.Fprintf(b, "  %s leaves the fleet; it had %s, which stay there and are no longer managed\n", c.Cluster, output.Count(len(c.Lost), "object"))
		return
	case c.New:
		fmt.Fprintf(b, "  %s is a new member\n", c.Cluster)
	default:
		fmt.Fprintf(b, "  %s\n", c.Cluster)
	}
	for _, o := range c.Gained {
		fmt.Fprintf(b, "    + %s  (%s)\n", o.ID(), o.Placement)
	}
	for _, o := range c.Deleted {
		fmt.Fprintf(b, "    - %s  (%s)", o.ID(), o.Placement)
		if o.Blocked != "" {
			fmt.Fprint(b, ", blocked")
		}
		fmt.Fprintln(b)
	}
	for _, o := range c.Released {
		fmt.Fprintf(b, "    o %s  (%s), which stays and is released\n", o.ID(), o.Placement)
	}
	for _, o := range c.Passed {
		fmt.Fprintf(b, "    = %s  (%s, before %s)\n", o.ID(), o.Placement, o.From)
	}
}

// maxRows is the maximum number of unselected clusters, and of objects of a selection, that
// are shown; the JSON has all of them.
const maxRows = 20

func printPlacement(b *strings.Builder, p forecast.Placement, members int) {
	fmt.Fprintf(b, "%s: %d of %s\n", p.Key(), len(p.Selected()), output.Count(members, "cluster"))
	for _, c := range p.Conditions {
		if c.Status != metav1.ConditionTrue {
			fmt.Fprintf(b, "  %s: %s\n", c.Reason, c.Message)
		}
	}
	if p.Unclear == "" {
		printDecisions(b, p.Decisions)
	} else { // all others are left out for the same reason
		printDecisions(b, slices.DeleteFunc(slices.Clone(p.Decisions), func(d forecast.Decision) bool { return !d.Selected }))
	}
	if n := len(p.SelectedResources); n > 0 {
		var names []string
		for _, r := range p.SelectedResources[:min(n, maxRows)] {
			names = append(names, forecast.Object{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}.ID().String())
		}
		if n > maxRows {
			names = append(names, fmt.Sprintf("%d more", n-maxRows))
		}
		fmt.Fprintf(b, "  selects %s\n", strings.Join(names, ", "))
	} else if p.Unclear == "" {
		fmt.Fprintln(b, "  selects nothing")
	}
	for _, line := range p.Calendar {
		fmt.Fprintf(b, "  %s\n", line)
	}
	for _, problem := range p.Problems {
		fmt.Fprintf(b, "  %s: %s\n", problem.Severity, problem.Error())
	}
	fmt.Fprintln(b)
}

func printDecisions(b *strings.Builder, all []forecast.Decision) {
	width, others, scored := 0, 0, false
	for _, d := range all {
		width = max(width, len(d.Cluster))
		scored = scored || d.AffinityScore != nil && *d.AffinityScore != 0 || d.TopologySpreadScore != nil && *d.TopologySpreadScore != 0
	}
	for _, d := range all {
		mark := "+"
		if !d.Selected {
			mark = "-"
			if others++; others > maxRows {
				continue
			}
		}
		fmt.Fprintf(b, "  %s\n", strings.TrimRight(fmt.Sprintf("%s %-*s  %s", mark, width, d.Cluster, decisionText(d, scored)), " "))
	}
	if others > maxRows {
		fmt.Fprintf(b, "    and %s more that are not selected; -o json has all of them\n", output.Count(others-maxRows, "cluster"))
	}
}

// decisionText returns the reason of a decision or, for a selected cluster, its scores, if
// scores matter.
func decisionText(d forecast.Decision, scored bool) string {
	switch {
	case !d.Picked:
		return d.Reason
	case !scored || d.AffinityScore == nil || d.TopologySpreadScore == nil:
		return d.Note
	}
	text := fmt.Sprintf("affinity score %d, topology spread score %d", *d.AffinityScore, *d.TopologySpreadScore)
	if d.Note != "" {
		text += "; " + d.Note
	}
	return text
}

// printClusters prints what clusters have, grouped by content.
func printClusters(b *strings.Builder, clusters []forecast.Cluster) {
	if len(clusters) == 0 {
		fmt.Fprintln(b, "there is no member cluster: the checkout declares none, and --clusters names none")
	}
	type group struct {
		names   []string
		objects []forecast.Object
	}
	var groups []group
	for _, c := range clusters {
		i := slices.IndexFunc(groups, func(g group) bool { return slices.Equal(g.objects, c.Objects) })
		if i < 0 {
			i, groups = len(groups), append(groups, group{objects: c.Objects})
		}
		groups[i].names = append(groups[i].names, c.Name)
	}
	for _, g := range groups {
		holds := "holds"
		if len(g.names) > 1 {
			holds = "hold"
		}
		if len(g.objects) == 0 {
			fmt.Fprintf(b, "%s %s nothing\n", strings.Join(g.names, ", "), holds)
			continue
		}
		fmt.Fprintf(b, "%s %s %s:\n", strings.Join(g.names, ", "), holds, output.Count(len(g.objects), "object"))
		printObjects(b, g.objects)
	}
}

func printObjects(b *strings.Builder, objects []forecast.Object) {
	width := 0
	for _, o := range objects {
		width = max(width, len(o.ID().String()))
	}
	for _, o := range objects {
		fmt.Fprintf(b, "  %-*s  %s\n", width, o.ID().String(), o.Placement)
	}
}

// Deletions counts the objects that are deleted, each once however many clusters have it, and says how to allow those that would be blocked.
func Deletions(all []forecast.Deletion) string {
	text := fmt.Sprintf("%s on %s would be deleted", output.Count(forecast.CountObjects(all), "object"), output.Count(len(clustersOf(all)), "cluster"))
	blocked := blockedOf(all)
	if len(blocked) == 0 {
		return text + "; none of that would be blocked."
	}
	placements := map[string]bool{}
	for _, d := range blocked {
		placements[d.Placement] = true
	}
	return fmt.Sprintf("%s; %d would be blocked until the message of a commit has the trailer\n  %s",
		text, forecast.CountObjects(blocked), conditions.AllowTrailer(strings.Join(slices.Sorted(maps.Keys(placements)), ", ")))
}
