package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// printPlan writes a plan for a person: what changes, then where each placement
// goes, then what each cluster holds, then what to look at.
func printPlan(w io.Writer, d planDocument, changes planChanges) error {
	var b bytes.Buffer
	changes.print(&b, d.Deletions)
	for _, p := range d.Placements {
		p.print(&b, len(d.Clusters))
	}
	printClusters(&b, d.Clusters)
	for i, problem := range d.Problems {
		if i == 0 {
			fmt.Fprintln(&b)
		}
		fmt.Fprintf(&b, "%s: %s\n", problem.Severity, problem.text())
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (c planChanges) print(b *bytes.Buffer, deletions []planDeletion) {
	switch {
	case !c.compared:
		return
	case c.none():
		fmt.Fprint(b, "Nothing changes: the same clusters get the same objects.\n\n")
		return
	}
	fmt.Fprintln(b, "Changes:")
	for _, p := range c.placements {
		p.print(b)
	}
	for _, p := range c.clusters {
		p.print(b)
	}
	fmt.Fprintln(b)
	if len(deletions) > 0 {
		fmt.Fprintf(b, "%s\n", deletionsText(deletions))
		printHeld(b, deletions)
		fmt.Fprintln(b)
	}
}

func (c placementChange) print(b *bytes.Buffer) {
	what := ""
	switch {
	case c.renamedFrom != "":
		fmt.Fprintf(b, "  %s\n", renameText(c.renamedFrom, c.placement))
		if len(c.gained)+len(c.lost) == 0 {
			return
		}
	case c.unclear && c.fresh:
		what = " is new, and may be a renamed placement: nothing of it is placed"
	case c.unclear:
		what = " is gone, and may have been renamed: it keeps what it holds"
	case c.gone:
		what = " is gone"
	case c.fresh:
		what = " is new"
	}
	fmt.Fprintf(b, "  %s%s", c.placement, what)
	if len(c.gained) > 0 {
		fmt.Fprintf(b, ": gains %s", strings.Join(c.gained, ", "))
	}
	if len(c.lost) > 0 {
		fmt.Fprintf(b, "%s leaves %s", map[bool]string{true: ";", false: ":"}[len(c.gained) > 0], strings.Join(c.lost, ", "))
	}
	fmt.Fprintln(b)
}

// printHeld writes why deletions would be held, once for the objects of a placement that
// are held for the same reason on the same clusters.
func printHeld(b *bytes.Buffer, all []planDeletion) {
	type object struct {
		placement, why string
		id             api.ID
	}
	var objects []object
	clusters := map[object][]string{}
	for _, d := range all {
		if d.Held == "" {
			continue
		}
		o := object{d.Placement, d.Held, d.id()}
		if clusters[o] == nil {
			objects = append(objects, o)
		}
		clusters[o] = append(clusters[o], d.Cluster)
	}
	type group struct{ placement, why, clusters string }
	var groups []group
	in := map[group][]object{}
	for _, o := range objects {
		g := group{o.placement, o.why, strings.Join(clusters[o], ",")}
		if in[g] == nil {
			groups = append(groups, g)
		}
		in[g] = append(in[g], o)
	}
	for i, g := range groups {
		if i == 0 {
			fmt.Fprintln(b, "Held deletions:")
		}
		held := in[g]
		fmt.Fprintf(b, "  %s on %s: %s\n", g.placement, fewOf(clusters[held[0]]), g.why)
		for _, o := range held[:min(len(held), mostRows)] {
			fmt.Fprintf(b, "    %s\n", o.id)
		}
		if n := len(held) - mostRows; n > 0 {
			fmt.Fprintf(b, "    and %s more; -o json has all of them\n", number(n, "object"))
		}
	}
}

// renameText says what becomes of a placement that was renamed.
func renameText(from, to string) string {
	return fmt.Sprintf("%s is renamed to %s; its clusters and rollout carry over", from, to)
}

func (c clusterChange) print(b *bytes.Buffer) {
	switch {
	case c.gone:
		fmt.Fprintf(b, "  %s leaves the fleet; it had %s, which stay there and are no longer managed\n", c.cluster, number(len(c.lost), "object"))
		return
	case c.fresh:
		fmt.Fprintf(b, "  %s is a new member\n", c.cluster)
	default:
		fmt.Fprintf(b, "  %s\n", c.cluster)
	}
	for _, o := range c.gained {
		fmt.Fprintf(b, "    + %s  (%s)\n", o.title(), o.Placement)
	}
	for _, o := range c.deleted {
		fmt.Fprintf(b, "    - %s  (%s)", o.title(), o.Placement)
		if o.Held != "" {
			fmt.Fprint(b, ", held")
		}
		fmt.Fprintln(b)
	}
	for _, o := range c.released {
		fmt.Fprintf(b, "    o %s  (%s), which stays and is released\n", o.title(), o.Placement)
	}
	for _, o := range c.passed {
		fmt.Fprintf(b, "    = %s  (%s, before %s)\n", o.title(), o.Placement, o.from)
	}
}

// mostRows is how many clusters that are not selected, and how many objects of
// a selection, are shown: the JSON has all of them.
const mostRows = 20

func (p planPlacement) print(b *bytes.Buffer, members int) {
	fmt.Fprintf(b, "%s: %d of %s\n", p.key(), len(p.selected()), number(members, "cluster"))
	for _, c := range p.Conditions {
		if c.Status != metav1.ConditionTrue {
			fmt.Fprintf(b, "  %s: %s\n", c.Reason, c.Message)
		}
	}
	if p.Unclear == "" {
		printDecisions(b, p.Decisions)
	} else { // the others are all left out for the same reason
		printDecisions(b, slices.DeleteFunc(slices.Clone(p.Decisions), func(d planDecision) bool { return !d.Selected }))
	}
	if n := len(p.SelectedResources); n > 0 {
		var names []string
		for _, r := range p.SelectedResources[:min(n, mostRows)] {
			names = append(names, planObject{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}.title())
		}
		if n > mostRows {
			names = append(names, fmt.Sprintf("%d more", n-mostRows))
		}
		fmt.Fprintf(b, "  selects %s\n", strings.Join(names, ", "))
	} else if p.Unclear == "" {
		fmt.Fprintln(b, "  selects nothing")
	}
	for _, problem := range p.Problems {
		fmt.Fprintf(b, "  %s: %s\n", problem.Severity, problem.text())
	}
	fmt.Fprintln(b)
}

func printDecisions(b *bytes.Buffer, all []planDecision) {
	width, others, scored := 0, 0, false
	for _, d := range all {
		width = max(width, len(d.Cluster))
		scored = scored || d.AffinityScore != nil && *d.AffinityScore != 0 || d.TopologySpreadScore != nil && *d.TopologySpreadScore != 0
	}
	for _, d := range all {
		mark := "+"
		if !d.Selected {
			mark = "-"
			if others++; others > mostRows {
				continue
			}
		}
		fmt.Fprintf(b, "  %s\n", strings.TrimRight(fmt.Sprintf("%s %-*s  %s", mark, width, d.Cluster, d.words(scored)), " "))
	}
	if others > mostRows {
		fmt.Fprintf(b, "    and %s more that are not selected; -o json has all of them\n", number(others-mostRows, "cluster"))
	}
}

// words are the reason, or of a cluster that was simply picked its scores, if
// scores count at all.
func (d planDecision) words(scored bool) string {
	_, rest, simply := strings.Cut(d.Reason, ": picked by scheduling policy")
	switch {
	case !d.Selected || !simply:
		return d.Reason
	case !scored || d.AffinityScore == nil || d.TopologySpreadScore == nil:
		return strings.TrimPrefix(rest, "; ")
	}
	return fmt.Sprintf("affinity score %d, topology spread score %d%s", *d.AffinityScore, *d.TopologySpreadScore, rest)
}

// printClusters says what the clusters hold; those that hold the same are told
// of together.
func printClusters(b *bytes.Buffer, clusters []planCluster) {
	if len(clusters) == 0 {
		fmt.Fprintln(b, "there is no member cluster: the checkout declares none, and --clusters names none")
	}
	told := make([]bool, len(clusters))
	for i, c := range clusters {
		if told[i] {
			continue
		}
		names := []string{}
		for j := i; j < len(clusters); j++ {
			if !told[j] && slices.Equal(clusters[j].Objects, c.Objects) {
				told[j] = true
				names = append(names, clusters[j].Name)
			}
		}
		holds := "holds"
		if len(names) > 1 {
			holds = "hold"
		}
		if len(c.Objects) == 0 {
			fmt.Fprintf(b, "%s %s nothing\n", strings.Join(names, ", "), holds)
			continue
		}
		fmt.Fprintf(b, "%s %s %s:\n", strings.Join(names, ", "), holds, number(len(c.Objects), "object"))
		printObjects(b, c.Objects)
	}
}

func printObjects(b *bytes.Buffer, objects []planObject) {
	width := 0
	for _, o := range objects {
		width = max(width, len(o.title()))
	}
	for _, o := range objects {
		fmt.Fprintf(b, "  %-*s  %s\n", width, o.title(), o.Placement)
	}
}
