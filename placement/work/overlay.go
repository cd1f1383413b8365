package work

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/overlay"
	"github.com/gitfleet/gitfleet/placement/variable"
)

func overlaysOf(selected []*api.Object) []*api.Object {
	var all []*api.Object
	for _, o := range selected {
		if o.Overlay != nil {
			all = append(all, o)
		}
	}
	return all
}

// directories returns the directories that an overlay builds for a cluster, or the key of the build of a chart; none if it has
// nothing for the cluster.
func directories(o *api.BuiltOverlay, c placement.Cluster) ([]string, error) {
	if o.Chart != nil {
		choice, known := o.Chart[c.Name]
		switch {
		case !known:
			return nil, errors.New("the commit has no MemberCluster " + c.Name + ", so that nothing is rendered for it")
		case choice.Err != "":
			return nil, errors.New(choice.Err)
		}
		return []string{choice.Build}, nil
	}
	values := overlay.Cluster{Name: c.Name, Labels: c.Labels, Properties: o.Properties[c.Name]}
	dirs, err := overlay.BuildsFor(o, values)
	return dirs, variable.WithoutCluster(err) // so that all clusters that lack a label have the same problem
}

// builtFor returns the objects that an overlay has for a cluster.
func builtFor(o *api.BuiltOverlay, c placement.Cluster) ([]*api.Object, error) {
	dirs, err := directories(o, c)
	if err != nil || len(dirs) == 0 {
		return nil, err
	}
	var all []*api.Object
	var faults []string
	for _, dir := range dirs {
		b := o.Builds[dir]
		if b.Err != "" {
			faults = append(faults, b.Err)
		}
		all = append(all, b.Objects...)
	}
	if len(faults) > 0 {
		return nil, errors.New(strings.Join(faults, "; ")) // which does not name the cluster, since others have the same variant
	}
	return all, nil
}

// everyBuild returns the objects that an overlay has for any cluster, each once.
func everyBuild(o *api.Object) ([]*api.Object, error) {
	var all []*api.Object
	seen := map[api.ID]bool{}
	for _, dir := range slices.Sorted(maps.Keys(o.Overlay.Builds)) {
		for _, object := range o.Overlay.Builds[dir].Objects {
			if !seen[object.ID] {
				seen[object.ID] = true
				all = append(all, object)
			}
		}
	}
	return all, nil
}

// hashOfOverlays returns the hash of the content with overlays: of the objects alone, or also of what decides which
// cluster gets which of them.
func (r *Renderer) hashOfOverlays(decision bool) string {
	h := sha256.New()
	rest := slices.DeleteFunc(slices.Clone(r.whole.base.Manifests), func(m *Manifest) bool { return m.Envelope != nil && m.Envelope.Type.IsBuilt() })
	writeField(h, hashOf(rest, r.whole.base.Refused))
	for _, o := range r.overlays {
		writeField(h, o.ID.String())
		for _, dir := range slices.Sorted(maps.Keys(o.Overlay.Builds)) {
			if decision {
				writeField(h, dir)
			}
			writeField(h, o.Overlay.Builds[dir].Hash)
		}
		if decision {
			for _, dir := range slices.Sorted(maps.Keys(o.Overlay.PerCluster)) {
				for _, c := range slices.Sorted(maps.Keys(o.Overlay.PerCluster[dir])) {
					writeField(h, c)
					writeField(h, o.Overlay.PerCluster[dir][c])
				}
			}
			for i, part := range o.Overlay.Spec.AllParts() {
				if i > 0 {
					writeField(h, "") // which no path is
				}
				for _, text := range part.All() {
					writeField(h, text)
				}
			}
			writeField(h, string(o.Overlay.Spec.WhenMissing))
			writeField(h, o.Overlay.Selectors)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// overlayLabels lists the keys of the labels that overlays use.
func overlayLabels(overlays []*api.Object) []string {
	var keys []string
	for _, o := range overlays {
		for _, text := range o.Overlay.Spec.All() {
			if p, err := overlay.ParseWild(text); err == nil {
				keys = append(keys, p.Labels()...)
			}
		}
	}
	return keys
}
