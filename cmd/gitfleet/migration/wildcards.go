package migration

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/overlay"
)

// A wildPath is a path with wildcards that means several sites.
type wildPath struct {
	form  []string
	sites int
}

// wildcards finds the overlays with wildcards for the sites of a repository.
type wildcards struct {
	finder *finder
	// exist are the directories that an overlay could build, sorted, and wanted those that each cluster is meant to get.
	exist  []string
	wanted map[string]map[string]bool
}

// add adds an overlay for many sites. Directories whose paths differ only in some names share one path, with * in place of these names.
// Paths with the same number of wildcards share a part of the overlay, which builds the first path that exists for each combination of
// names.
func (f *wildcards) add(all []site) {
	var groups []*wildGroup
	for _, p := range wildPaths(all) {
		alone := f.groupsOf(p.wider())
		if !slices.ContainsFunc(groups, func(g *wildGroup) bool { return f.extend(g, alone) }) {
			groups = append(groups, alone[0])
		}
	}
	slices.SortStableFunc(groups, func(x, y *wildGroup) int { return y.size() - x.size() })
	got := map[string]map[string]bool{}
	for _, u := range f.split(groups) {
		f.leaveOutRepeated(u, got)
		for c, dirs := range f.builtBy(u) {
			for _, dir := range dirs {
				u.dirs[c] = dir // any of them
				if got[c] == nil {
					got[c] = map[string]bool{}
				}
				got[c][dir] = true
			}
		}
	}
	f.leaveDifferences(got)
}

// split makes the parts of overlays of groups, with as many paths and exceptions in each overlay as it may have.
func (f *wildcards) split(groups []*wildGroup) (units []*unit) {
	var u *unit
	for _, g := range groups {
		paths := f.textsOf(g.paths)
		except := f.exceptions(paths)
		var all []string
		if u != nil {
			all = outermost(slices.Concat(u.except, except))
		}
		if u == nil || pathsIn(u.parts)+len(paths) > validation.MostPaths || len(all) > maxExceptions {
			name := "apps"
			if len(units) > 0 {
				name = fmt.Sprintf("apps-%d", len(units)+1)
			}
			u, all = f.finder.unit(name), except
			u.inReserved = f.reservedNamespaces()
			units = append(units, u)
		}
		u.parts, u.except = append(u.parts, paths), all[:min(len(all), maxExceptions)]
	}
	return units
}

// builtBy returns the directories that an overlay builds, by cluster.
func (f *wildcards) builtBy(u *unit) map[string][]string {
	all := map[string][]string{}
	without := setOf(u.except)
	for c := range f.finder.clusters {
		for _, paths := range u.parts {
			for _, dir := range f.chosen(paths, c, f.exist) {
				if !isIn(without, dir) {
					all[c] = append(all[c], dir)
				}
			}
		}
	}
	return all
}

// wildPaths returns the paths for the sites, those for single clusters first.
func wildPaths(all []site) []wildPath {
	forms := map[string]*wildPath{}
	for _, s := range all {
		key := path.Join(s.form...)
		if forms[key] == nil {
			forms[key] = &wildPath{form: s.form}
		}
		forms[key].sites++
	}
	shapes := map[string][]*wildPath{}
	for _, key := range slices.Sorted(maps.Keys(forms)) {
		shape := slices.Clone(forms[key].form)
		for i := range firstVariable(shape) {
			if isLiteral(shape[i]) {
				shape[i] = "*"
			}
		}
		shapes[path.Join(shape...)] = append(shapes[path.Join(shape...)], forms[key])
	}
	var paths []wildPath
	for _, shape := range slices.Sorted(maps.Keys(shapes)) {
		paths = append(paths, generalized(shapes[shape]))
	}
	named := func(p wildPath) int {
		text := path.Join(p.form...)
		return strings.Count(text, "${cluster.name}")*8 + strings.Count(text, "${")
	}
	slices.SortStableFunc(paths, func(x, y wildPath) int { return cmp.Or(named(y)-named(x), y.sites-x.sites) })
	return paths
}

