package migration

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
)

// findKustomize finds the kustomizations that no other one refers to, in directories with one for each cluster or environment.
func (f *finder) findKustomize() error {
	found := &siteFinder{finder: f}
	found.find()
	for _, dir := range found.others {
		if len(found.sites) == 0 { // there is only one cluster, which has everything
			f.add(nameOf(dir), onlyCluster, dir)
			continue
		}
		f.leave("%s: its directory is named after no cluster or environment; if it is to be deployed, write a ClusterOverlay for it", dir)
	}
	forms, usesLabel, nested := map[string][]site{}, false, false
	for _, s := range found.sites {
		form := path.Join(s.form...)
		forms[form] = append(forms[form], s)
		usesLabel = usesLabel || s.key == "env"
		nested = nested || strings.Count(form, "${") > 1
	}
	for _, name := range slices.Sorted(maps.Keys(f.clusters)) { // some may have directories by name, others by environment
		if c := f.clusters[name]; c.labels["env"] == "" && usesLabel {
			c.labels["env"] = "none"
			f.leave("cluster %s: its environment is not known; set its label env", name)
		}
	}
	wanted := found.wanted()
	if len(forms) > maxOverlays || nested {
		w := &wildcards{finder: f, wanted: wanted}
		w.exist = w.buildable()
		w.add(found.sites)
		return nil
	}
	for _, form := range slices.Sorted(maps.Keys(forms)) {
		u := f.unit(cmp.Or(nameOf(variableText.ReplaceAllString(form, "")), "apps"))
		for _, s := range forms[form] {
			for c := range wanted {
				if wanted[c][s.dir] {
					u.dirs[c] = s.dir
				}
			}
		}
		u.path = form
	}
	return nil
}

// maxOverlays is the number of overlays above which one with wildcards is proposed for several directories.
const maxOverlays = 3
