package hub

import (
	"cmp"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/chart"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/overlay"
)

// overlays are what the overlays and charts of a commit refer to.
type overlays struct {
	// hub is the directory that paths are relative to.
	hub string
	// clusters are those of the commit, by name.
	clusters []overlay.Cluster
	// uses are those of the overlays, in the order of their IDs.
	uses []*overlayUse
	// dirs are the directories that can be built and that a path may mean, and whether one does so for a cluster of
	// the commit. They, and all below them, are no part of the hub.
	dirs map[string]bool
	// charts are those of the commit, in the order of their IDs. Their directories and their files of values are no part
	// of the hub either.
	charts              []*chartUse
	chartDirs, valuesOf map[string]bool
	remotes             build.Remotes
	// by is the first overlay or chart that refers to each of these directories and files, also one that is in such a directory itself
	// and therefore no part of the hub either.
	by map[string]*item
	// rendered are the charts of kustomizations by their directories, which are no part of the hub.
	rendered map[string]build.ChartUse
	// misplaced are the configuration of the fleet in such directories.
	misplaced problem.List
}

// An overlayUse is what one overlay refers to.
type overlayUse struct {
	it *item
	// existing are the directories that the paths may mean, and whether they can be built: they have a kustomization, or manifests
	// and a cluster of the commit.
	existing map[string]bool
	// literal are those that a path without variables names.
	literal map[string]bool
	// chosen are the clusters of the commit for which a directory is meant, sorted.
	chosen map[string][]string
	// fault is why the first of those without a directory has none; nil if the overlay ignores that.
	fault error
	// together are the different sets of several directories that clusters of the commit have.
	together map[string]sharedDirs
	// post has the values of variables that are replaced in what is built; nil if none are. perCluster has what identifies those in a
	// directory, by cluster.
	post       *postBuild
	perCluster map[string]map[string]string
}

// sharedDirs are directories that are built for the same cluster, such as this one.
type sharedDirs struct {
	dirs    []string
	cluster string
}

// newOverlays returns what nothing refers to.
func newOverlays(hub string, remotes build.Remotes) *overlays {
	return &overlays{hub: hub, remotes: remotes, dirs: map[string]bool{}, chartDirs: map[string]bool{}, valuesOf: map[string]bool{}, by: map[string]*item{}}
}

// size is the number of directories and files that are referred to.
func (o *overlays) size() int { return len(o.dirs) + len(o.chartDirs) + len(o.valuesOf) }

// has reports whether a file or directory is in a directory that is built by an overlay or a chart, or rendered for a kustomization.
func (o *overlays) has(name string) bool {
	for dir := name; len(o.rendered) > 0 && dir != "."; dir = path.Dir(dir) {
		if _, is := o.rendered[dir]; is {
			return true
		}
	}
	return o.within(name) != ""
}

// within returns the directory of an overlay or a chart that a file or directory is in, or the file itself if it has
// values; empty if there is none.
func (o *overlays) within(name string) string {
	switch {
	case o.size() == 0:
		return ""
	case o.valuesOf[name]:
		return name
	}
	for dir := name; dir != "."; dir = path.Dir(dir) {
		if _, is := o.dirs[dir]; is || o.chartDirs[dir] {
			return dir
		}
	}
	return ""
}

// problems returns the problems that are not in directories of overlays.
func (o *overlays) problems(all problem.List) problem.List {
	rest := slices.DeleteFunc(slices.Clone(all), func(p problem.Problem) bool { return o.has(p.Path) })
	return append(rest, o.misplaced...)
}