// firstVariable returns the position of the first variable. What is behind it is part of what a directory is named after.
func firstVariable(form []string) int {
	return slices.IndexFunc(form, func(segment string) bool { return strings.Contains(segment, "${") })
}

// isLiteral reports whether a segment is a name that may be another one in the directory of another app.
func isLiteral(segment string) bool {
	return !strings.Contains(segment, "${") && !environmentDirectory.MatchString(segment) && !clusterDirectory.MatchString(segment)
}

// generalized returns the path for forms that differ in names only.
func generalized(forms []*wildPath) wildPath {
	p := wildPath{form: slices.Clone(forms[0].form)}
	differs := false
	for _, other := range forms {
		p.sites += other.sites
		for i := range p.form {
			if p.form[i] != other.form[i] {
				p.form[i], differs = "*", true
			}
		}
	}
	if i := slices.IndexFunc(p.form[:firstVariable(p.form)], isLiteral); !differs && i >= 0 { // so that other paths can be in the same overlay
		p.form[i] = "*"
	}
	return p
}

// wider returns the path, and those with more wildcards in front of its first variable.
func (p wildPath) wider() []wildPath {
	all := []wildPath{p}
	for i := range firstVariable(p.form) {
		if isLiteral(p.form[i]) && p.form[i] != "*" {
			p.form = slices.Clone(p.form)
			p.form[i] = "*"
			all = append(all, p)
		}
	}
	return all
}

func (p wildPath) wildcards() (n int) {
	for _, segment := range p.form {
		if segment == "*" {
			n++
		}
	}
	return n
}

// A wildGroup has the paths of a part of an overlay.
type wildGroup struct {
	paths []wildPath
	// built are the directories that they mean for each cluster, sorted.
	built map[string][]string
}

func (g *wildGroup) size() (n int) {
	for _, p := range g.paths {
		n += p.sites
	}
	return n
}

// groupsOf returns a group for each of some paths.
func (f *wildcards) groupsOf(paths []wildPath) (groups []*wildGroup) {
	for _, p := range paths {
		g := &wildGroup{[]wildPath{p}, map[string][]string{}}
		for c := range f.finder.clusters {
			g.built[c] = f.chosen(f.textsOf(g.paths), c, f.exist)
		}
		groups = append(groups, g)
	}
	return groups
}

// extend adds the path of the first of some groups that can be in a part with those of g, if there is one: every cluster would get what
// it is meant to get from each.
func (f *wildcards) extend(g *wildGroup, groups []*wildGroup) bool {
	for _, other := range groups {
		if n := g.paths[0].wildcards(); n == 0 || n != other.paths[0].wildcards() || len(g.paths) >= validation.MostAlternatives {
			continue
		}
		paths := slices.Concat(g.paths, other.paths)
		if built := f.builtTogether(paths, g.built, other.built); built != nil {
			g.paths, g.built = paths, built
			return true
		}
	}
	return false
}

// builtTogether returns what paths mean for each cluster, where two parts of them mean a and b; nil if a cluster would not get what it is
// meant to get from one of these.
func (f *wildcards) builtTogether(paths []wildPath, a, b map[string][]string) map[string][]string {
	texts, built := f.textsOf(paths), map[string][]string{}
	for c := range f.finder.clusters {
		either := slices.Compact(slices.Sorted(slices.Values(slices.Concat(a[c], b[c]))))
		built[c] = f.chosen(texts, c, either)
		for _, dir := range either {
			if _, is := slices.BinarySearch(built[c], dir); f.wanted[c][dir] && !is {
				return nil
			}
		}
	}
	return built
}

func (f *wildcards) textsOf(paths []wildPath) (texts []string) {
	for _, p := range paths {
		texts = append(texts, defaulted(p.form, f.finder.clusters))
	}
	return texts
}

