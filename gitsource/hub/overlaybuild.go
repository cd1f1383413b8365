package hub

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
)

// buildOverlays builds what the overlays have for the clusters, each directory once, and sets the content of the
// overlays. What cannot be built fails for the clusters that get it, and does not refuse the commit.
func (l *Loader) buildOverlays(t *tree.Tree, g *build.Graph, a *assembly, o *overlays) error {
	if len(o.uses) == 0 {
		return nil
	}
	if n := len(g.Roots) + len(o.dirs); n > a.limits.Builds {
		a.full = true
		at := o.uses[0].it
		a.problem(problem.Error, at.origin, "", "the commit has more than %d kustomizations to build, with those of overlays; split the repository, or raise limits.builds", a.limits.Builds)
		return nil
	}
	builds := map[buildKey]*clusterBuild{}
	for _, u := range o.uses {
		if u.it.overlay.PostBuild != nil {
			u.post = newPostBuild(a, u.it)
		}
		for _, dir := range slices.Sorted(maps.Keys(u.existing)) {
			key := u.key(dir)
			if builds[key] != nil || !u.existing[dir] {
				continue
			}
			b, err := l.buildOverlay(g.Target(dir), a, key)
			if err != nil || a.full {
				return err
			}
			b.by = u.it
			if u.post == nil || !l.buildPerCluster(a, u, b, key, o.clusters, builds) {
				builds[key] = b
			}
			if a.full {
				return nil
			}
		}
	}
	scopes, definitions := a.declaredScopes(), a.definitions()
	var found clusterProblems
	for _, key := range slices.SortedFunc(maps.Keys(builds), buildKey.compare) {
		problems, err := a.checkBuild(t, builds[key], key, scopes, definitions, o.dirs[key.dir])
		if err != nil {
			return err
		}
		found.add(problems, builds[key].clusters)
	}
	a.problems = append(a.problems, found.list()...)
	for _, u := range o.uses {
		a.checkOverlayGrants(g, u, builds, scopes)
		u.checkTogether(a, builds)
		l.setOverlay(a, o, u, builds)
	}
	a.warnUnusedOverlays(g, o)
	return nil
}

// checkTogether reports objects that several directories have which an overlay with wildcards builds for the same cluster.
func (u *overlayUse) checkTogether(a *assembly, builds map[buildKey]*clusterBuild) {
	reported := map[api.Origin]map[api.ID]bool{}
	for _, key := range slices.Sorted(maps.Keys(u.together)) {
		first := map[api.ID]*api.Object{}
		for _, dir := range u.together[key].dirs {
			b := builds[u.keyFor(dir, u.together[key].cluster)]
			if b == nil {
				continue
			}
			for _, object := range b.Objects {
				other := first[object.ID]
				if other == nil {
					first[object.ID] = object
				} else if !reported[object.Origin][object.ID] {
					if reported[object.Origin] == nil {
						reported[object.Origin] = map[api.ID]bool{}
					}
					reported[object.Origin][object.ID] = true
					a.problem(problem.Failure, object.Origin, "", "%s is also at %s, and %s (%s) builds both for the same cluster; remove one of them, or leave its directory out with spec.except",
						object.ID, positionText(other.Origin), u.it.id, positionText(u.it.origin))
				}
			}
		}
	}
}

// buildOverlay builds one directory.
func (l *Loader) buildOverlay(t build.Target, a *assembly, key buildKey) (*clusterBuild, error) {
	b := &clusterBuild{OverlayBuild: &api.OverlayBuild{File: t.File, Err: t.Fault()}, sources: t.Sources(), parsed: &parsed{}}
	a.sources[t.File] = b.sources
	var err error
	if b.fingerprint, err = t.Fingerprint(); err != nil || b.Err != "" {
		return b, err
	}
	if b.parsed, err = l.buildTarget(t, a, buildOptions{overlay: true, namespace: key.namespace, templates: key.variablesOf != ""}); err != nil || a.full {
		return nil, err
	}
	p := b.parsed
	if !a.addBuilt(p) {
		return nil, nil
	}
	if p.transient { // the next load may succeed, and other builds may not be possible now
		a.problems = append(a.problems, p.Problems...)
	}
	a.uses = append(a.uses, p.uses...)
	return b, nil
}