// exclude records what is no part of the hub: what was not walked, and what overlays build.
func (a *assembly) exclude(walked []Exclusion, o *overlays) {
	a.excluded = append(a.excluded, walked...)
	for _, dir := range slices.Sorted(maps.Keys(o.dirs)) {
		by := o.by[dir]
		a.excluded = append(a.excluded, Exclusion{Path: dir, Why: by.id.String() + " (" + positionText(by.origin) + ") builds it for clusters"})
		if !o.dirs[dir] {
			a.unusedOverlays = append(a.unusedOverlays, dir)
		}
	}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(o.chartDirs)), slices.Sorted(maps.Keys(o.valuesOf))) {
		by := o.by[name]
		a.excluded = append(a.excluded, Exclusion{Path: name, Why: by.id.String() + " (" + positionText(by.origin) + ") renders it for clusters"})
	}
	for _, dir := range slices.Sorted(maps.Keys(o.rendered)) {
		a.excluded = append(a.excluded, Exclusion{Path: dir, Why: o.rendered[dir].Origin.String() + " renders it"})
	}
}

// loose returns the manifests that are not in directories of overlays.
func (o *overlays) loose(manifests []string) []string {
	if o.size()+len(o.rendered) == 0 {
		return manifests
	}
	return slices.DeleteFunc(slices.Clone(manifests), o.has)
}

// find finds what the overlays of an assembly refer to. It reports whether directories were found that belong to the
// hub so far.
func (o *overlays) find(t *tree.Tree, a *assembly) (grown bool, err error) {
	o.uses, o.charts = nil, nil
	dirs := map[string]bool{}
	known := o.size()
	o.clusters = a.overlayClusters()
	for _, it := range a.items {
		if it.chart != nil {
			if err := o.addChart(t, a, it); err != nil {
				return false, err
			}
		}
		if it.overlay == nil {
			continue
		}
		use := &overlayUse{it: it, existing: map[string]bool{}, literal: map[string]bool{}, chosen: map[string][]string{}, together: map[string]sharedDirs{}, perCluster: map[string]map[string]string{}}
		for _, text := range it.overlay.All() {
			if err := use.search(t, o.hub, text, a); err != nil {
				return false, err
			}
		}
		if err := use.choose(t, o, a.limits.Depth); err != nil {
			return false, err
		}
		for dir, built := range use.existing {
			if built {
				dirs[dir] = dirs[dir] || len(use.chosen[dir]) > 0
			}
		}
		o.uses = append(o.uses, use)
	}
	slices.SortFunc(o.uses, func(x, y *overlayUse) int { return x.it.id.Compare(y.it.id) })
	slices.SortFunc(o.charts, func(x, y *chartUse) int { return x.it.id.Compare(y.it.id) })
	for dir := range o.dirs {
		o.dirs[dir] = false
	}
	maps.Copy(o.dirs, dirs) // the graph has the same map
	if o.size() > known {
		o.recordBuilders()
		o.checkMisplaced(a)
	}
	return o.size() > known, nil
}

// addChart adds what a chart refers to.
func (o *overlays) addChart(t *tree.Tree, a *assembly, it *item) error {
	u, err := newChartUse(t, it, o.hub, o.remotes, a.limits.Builds)
	if err != nil {
		return err
	}
	o.charts = append(o.charts, u)
	if u.remote == nil {
		is, err := t.IsFile(path.Join(u.dir, chart.FileName))
		if err != nil {
			return err
		}
		if is {
			o.chartDirs[u.dir] = true
		}
	}
	for name := range u.files {
		if !a.objectFiles[name] {
			o.valuesOf[name] = true
		}
	}
	for _, c := range o.clusters {
		u.choose(o.hub, c)
	}
	return nil
}

// overlayClusters are the clusters of the commit, by name.
func (a *assembly) overlayClusters() []overlay.Cluster {
	var all []overlay.Cluster
	for _, it := range a.items {
		if it.cluster != nil {
			all = append(all, overlay.Cluster{Name: it.cluster.Name, Labels: it.cluster.Labels, Properties: declaredProperties(it.cluster)})
		}
	}
	slices.SortFunc(all, func(x, y overlay.Cluster) int { return strings.Compare(x.Name, y.Name) })
	return all
}

