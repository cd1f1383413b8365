package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// Allows reports whether a commit message allows deletions of a placement.
func Allows(message string, key api.PlacementKey) bool {
	for _, name := range api.AllowedDeletions(message) {
		if name == "*" || name == key.String() || name == strings.TrimPrefix(key.String(), "crp/") || name == strings.TrimPrefix(key.String(), "rp/") {
			return true
		}
	}
	return false
}

// RemovesEverything returns why a snapshot is refused: it has no placement, or no cluster although there are clusters
// now. Such a commit is usually a mistake, and is accepted only with the trailer "*". The result is empty if the
// snapshot is acceptable.
func RemovesEverything(next *hub.Snapshot, l *ledger.Ledger) string {
	if slices.Contains(api.AllowedDeletions(next.Commit.Message), "*") {
		return ""
	}
	const hint = "; if this is intended, add the trailer \"" + api.AllowTrailer + ": *\" to the message of a commit"
	switch {
	case len(l.Clusters()) > 0 && len(next.Clusters) == 0:
		return "the commit has no MemberCluster left, and every cluster would leave the fleet" + hint
	case len(l.Placements()) > 0 && len(next.Placements) == 0:
		return "the commit has no placement left, and would remove everything from every cluster" + hint
	}
	return ""
}

// Drops returns why a snapshot is refused after the one in force, which may be nil: something is deployed whose file or
// directory is no part of the hub any more. Most likely that was not meant, as with a directory that is missing under the
// roots or that the path of an overlay means by chance, and what was deployed would be deleted. The result is empty if the
// snapshot is acceptable.
func Drops(next, inForce *hub.Snapshot) string {
	if inForce == nil || slices.Contains(api.AllowedDeletions(next.Commit.Message), "*") {
		return ""
	}
	d := next.Drops(inForce, selectedBy(inForce))
	if d == nil {
		return ""
	}
	return fmt.Sprintf("%s is no part of the hub any more, since %s, so %s (%s) of the commit in force would be removed; correct that, or if it is intended, add the trailer \"%s: *\" to the message of a commit",
		d.Exclusion.Path, d.Exclusion.Why, d.What, d.Origin, api.AllowTrailer)
}

// selectedBy returns a function that reports whether a placement of a snapshot selects an object.
func selectedBy(s *hub.Snapshot) func(*api.Object) bool {
	var selected map[*api.Object]bool
	return func(o *api.Object) bool {
		if selected == nil { // few commits get here
			selected = map[*api.Object]bool{}
			index, scope := placement.NewIndex(s.Objects), Scope(s)
			for _, p := range s.Placements {
				for _, o := range placement.Select(placement.Terms{Key: p.Key, Spec: &p.Spec, Scope: scope}, index).Objects {
					selected[o] = true
				}
			}
		}
		return selected[o]
	}
}

// StopsBuilding returns why a snapshot is refused after the one in force, which may be nil: it does not build a kustomization
// that was deployed, since it looks like a base or a component that nothing uses. Most likely a mistake made it look so,
// and its objects would be deleted. The result is empty if the snapshot is acceptable.
func StopsBuilding(next, inForce *hub.Snapshot) string {
	if inForce == nil || slices.Contains(api.AllowedDeletions(next.Commit.Message), "*") {
		return ""
	}
	for _, file := range next.Unused {
		if inForce.Sources[file] != nil {
			return file + " was deployed by the commit in force, and is now only a base or a component that no kustomization uses, so its objects would be deleted; " +
				"give them a namespace again, or if they are to be deleted, remove the kustomization"
		}
	}
	return ""
}