// checkOverlayGrants reports what an overlay builds that is not granted to the files that it is in and that it builds.
func (a *assembly) checkOverlayGrants(g *build.Graph, u *overlayUse, builds map[buildKey]*clusterBuild, scopes map[api.GroupKind]bool) {
	if a.grants == nil {
		return
	}
	file, files := a.readFor(u.it)
	if u.post != nil {
		files = slices.Concat(files, u.post.files)
	}
	field := validation.OverlayPath(u.it.overlay)
	for _, dir := range slices.Sorted(maps.Keys(u.existing)) {
		if u.existing[dir] { // it is no part of the hub, even if no cluster uses it and its variables are replaced for none
			to := g.Target(dir).File
			a.problems = append(a.problems, a.grants.CheckReference(grant.Reference{Origin: u.it.at(field), Field: field, To: to})...)
			a.checkUnreadBy(file, dir, to)
		}
		for _, key := range u.keys(dir) {
			if b := builds[key]; b != nil {
				a.checkProducts(files, b, key, scopes)
			}
		}
	}
}

// setOverlay sets the content of an overlay.
func (l *Loader) setOverlay(a *assembly, o *overlays, u *overlayUse, builds map[buildKey]*clusterBuild) {
	field := validation.OverlayPath(u.it.overlay)
	built := &api.BuiltOverlay{Spec: *u.it.overlay, At: u.it.at(field), Hub: o.hub, Properties: map[string]map[string]string{}, Builds: map[string]*api.OverlayBuild{}, ReservedNamespaces: u.it.overlay.ReservedNamespaces}
	h := sha256.New()
	for _, c := range o.clusters {
		if len(c.Properties) > 0 {
			built.Properties[c.Name] = c.Properties
			fmt.Fprintf(h, "%q %q\n", c.Name, fmt.Sprint(c.Properties))
		}
	}
	contents := []any{u.it.object.Hash}
	built.Dirs = slices.Sorted(maps.Keys(u.existing))
	for _, dir := range built.Dirs {
		if values, varies := u.perCluster[dir]; varies {
			contents = append(contents, setPerCluster(built, u, dir, values, builds, h)...)
			continue
		}
		b := builds[u.key(dir)]
		if b == nil {
			text := "the directory " + dir + " has neither a " + build.FileNames[0] + " nor manifests; add what clusters are to get"
			b = &clusterBuild{OverlayBuild: &api.OverlayBuild{File: path.Join(dir, build.FileNames[0]), Err: text, Hash: text}}
			if clusters := u.chosen[dir]; len(clusters) > 0 {
				a.problem(problem.Failure, u.it.at(field), field, "for %s: %s", strings.Join(clusters, ", "), text)
			}
		}
		built.Builds[dir] = b.OverlayBuild
		contents = append(contents, []any{dir, b.Hash})
		fmt.Fprintf(h, "%q %q %q\n", dir, b.fingerprint, b.Hash)
	}
	l.setContent(a, u.it, built, h, contents)
}

// warnUnusedOverlays warns of directories that overlays could build, and that are for no cluster and no base of others. An overlay of which no
// cluster uses any is an error: its path is probably mistyped, and what it no longer builds would be deleted. While a cluster has a mistake
// itself, what it uses is not known.
func (a *assembly) warnUnusedOverlays(g *build.Graph, o *overlays) {
	if len(o.clusters) == 0 || a.unread || a.invalid.hasCluster() {
		return
	}
	for _, u := range o.uses {
		field := validation.OverlayPath(u.it.overlay)
		if len(u.chosen) == 0 {
			why := "none exists for the names, labels and declared properties of any"
			if u.fault != nil {
				why = u.fault.Error()
			}
			a.problem(problem.Error, u.it.at(field), field, "no cluster of the commit uses a directory of it (%s); correct the path or the clusters, or remove the overlay", why)
			a.invalid[u.it.id] = true
			continue
		}
		for _, dir := range slices.Sorted(maps.Keys(u.existing)) {
			if !u.existing[dir] || o.dirs[dir] || u.literal[dir] || g.Included(dir) {
				continue
			}
			a.problem(problem.Warning, api.Origin{Path: g.Target(dir).File, Line: 1}, "", "no cluster uses this overlay of %s (%s: %s), so it has no effect; remove it, or correct the path or the labels of clusters", u.it.id, u.it.at(field), field)
		}
	}
}
