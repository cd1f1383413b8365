package hub

import (
	"fmt"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/listitem"
)

// An assembly collects the items of a commit, and runs the checks that need all of them.
type assembly struct {
	limits limit.Limits
	grants grant.Set
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

// addBuilt adds the size and the scopes of what was built or rendered. It reports whether the commit is still small enough.
func (a *assembly) addBuilt(p *parsed) bool {
	if a.size += p.Size; a.size > a.limits.CommitSize {
		a.tooLarge(p.End)
		return false
	}
	for _, it := range p.items {
		if it.scope != nil {
			if a.scopes == nil {
				a.scopes = map[api.GroupKind]bool{}
			}
			a.scopes[it.scope.kind] = it.scope.namespaced
		}
	}
	return true
}

// tooLarge refuses a commit whose objects take too much memory.
func (a *assembly) tooLarge(at api.Origin) {
	a.full = true
	a.problem(problem.Error, at, "", "up to here the objects of the commit take more than %s of memory; split the repository, write fewer YAML aliases, or raise limits.commitSize", limit.Size(a.limits.CommitSize))
}

// invalidObjects are the objects of a commit that have problems of their own.
type invalidObjects map[api.ID]bool

// has reports whether they have one of a kind, or without a namespace of the cluster-scoped one.
func (all invalidObjects) has(kind, namespace, name string) bool {
	if namespace == "" {
		kind = "Cluster" + kind
	}
	return all[api.ID{Group: api.PlacementGroup, Kind: kind, Namespace: namespace, Name: name}]
}

// hasCluster reports whether they have a MemberCluster.
func (all invalidObjects) hasCluster() bool {
	for id := range all {
		if id.Group == api.ClusterGroup {
			return true
		}
	}
	return false
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
