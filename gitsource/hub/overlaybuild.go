package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A knownOverlay is an overlay with its builds, and used the number of the last load that used it.
type knownOverlay struct {
	fingerprint string
	item        *item
	used        int
}

// A buildKey is what a build for an overlay depends on, beside the commit.
type buildKey struct {
	dir, namespace string
	// namespaced says that only objects of the namespace are allowed.
	namespaced bool
	// kind is that of the overlay or chart, without Cluster.
	kind string
	// reserved are the reserved namespaces that are allowed, joined by commas.
	reserved string
	// variablesOf is the overlay if variables are replaced in what is built, and values identifies theirs.
	variablesOf, values string
}

// text is the key of the build in the content of an overlay.
func (k buildKey) text() string {
	if k.values == "" {
		return k.dir
	}
	return k.dir + "?" + k.values
}

// An overlayBuild is the result of building one directory.
type overlayBuild struct {
	*api.OverlayBuild
	parsed *parsed
	// sources are the files of the build, and fingerprint identifies their content.
	sources     []string
	fingerprint string
	// clusters are those that a rendering of a chart is for.
	clusters []string
	// by is the overlay or chart; the first one, if several have the same build.
	by *item
}

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
	builds := map[buildKey]*overlayBuild{}
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
func (u *overlayUse) checkTogether(a *assembly, builds map[buildKey]*overlayBuild) {
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

func (u *overlayUse) key(dir string) buildKey {
	spec := u.it.overlay
	key := buildKey{dir: dir, namespace: spec.Namespace, namespaced: u.it.id.Namespace != "", kind: "Overlay", reserved: strings.Join(spec.ReservedNamespaces, ",")}
	if spec.PostBuild != nil {
		key.variablesOf = u.it.id.String()
	}
	return key
}

func (k buildKey) compare(o buildKey) int {
	return strings.Compare(fmt.Sprint(k), fmt.Sprint(o))
}

// buildOverlay builds one directory.
func (l *Loader) buildOverlay(t build.Target, a *assembly, key buildKey) (*overlayBuild, error) {
	b := &overlayBuild{OverlayBuild: &api.OverlayBuild{File: t.File, Err: t.Fault()}, sources: t.Sources(), parsed: &parsed{}}
	a.sources[t.File] = b.sources
	var err error
	if b.fingerprint, err = t.Fingerprint(); err != nil || b.Err != "" {
		return b, err
	}
	options := "/" + key.namespace
	if key.variablesOf != "" {
		options += "$"
	}
	if b.parsed, err = l.buildTarget(t, a, options); err != nil || a.full {
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

// addItemsIn adds the items of a build, and sets the namespace of objects that need one and have none.
func (p *parsed) addItemsIn(namespace string) func(*document.Report, any) {
	return func(r *document.Report, value any) {
		object, _ := value.(map[string]any)
		metadata, _ := object["metadata"].(map[string]any)
		version, _ := object["apiVersion"].(string)
		kind, _ := object["kind"].(string)
		namespaced, _ := api.Namespaced(runtimeschema.FromAPIVersionAndKind(version, kind).GroupKind())
		if own, _ := metadata["namespace"].(string); own == "" && namespaced && metadata != nil && namespace != "" {
			metadata["namespace"] = namespace
		}
		p.addItems(r, value)
	}
}

// clusterProblems are problems of builds. One that several clusters have is reported once.
type clusterProblems struct {
	order    problem.List
	clusters map[problem.Problem][]string
}

// add adds the problems of a build. Without clusters it is the same for all.
func (c *clusterProblems) add(problems problem.List, clusters []string) {
	if c.clusters == nil {
		c.clusters = map[problem.Problem][]string{}
	}
	for _, p := range problems {
		if _, known := c.clusters[p]; !known {
			c.order = append(c.order, p)
		}
		c.clusters[p] = append(c.clusters[p], clusters...)
	}
}

// list returns the problems. Those that fail name their clusters.
func (c *clusterProblems) list() problem.List {
	out := slices.Clone(c.order)
	for i, p := range c.order {
		if clusters := slices.Compact(slices.Sorted(slices.Values(c.clusters[p]))); len(clusters) > 0 && p.Severity == problem.Failure {
			out[i].Message += ", for " + listed(clusters)
		}
	}
	return out
}

// checkBuild checks the objects of a build as those of the hub are checked, sets its content, and returns the problems. used says that it
// is for a cluster.
func (a *assembly) checkBuild(t *tree.Tree, b *overlayBuild, key buildKey, scopes map[api.GroupKind]bool, definitions map[api.GroupKind]*item, used bool) (problem.List, error) {
	own := &assembly{limits: a.limits, problems: slices.Clone(b.parsed.Problems)}
	for _, it := range b.parsed.items {
		if own.checkBuilt(it, key, a) {
			own.items = append(own.items, it.inNamespace(key, scopes))
		}
	}
	own.checkScopes(scopes)
	all := maps.Clone(definitions)
	maps.Copy(all, own.definitions())
	if err := own.checkCustom(t, all); err != nil {
		return nil, err
	}
	own.scaledObjects()
	for _, it := range own.items {
		own.checkBuiltNamespace(it, key, b.by)
	}
	if errors := own.problems.Errors(); b.Err == "" && len(errors) > 0 {
		b.Err = a.scrub(errors.Sort().Summary())
	}
	b.fill(own.items)
	for _, o := range b.Objects {
		if key.values == "" || o.Substituted { // the builds of a directory for other clusters share the others
			a.built++
		}
	}
	if !used {
		return own.problems.Warnings(), nil
	}
	return own.problems.Failures(), nil
}

// fill sets the objects and the hash of a build.
func (b *overlayBuild) fill(items []*item) {
	h := sha256.New()
	if b.Err == "" {
		for _, it := range items {
			b.Objects = append(b.Objects, it.object)
		}
		slices.SortStableFunc(b.Objects, func(x, y *api.Object) int { return x.ID.Compare(y.ID) })
	}
	for _, o := range b.Objects {
		io.WriteString(h, o.ID.String()+"\x00"+o.Hash+"\x00")
	}
	io.WriteString(h, b.Err)
	b.Hash = hex.EncodeToString(h.Sum(nil))
}

// inNamespace returns the item in the namespace of its overlay, if its kind needs one: as the commit defines it, or else as it usually
// is. All objects of an Overlay are in its namespace.
func (it *item) inNamespace(key buildKey, scopes map[api.GroupKind]bool) *item {
	if !it.custom || it.id.Namespace != "" || key.namespace == "" {
		return it
	}
	if namespaced, declared := scopes[it.id.GroupKind()]; declared && !namespaced || !declared && !key.namespaced && !api.UsuallyNamespaced(it.id.GroupKind()) {
		return it
	}
	if it.namespaced == nil || it.namespaced.id.Namespace != key.namespace {
		it.namespaced = &item{id: it.id, origin: it.origin, custom: true, object: it.object.InNamespace(key.namespace)}
		it.namespaced.id.Namespace = key.namespace
	}
	return it.namespaced
}

// checkBuilt reports what no overlay may have: what configures the fleet, which refuses the commit since it may have been part
// of the hub, and other envelopes.
func (a *assembly) checkBuilt(it *item, key buildKey, hub *assembly) bool {
	_, ours := api.ManifestKinds[it.id.GroupKind()]
	switch {
	case it.isConfiguration() || it.isBuilder():
		hub.problem(problem.Error, it.origin, "", "%s is in %s, which is built for clusters, so that it would be no part of the hub; move it to another directory", it.id, key.dir)
	case ours:
		a.problem(problem.Error, it.origin, "", "%s is an envelope, which cannot be in an overlay or a chart; write its objects there themselves", it.id)
	}
	return !ours && it.object != nil
}

// withArticle are the kinds that have objects of their own namespace only.
var withArticle = map[string]string{"Overlay": "an Overlay", chartKind: "a " + chartKind}

// checkBuiltNamespace reports an object in a namespace in which its overlay or chart may have none.
func (a *assembly) checkBuiltNamespace(it *item, key buildKey, by *item) {
	id := it.id
	isNamespace := id.GroupKind() == api.GroupKind{Kind: "Namespace"}
	name := id.Namespace
	if isNamespace {
		name = id.Name
	}
	switch {
	case key.namespaced && id.Namespace == "":
		a.problem(problem.Error, it.origin, "", "%s is cluster-scoped, and %s has objects of its own namespace only; use a Cluster%s", id, withArticle[key.kind], key.kind)
	case key.namespaced && id.Namespace != key.namespace:
		a.problem(problem.Error, it.origin, "metadata.namespace", "%s is in another namespace than %s, that of the %s; use a Cluster%s, or remove the namespace", id, key.namespace, key.kind, key.kind)
	case !api.ReservedNamespace(name) || key.namespaced && name != api.Namespace:
	case name == api.Namespace:
		a.problem(problem.Error, it.origin, "", "%s cannot be placed, since namespace %s is gitfleet's own; remove it, or write another namespace", id, name)
	case isNamespace:
		a.problem(problem.Error, it.origin, "", "%s cannot be placed, since it is reserved; remove it, or have the chart leave it out", id)
	case !slices.Contains(strings.Split(key.reserved, ","), name):
		field := "spec.reservedNamespaces"
		a.problem(problem.Error, it.origin, "", "%s cannot be placed, since namespace %s is reserved; to place objects in it, add %s to %s of %s (%s), or write another namespace", id, name, name, field, by.id, by.at(field))
	}
}

// checkOverlayGrants reports what an overlay builds that is not granted to the files that it is in and that it builds.
func (a *assembly) checkOverlayGrants(g *build.Graph, u *overlayUse, builds map[buildKey]*overlayBuild, scopes map[api.GroupKind]bool) {
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

// readFor returns the file that has an overlay or a chart, or the kustomization that builds it, and all files that are read
// for it.
func (a *assembly) readFor(it *item) (file string, files []string) {
	if it.built() {
		return it.origin.Kustomization, a.sources[it.origin.Kustomization]
	}
	return it.origin.Path, []string{it.origin.Path}
}

// checkProducts reports objects of a build that are not granted to some files and to those that it is built from.
func (a *assembly) checkProducts(files []string, b *overlayBuild, key buildKey, scopes map[api.GroupKind]bool) {
	var products []grant.Product
	for _, it := range b.parsed.items {
		products = append(products, it.inNamespace(key, scopes).products(scopes)...)
	}
	a.problems = append(a.problems, a.grants.Check(slices.Concat(files, b.sources), products)...)
}

// checkUnreadBy reports the paths of others of which an overlay decides that they are no part of the hub: that of its
// directory, unless it is shared, so that nothing in it is, and those below it.
func (a *assembly) checkUnreadBy(by, dir, kustomization string) {
	owner, shared := a.grants.Of(kustomization), a.grants.Shared(kustomization)
	if !shared {
		a.problems = append(a.problems, a.grants.CheckRead(by, dir)...)
		return
	}
	for _, g := range a.grants {
		if g != owner && grant.Below(dir, g.Path) {
			a.problems = append(a.problems, a.grants.CheckRead(by, g.Path)...)
		}
	}
}

// setOverlay sets the content of an overlay.
func (l *Loader) setOverlay(a *assembly, o *overlays, u *overlayUse, builds map[buildKey]*overlayBuild) {
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
			b = &overlayBuild{OverlayBuild: &api.OverlayBuild{File: path.Join(dir, build.FileNames[0]), Err: text, Hash: text}}
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

// setContent sets what an overlay or a chart has for clusters, which fingerprint identifies; contents are hashed for the
// object. The item of one that has not changed since the last loads is the same.
func (l *Loader) setContent(a *assembly, it *item, built *api.BuiltOverlay, fingerprint hash.Hash, contents []any) {
	known, sum := l.overlays[it], hex.EncodeToString(fingerprint.Sum(nil))
	if known == nil || known.fingerprint != sum {
		with, object := *it, *it.object
		object.Hash, _ = hashOf(contents)
		object.Overlay = built
		with.object = &object
		known = &knownOverlay{fingerprint: sum, item: &with}
		l.overlays[it] = known
	}
	known.used = l.loads
	a.items[slices.Index(a.items, it)] = known.item
}

// warnUnusedOverlays warns of directories that overlays could build, and that are for no cluster and no base of others. An overlay of which no
// cluster uses any is an error: its path is probably mistyped, and what it no longer builds would be deleted.
func (a *assembly) warnUnusedOverlays(g *build.Graph, o *overlays) {
	if len(o.clusters) == 0 {
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