// search finds the directories that a path may mean.
func (u *overlayUse) search(t *tree.Tree, hub, text string, a *assembly) error {
	p, err := overlay.ParseWild(text)
	if err != nil {
		return nil // reported when the overlay was decoded
	}
	dirs, err := expand(t, a.limits.Builds, hub, p, fs.FileMode.IsDir)
	if err != nil {
		return err
	}
	if len(dirs) > a.limits.Builds {
		field := validation.OverlayPath(u.it.overlay)
		a.full = true
		a.problem(problem.Error, u.it.at(field), field, "%q may mean more than %d directories; write a path with fewer variables, or raise limits.builds", text, a.limits.Builds)
		return nil
	}
	if p.Wildcards() > 0 {
		dirs = slices.DeleteFunc(dirs, func(dir string) bool {
			return slices.ContainsFunc(u.it.overlay.Except, func(text string) bool {
				except, err := overlay.ParseWild(text)
				return err == nil && except.Contains(hub, dir)
			})
		})
	}
	for _, dir := range dirs {
		built := false
		for _, name := range build.FileNames {
			is, err := t.IsFile(path.Join(dir, name))
			if err != nil {
				return err
			}
			built = built || is
		}
		if p.Wildcards() > 0 && !built { // it may be a directory of something else
			if can, err := build.HasManifests(t, dir, a.limits.Depth); err != nil {
				return err
			} else if !can {
				continue
			}
		}
		u.existing[dir] = built
		u.literal[dir] = u.literal[dir] || !p.HasVariables()
	}
	return nil
}

// choose finds which directory is meant for each cluster.
func (u *overlayUse) choose(t *tree.Tree, o *overlays, depth int) (err error) {
	paths, _ := overlay.ParseAll(u.it.overlay) // reported when the overlay was decoded
	exists := func(dir string) bool { _, is := u.existing[dir]; return is }
	all := slices.Sorted(maps.Keys(u.existing))
	for _, c := range o.clusters {
		dirs, err := paths.Choose(o.hub, c, exists, all)
		if err != nil {
			u.fault = cmp.Or(u.fault, err)
			continue // reported for the cluster when it is rendered
		}
		for _, dir := range dirs {
			u.chosen[dir] = append(u.chosen[dir], c.Name)
		}
		if len(dirs) > 1 {
			key := strings.Join(dirs, "\x00")
			if u.it.overlay.PostBuild != nil { // the objects may have other names for each cluster
				key += "\x00" + c.Name
			}
			u.together[key] = sharedDirs{dirs, c.Name}
		}
	}
	for dir := range u.chosen {
		if !u.existing[dir] {
			if u.existing[dir], err = build.CanBuild(t, dir, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkMisplaced reports what configures the fleet and is in a directory that an overlay builds: it would not be
// read any more.
func (o *overlays) checkMisplaced(a *assembly) {
	for _, it := range a.items {
		if !it.isConfiguration() && !it.isBuilder() {
			continue
		}
		file := it.origin.Path
		if it.built() {
			file = it.origin.Kustomization
		}
		dir := o.within(file)
		if dir == "" {
			continue
		}
		by := o.by[dir]
		o.misplaced = append(o.misplaced, problem.Problem{Origin: it.origin, Severity: problem.Error,
			Message: it.id.String() + " is in " + dir + ", which " + by.id.String() + " (" + positionText(by.origin) + ") builds for clusters, so that it would be no part of the hub; move it to another directory"})
	}
}

// recordBuilders records which overlay or chart refers to what has none so far.
func (o *overlays) recordBuilders() {
	record := func(name string, it *item) {
		if o.by[name] == nil {
			o.by[name] = it
		}
	}
	for _, u := range o.uses {
		for dir, built := range u.existing {
			if built {
				record(dir, u.it)
			}
		}
	}
	for _, u := range o.charts {
		record(u.dir, u.it)
		for name := range u.files {
			record(name, u.it)
		}
	}
}

// remoteUses returns the charts that come from registries and chart repositories, also those of kustomizations, without duplicates.
func (o *overlays) remoteUses(g *build.Graph) []RemoteChart {
	all := g.RemoteCharts()
	for _, u := range o.charts {
		if u.remote != nil {
			all = append(all, *u.remote)
		}
	}
	slices.SortFunc(all, func(a, b RemoteChart) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}
