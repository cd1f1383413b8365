package review

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Result has the effects of merging a pull request.
type Result struct {
	// Conflict is the reason why it cannot be merged, and Refused the reason why the commit
	// would not come into force. In both cases there is no plan. They are usually empty.
	Conflict, Refused string
	// Problems are those that the base does not have, the worst first, at their lines in the head
	// as far as it has them. With errors there is no plan.
	Problems problem.List
	// Missing are the remote bases and charts that are locked and that are not in the cache, by name.
	Missing []string
	// Clusters is the number of members.
	Clusters int
	Changes  forecast.Changes
	Rollouts []forecast.Rollout
	// Answers are the results of the trials of the plan; nil if none were run, or they have not
	// finished.
	Answers *Answers

	// trials are the trials to run, and untried is the number of objects that are in none of
	// them.
	trials  []Trial
	untried int
	// held are the drifts that clusters hold: what a change may find there already.
	held map[heldAt][]*status.Drift
	// contentLines are the lines of the first changed objects in the head, by their index; shorter if they are not known.
	contentLines []int
	// onAddedLines are the first Problems that are at lines that the head adds, by their index.
	onAddedLines []int
}

// Deletions returns the deletions on all clusters.
func (r *Result) Deletions() []forecast.Deletion {
	var all []forecast.Deletion
	for _, c := range r.Changes.Clusters {
		all = append(all, c.Deleted...)
	}
	return all
}

// totals are the numbers of objects with each operation, each counted once however many clusters have it, and of
// clusters with any.
type totals struct {
	created, changed, deleted, blocked, released, passed int
	objects, clusters                                    int
	// there and thereOn are the objects and clusters on which somebody has made the change already. all says that this
	// is so for all changes.
	there, thereOn int
	all            bool
}

func (r *Result) totals() totals {
	t := totals{all: true}
	known := map[*int]map[string]bool{}
	count := func(n *int, what string) {
		if known[n] == nil {
			known[n] = map[string]bool{}
		}
		known[n][what] = true
		*n = len(known[n])
	}
	operation := func(n *int, id api.ID, cluster string, isThere bool) {
		count(n, id.String())
		count(&t.objects, id.String())
		count(&t.clusters, cluster)
		if t.all = t.all && isThere; isThere {
			count(&t.there, id.String())
			count(&t.thereOn, cluster)
		}
	}
	for _, c := range r.Changes.Clusters {
		count(&t.clusters, c.Cluster)
		for _, o := range c.Gained {
			operation(&t.created, o.ID(), c.Cluster, false)
		}
		for _, d := range c.Deleted {
			operation(&t.deleted, d.ID(), c.Cluster, r.isDeleted(d))
			if d.Blocked != "" {
				count(&t.blocked, d.ID().String())
			}
		}
		for _, o := range c.Released {
			operation(&t.released, o.ID(), c.Cluster, false)
		}
		for _, o := range c.Passed {
			operation(&t.passed, o.ID(), c.Cluster, false)
		}
	}
	for _, c := range r.Changes.Contents {
		fields := c.Fields()
		for _, name := range c.Clusters {
			operation(&t.changed, c.After.ID, name, r.isChanged(c, fields, name))
		}
	}
	return t
}

// None reports whether nothing changes.
func (r *Result) None() bool { return r.Changes.None() }

// errors counts the problems because of which the commit, or a part of it, cannot be applied.
func (r *Result) errors() int {
	n := 0
	for _, p := range r.Problems {
		if p.Severity != problem.Warning {
			n++
		}
	}
	return n
}

// Failed reports whether the pull request cannot be merged, would be refused, or has problems.
// An object that a member would refuse is also a problem.
func (r *Result) Failed() bool {
	return r.Conflict != "" || r.Refused != "" || r.errors() > 0 || r.Answers.refused() > 0
}

// Status returns the status of the head commit of the pull request.
func (r *Result) Status() (forge.StatusState, string) {
	t := r.totals()
	switch {
	case r.Conflict != "":
		return forge.StatusFailure, "cannot be merged: " + r.Conflict
	case r.Refused != "":
		return forge.StatusFailure, "the merge would be refused: " + r.Refused
	case r.errors() > 0:
		return forge.StatusFailure, markdown.Count(r.errors(), "problem")
	case r.Answers.refused() > 0:
		return forge.StatusFailure, markdown.Count(r.Answers.refused(), "object") + " refused on the members"
	case r.None():
		return forge.StatusSuccess, "no changes"
	}
	var parts []string
	if n := len(r.Changes.Placements); n > 0 {
		parts = append(parts, markdown.Count(n, "placement"))
	}
	if t.objects > 0 || len(parts) == 0 {
		parts = append(parts, markdown.Count(t.objects, "object"))
	}
	text := fmt.Sprintf("%s on %s", strings.Join(parts, " and "), markdown.Count(t.clusters, "cluster"))
	switch {
	case t.there > 0 && t.all:
		text += ", already there"
	case t.there > 0:
		text += fmt.Sprintf(", %d of them already there on %s", t.there, markdown.Count(t.thereOn, "cluster"))
	}
	if t.blocked > 0 {
		text += fmt.Sprintf(", %s blocked", markdown.Count(t.blocked, "deletion"))
	}
	return forge.StatusSuccess, text
}

// changedPrefix begins the line of an object that changes.
const changedPrefix = "! "

// A clusterGroup has the clusters on which the same changes are made.
type clusterGroup struct {
	clusters []string
	changes  []string // as the lines of a diff
}

// groups returns the clusters grouped by their changes, the largest group first, then by name.
func (r *Result) groups() []clusterGroup {
	lines := map[string][]string{}
	for _, c := range r.Changes.Clusters {
		lines[c.Cluster] = changesOf(c)
	}
	for _, c := range r.Changes.Contents {
		for _, name := range c.Clusters {
			lines[name] = append(lines[name], fmt.Sprintf("%s%s (%s)%s", changedPrefix, c.After.ID, c.Placement, c.Note()))
		}
	}
	by := map[string]*clusterGroup{}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		key := strings.Join(lines[name], "\n")
		if by[key] == nil {
			by[key] = &clusterGroup{changes: lines[name]}
		}
		by[key].clusters = append(by[key].clusters, name)
	}
	var out []clusterGroup
	for _, g := range by {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b clusterGroup) int {
		return cmp.Or(len(b.clusters)-len(a.clusters), strings.Compare(a.clusters[0], b.clusters[0]))
	})
	return out
}

// changesOf returns the objects that a cluster gains and loses.
func changesOf(c forecast.ClusterChange) []string {
	if c.Gone {
		return []string{fmt.Sprintf("# the cluster leaves the fleet; %s stay there and are released", markdown.Count(len(c.Lost), "object"))}
	}
	var out []string
	if c.New {
		out = append(out, "# the cluster joins the fleet")
	}
	for _, o := range c.Gained {
		out = append(out, fmt.Sprintf("+ %s (%s)", o.ID(), o.Placement))
	}
	for _, d := range c.Deleted {
		line := fmt.Sprintf("- %s (%s)", d.ID(), d.Placement)
		if d.Blocked != "" {
			line += ", blocked"
		}
		out = append(out, line)
	}
	for _, o := range c.Released {
		out = append(out, fmt.Sprintf("# %s (%s) stays and is released", o.ID(), o.Placement))
	}
	for _, o := range c.Passed {
		out = append(out, fmt.Sprintf("# %s moves from %s to %s", o.ID(), o.From, o.Placement))
	}
	return out
}