// chosen are the directories that an overlay builds for a cluster, of those that exist. Both are sorted.
func (f *wildcards) chosen(paths []string, name string, exist []string) []string {
	spec := &api.OverlaySpec{Paths: paths, WhenMissing: api.WhenMissingIgnore}
	c := overlay.Cluster{Name: name, Labels: f.finder.clusters[name].labels}
	dirs, err := overlay.Choose(spec, ".", c, func(dir string) bool { _, is := slices.BinarySearch(exist, dir); return is }, exist)
	if err != nil {
		return nil // it lacks a label
	}
	return dirs
}

// buildable are the directories that an overlay with wildcards could build, sorted: those with a kustomization, and those with
// manifests in or below them that belong to no kustomization.
func (f *wildcards) buildable() []string {
	all := map[string]bool{}
	for dir := range f.finder.kustomizations {
		all[dir] = true
	}
	for _, d := range f.finder.documents {
		for dir := path.Dir(d.file); dir != "."; dir = path.Dir(dir) {
			if _, is := f.finder.kustomizations[dir]; is {
				break
			}
			all[dir] = true
		}
	}
	delete(all, ".")
	return slices.Sorted(maps.Keys(all))
}

// leaveDifferences says what clusters are meant to get and do not get, and the other way around.
func (f *wildcards) leaveDifferences(got map[string]map[string]bool) {
	missing, more := map[string][]string{}, map[string][]string{}
	for _, c := range slices.Sorted(maps.Keys(f.wanted)) {
		for dir := range f.wanted[c] {
			if !got[c][dir] {
				missing[dir] = append(missing[dir], c)
			}
		}
		for dir := range got[c] {
			if !f.wanted[c][dir] {
				more[dir] = append(more[dir], c)
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(more)) {
		f.finder.leave("%s: cluster %s gets it as well, although other kustomizations refer to it; add it to spec.except if that is wrong, with all below it", dir, few(more[dir]))
	}
	for _, dir := range slices.Sorted(maps.Keys(missing)) {
		f.finder.leave("%s: cluster %s does not get it, since another directory has its place in the overlay; write a ClusterOverlay for it", dir, few(missing[dir]))
	}
}

// reservedNamespaces are those that objects of the repository are in, sorted.
func (f *wildcards) reservedNamespaces() []string {
	all := slices.Clone(f.finder.namespaces)
	for _, d := range f.finder.documents {
		all = append(all, d.text("metadata", "namespace"))
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return !api.ReservedNamespace(name) || name == api.Namespace })
}

// exceptions are the directories that paths mean and that no cluster is meant to get, if nothing below them is.
func (f *wildcards) exceptions(paths []string) []string {
	needed := map[string]bool{}
	for _, dirs := range f.wanted {
		for dir := range dirs {
			for ; dir != "."; dir = path.Dir(dir) {
				needed[dir] = true
			}
		}
	}
	var except []string
	for c := range f.finder.clusters {
		for _, dir := range f.chosen(paths, c, f.exist) {
			if !needed[dir] {
				except = append(except, dir)
			}
		}
	}
	return outermost(except)
}

// leaveOutRepeated leaves directories out of an overlay that earlier ones build for the same clusters, which get them otherwise twice.
func (f *wildcards) leaveOutRepeated(u *unit, got map[string]map[string]bool) {
	repeated, needed := map[string]bool{}, map[string]bool{}
	for c, dirs := range f.builtBy(u) {
		for _, dir := range dirs {
			if got[c][dir] {
				repeated[dir] = true
				continue
			}
			for ; dir != "."; dir = path.Dir(dir) {
				needed[dir] = true
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(repeated)) {
		if needed[dir] || !u.leaveOut(dir) {
			f.finder.leave("%s: another ClusterOverlay builds it as well as %s; leave it out of one of them for the clusters that get it twice", dir, u.name)
		}
	}
}
