package hub

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/gitsource/hub/walk"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/listitem"
)

// An assembly collects the items of a commit, and runs the checks that need all of them.
type assembly struct {
	limits Limits
	grants grant.Set
	// gateServers are the servers that gates may ask; nil if they are not known.
	gateServers *GateServers
	// lockFile is the path of the lock file.
	lockFile string
	items    []*item
	problems problem.List
	// invalid are the objects that have problems of their own. What refers to them does not report that they are missing.
	invalid invalidObjects
	// unread says that a document of the hub may be any object, since it is none that can be read.
	unread bool
	// sources are the files of each built kustomization.
	sources map[string][]string
	unused  []string
	// objectFiles are the files that belong to no kustomization, and whether they have objects. Others may be values of a chart.
	objectFiles map[string]bool
	// excluded is what is no part of the hub, and unusedOverlays what overlays build for no cluster.
	excluded       []Exclusion
	unusedOverlays []string
	uses           []listitem.Use
	unreadable     []api.Origin
	// size is the approximate memory of the items. full says that a limit is exceeded, so that the
	// rest of the commit is not read.
	size int64
	full bool
	// timedOut says that a build took too long, so that the commit is refused.
	timedOut bool
	// chartSteps are those of the renderings of charts, also of cached ones, so that the cache does not matter.
	chartSteps int64
	// rendered are the steps of the charts of kustomizations, by what identifies a rendering.
	rendered map[string]int64
	// scrub masks in a message what is encrypted in the repository.
	scrub func(string) string
	// built are the objects of overlays, and scopes those that their definitions declare.
	built  int
	scopes map[api.GroupKind]bool
}

func (a *assembly) problem(severity problem.Severity, origin api.Origin, field, format string, args ...any) {
	a.problems = append(a.problems, problem.Problem{Origin: origin, Field: field, Severity: severity, Message: fmt.Sprintf(format, args...)})
}

// rest returns how many bytes the objects of the commit may still take.
func (a *assembly) rest() int64 { return a.limits.CommitSize - a.size }

// add adds the items of a file or a build, unless the commit becomes too large.
func (a *assembly) add(p *parsed) {
	if a.size += p.Size; a.size > a.limits.CommitSize {
		a.tooLarge(p.End)
		return
	}
	a.items = append(a.items, p.items...)
	a.problems = append(a.problems, p.Problems...)
	for _, id := range p.invalid {
		a.invalid[id] = true
	}
	a.uses = append(a.uses, p.uses...)
	a.unreadable = append(a.unreadable, p.unreadable...)
}

// addUnused adds the errors of the build of a base that nothing uses as warnings. That its objects
// have no namespace is said once for all of them.
func (a *assembly) addUnused(p *parsed) {
	for _, fault := range p.Problems.Errors().Warnings() {
		if fault.Field != "metadata.namespace" {
			a.problems = append(a.problems, fault)
		}
	}
}

// tooLarge refuses a commit whose objects take too much memory.
func (a *assembly) tooLarge(at api.Origin) {
	a.full = true
	a.problem(problem.Error, at, "", "up to here the objects of the commit take more than %s of memory; split the repository, write fewer YAML aliases, or raise limits.commitSize", limit.Size(a.limits.CommitSize))
}

// finish runs the checks and returns the snapshot.
func (a *assembly) finish(commit Commit) (*Snapshot, error) {
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
	s.Runs = a.stagedRuns()
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

// declaredScopes are the scopes of the kinds that the commit defines: the hub, or else an overlay.
func (a *assembly) declaredScopes() map[api.GroupKind]bool {
	all := map[api.GroupKind]bool{}
	maps.Copy(all, a.scopes)
	for _, it := range a.items {
		if it.scope != nil {
			all[it.scope.kind] = it.scope.namespaced
		}
	}
	return all
}

// checkScopes checks custom objects, and placements that select them, against the definitions
// of the commit.
func (a *assembly) checkScopes(scopes map[api.GroupKind]bool) {
	kept := a.items[:0]
	for _, it := range a.items {
		if it.placement != nil && len(scopes) > 0 {
			a.termScopes(it, scopes)
		}
		a.checkWrappedScopes(it, scopes)
		if it.custom {
			it = a.checkScope(it, scopes)
		}
		if it != nil {
			kept = append(kept, it)
		}
	}
	a.items = kept
}

func (a *assembly) termScopes(it *item, scopes map[api.GroupKind]bool) {
	terms := it.placement.Spec.ResourceSelectors
	for i, t := range terms {
		namespaced, declared := scopes[api.GroupKind{Group: t.Group, Kind: t.Kind}]
		if msg := validation.SelectionFault(terms, t.Kind, namespaced, declared, it.id.Namespace != ""); msg != "" {
			field := fmt.Sprintf("spec.resourceSelectors[%d].kind", i)
			a.problem(problem.Error, it.at(field), field, "%s", msg)
		}
	}
}

// checkWrappedScopes checks the contents of an envelope whose kinds the commit defines.
func (a *assembly) checkWrappedScopes(it *item, scopes map[api.GroupKind]bool) {
	for _, w := range it.wrapped {
		if namespaced, declared := scopes[w.id.GroupKind()]; declared && !w.known {
			if message := w.scopeFault(it.id, namespaced); message != "" {
				a.problem(problem.Failure, w.origin, w.field, "in %s: %s", it.id, message)
			}
		}
	}
}

// checkScope returns the item in the scope that its kind requires, with or without a namespace;
// nil if that is impossible.
func (a *assembly) checkScope(it *item, scopes map[api.GroupKind]bool) *item {
	namespaced, declared := scopes[it.id.GroupKind()]
	switch {
	case declared && namespaced && it.id.Namespace == "":
		a.problem(problem.Error, it.origin, "metadata.namespace", needsNamespace, it.id.Kind)
		return nil
	case declared && !namespaced && it.id.Namespace != "":
		if !it.built() {
			a.problem(problem.Warning, it.origin, "metadata.namespace", dropsNamespace, it.id.Kind)
		}
		return it.withoutNamespace()
	case !declared && it.id.Namespace == "" && !strings.HasPrefix(it.id.Kind, "Cluster"):
		a.problem(problem.Warning, it.origin, "metadata.namespace",
			"missing, so %s is treated as cluster-scoped, since the commit does not define the kind; if it is namespaced, write the namespace, or commit its definition", it.id.Kind)
	}
	return it
}

// withoutNamespace returns the item as a cluster-scoped object: the same one at every call.
func (it *item) withoutNamespace() *item {
	if it.unnamespaced == nil {
		it.unnamespaced = &item{id: it.id, origin: it.origin, object: it.object.InNamespace("")}
		it.unnamespaced.id.Namespace = ""
	}
	return it.unnamespaced
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

// hasBuilder reports whether they have an overlay or a chart, by the kind without Cluster.
func (all invalidObjects) hasBuilder(kind string) bool {
	for id := range all {
		if id.Group == api.OverlayGroup && strings.TrimPrefix(id.Kind, "Cluster") == kind {
			return true
		}
	}
	return false
}

// dropConsequences removes the problems that follow from an overlay or a chart that has problems itself: what it builds is taken for a
// part of the hub, and the files of a chart for objects. If no error were left, all are kept: then one of them is the cause.
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

// positionText formats a position, with the kustomization that includes it.
func positionText(o api.Origin) string {
	if o.Kustomization == "" || o.Kustomization == o.Path {
		return o.String()
	}
	return o.String() + " (built by " + o.Kustomization + ")"
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
