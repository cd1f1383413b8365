package hub

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/walk"
	"github.com/gitfleet/gitfleet/placement/api"
)

// finish runs the checks and returns the snapshot.
func (a *assembly) finish(commit Commit, servers *GateServers) (*Snapshot, error) {
	if len(a.items)+a.built > a.limits.Objects {
		a.problem(problem.Error, api.Origin{}, "", "the commit has more than %d objects; split the repository, or raise limits.objects", a.limits.Objects)
	}
	s := &Snapshot{Commit: commit, Namespaced: a.declaredScopes(), Sources: a.sources, Unused: a.unused, Uses: a.uses, Excluded: a.excluded, UnusedOverlays: a.unusedOverlays, Unreadable: a.unreadable}
	a.checkScopes(s.Namespaced)
	slices.SortStableFunc(a.items, func(x, y *item) int { return x.id.Compare(y.id) })
	a.duplicates()
	s.Variables = a.variables()
	a.checkGrants(s.Namespaced)
	a.overrides()
	a.references()
	a.windows()
	a.budgets()
	a.scaledObjects()
	s.Runs = a.stagedRuns(servers)
	dropConsequences(a)
	a.problems = a.problems.Sort()
	if a.problems.HasErrors() {
		return nil, &LoadError{Problems: a.problems}
	}
	s.Warnings = a.problems
	a.fill(s)
	if s.growsTooMuch() {
		a.problem(problem.Error, api.Origin{}, "", "variables may make the objects of the commit larger by more than %s for one cluster; use shorter values, or fewer variables", limit.Size(maxGrowth))
		return nil, &LoadError{Problems: a.problems}
	}
	return s, nil
}

// duplicates reports every position of an object that is defined more than once.
func (a *assembly) duplicates() {
	for rest := a.items; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].id == rest[0].id {
			n++
		}
		if n > 1 {
			a.duplicate(rest[:n])
		}
		rest = rest[n:]
	}
}

// dropConsequences removes the problems that an invalid overlay or chart causes elsewhere: its kustomizations and files are then read as
// objects of the hub. If no error were left, all are kept, since one of them is the cause.
func dropConsequences(a *assembly) {
	overlay, chart := a.invalid.hasBuilder("Overlay"), a.invalid.hasBuilder(chartKind)
	var charts []string
	for _, p := range a.problems {
		if chart && path.Base(p.Path) == "Chart.yaml" {
			charts = append(charts, path.Dir(p.Path)+"/")
		}
	}
	follows := func(p problem.Problem) bool {
		switch {
		case p.Severity != problem.Error:
			return false
		case p.Kustomization != "":
			return overlay && p.Field == "metadata.namespace"
		}
		return slices.ContainsFunc(charts, func(dir string) bool { return strings.HasPrefix(p.Path, dir) })
	}
	isCause := func(p problem.Problem) bool { return p.Severity == problem.Error && !follows(p) }
	if slices.ContainsFunc(a.problems, isCause) {
		a.problems = slices.DeleteFunc(a.problems, follows)
	}
}

func (a *assembly) duplicate(same []*item) {
	if (a.unread || a.invalid.hasBuilder("Overlay")) && !slices.ContainsFunc(same, func(it *item) bool { return !it.built() }) {
		return // a consequence of that: what an overlay builds for different clusters is taken for a part of the hub
	}
	for _, it := range same {
		var others []string
		for _, other := range same {
			if other != it && len(others) < 3 {
				others = append(others, positionText(other.origin))
			}
		}
		if more := len(same) - 1 - len(others); more > 0 {
			others = append(others, fmt.Sprintf("%d more places", more))
		}
		slices.Sort(others)
		a.problem(problem.Error, it.origin, "", "%s is defined more than once: also at %s; remove all but one%s", it.id, strings.Join(others, ", "), overlayHint(same))
	}
}

// overlayHint says what to do about an object that several kustomizations build, as those of a base with overlays
// do; empty if at most one of them is built.
func overlayHint(same []*item) string {
	var built []string
	for _, it := range same {
		if it.built() && !slices.Contains(built, it.origin.Kustomization) {
			built = append(built, it.origin.Kustomization)
		}
	}
	if len(built) < 2 {
		return ""
	}
	return ", or, if these are overlays of one base, place each where it belongs with an Overlay or a ClusterOverlay, or list under roots in " + walk.ConfigFile + " the directories that are the hub"
}

// fill puts the items, which are sorted by ID, into the snapshot.
func (a *assembly) fill(s *Snapshot) {
	s.Objects = make([]*api.Object, 0, len(a.items))
	for _, it := range a.items {
		switch {
		case it.object != nil:
			s.Objects = append(s.Objects, it.object)
		case it.placement != nil:
			s.Placements = append(s.Placements, it.placement)
		case it.cluster != nil:
			s.Clusters = append(s.Clusters, it.cluster)
		case it.clusterOverride != nil:
			s.ClusterOverrides = append(s.ClusterOverrides, it.clusterOverride)
		case it.override != nil:
			s.Overrides = append(s.Overrides, it.override)
		case it.eviction != nil:
			s.Evictions = append(s.Evictions, it.eviction)
		case it.budget != nil:
			s.Budgets = append(s.Budgets, it.budget)
		case it.window != nil:
			s.Windows = append(s.Windows, it.window)
		case it.gate != nil:
			s.Gates = append(s.Gates, it.gate)
		case it.vars != nil:
			s.ClusterVars = append(s.ClusterVars, &ClusterVars{it.vars, it.origin})
		case it.staged != nil:
			s.Staged = append(s.Staged, it.staged)
		}
	}
}
