package hub

import (
	"path"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub/chart"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A Dropped is something that a snapshot has no more because the file that it was in was taken out of the hub.
type Dropped struct {
	// What is the object, and Origin its position in the snapshot before.
	What   string
	Origin api.Origin
	// Exclusion has the file, or a directory above it.
	Exclusion Exclusion
}

// Drops returns the first object or part of the configuration of an earlier snapshot that this one has nowhere, neither in
// the hub nor in what an overlay builds for a cluster, since its file is now excluded from the hub; nil if there is none.
// Objects count only if they are deployed.
func (s *Snapshot) Drops(before *Snapshot, deployed func(*api.Object) bool) *Dropped {
	if len(s.Excluded) == 0 {
		return nil
	}
	excluded := map[string]Exclusion{}
	for _, e := range s.Excluded {
		excluded[e.Path] = e
	}
	var left, used map[string]bool
	var found *Dropped
	before.visit(func(what string, origin api.Origin, o *api.Object) bool {
		file := origin.Path
		if origin.Kustomization != "" {
			file = origin.Kustomization
		}
		e, is := Exclusion{}, false
		for at := file; !is && at != "."; at = path.Dir(at) {
			e, is = excluded[at]
		}
		if !is {
			return true
		}
		if left == nil { // few commits get here
			left, used = s.names(), s.usedFiles()
		}
		if left[what] || used[file] || o != nil && !deployed(o) {
			return true
		}
		found = &Dropped{what, origin, e}
		return false
	})
	return found
}

// visit calls a function with everything that the hub has, until it returns false. Only objects to place are not nil.
func (s *Snapshot) visit(visit func(what string, origin api.Origin, o *api.Object) bool) {
	for _, c := range s.Clusters {
		if !visit("MemberCluster/"+c.Name, c.Origin, nil) {
			return
		}
	}
	for _, p := range s.Placements {
		if !visit(p.Key.String(), p.Origin, nil) {
			return
		}
	}
	for _, o := range s.Objects {
		if !visit(o.ID.String(), o.Origin, o) {
			return
		}
	}
	for _, o := range s.ClusterOverrides {
		if !visit("ClusterResourceOverride/"+o.Name, o.Origin, nil) {
			return
		}
	}
	for _, o := range s.Overrides {
		if !visit("ResourceOverride/"+o.Namespace+"/"+o.Name, o.Origin, nil) {
			return
		}
	}
	for _, e := range s.Evictions {
		if !visit("ClusterResourcePlacementEviction/"+e.Name, e.Origin, nil) {
			return
		}
	}
	for _, b := range s.Budgets {
		if !visit("ClusterResourcePlacementDisruptionBudget/"+b.Name, b.Origin, nil) {
			return
		}
	}
	for _, w := range s.Windows {
		if !visit("RolloutWindow/"+w.Name, w.Origin, nil) {
			return
		}
	}
	for _, g := range s.Gates {
		if !visit("RolloutGate/"+g.Name, g.Origin, nil) {
			return
		}
	}
	for _, v := range s.ClusterVars {
		if !visit("ClusterVars/"+v.Name, v.Origin, nil) {
			return
		}
	}
}

// names are those of everything that the hub has, and of what overlays build for clusters of the commit.
func (s *Snapshot) names() map[string]bool {
	all := map[string]bool{}
	s.visit(func(what string, _ api.Origin, _ *api.Object) bool { all[what] = true; return true })
	for _, o := range s.Objects {
		if o.Overlay == nil {
			continue
		}
		for dir, b := range o.Overlay.Builds {
			if !s.unused(dir) {
				for _, built := range b.Objects {
					all[built.ID.String()] = true
				}
			}
		}
	}
	return all
}

// usedFiles returns the files of the kustomizations that are built for the hub or for a cluster. The files of a chart do not
// count: an object in one of them is not what the chart renders.
func (s *Snapshot) usedFiles() map[string]bool {
	all := map[string]bool{}
	for file, sources := range s.Sources {
		if path.Base(file) != chart.FileName && !s.unused(path.Dir(file)) {
			for _, f := range sources {
				all[f] = true
			}
		}
	}
	return all
}

// unused reports whether a directory is built by an overlay and for no cluster of the commit.
func (s *Snapshot) unused(dir string) bool { return slices.Contains(s.UnusedOverlays, dir) }
