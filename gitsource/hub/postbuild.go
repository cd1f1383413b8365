package hub

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/overlay"
	"github.com/gitfleet/gitfleet/placement/variable/postbuild"
)

// variables returns the names of the variables in the templates, sorted.
func (p *parsed) variables() []string {
	if p.names == nil {
		p.names = []string{}
		for _, t := range p.templates {
			p.names = append(p.names, postbuild.Names(t.object)...)
		}
		slices.Sort(p.names)
		p.names = slices.Compact(p.names)
	}
	return p.names
}

// buildPerCluster replaces the variables in a build of an overlay, once for all clusters that have the same values, and adds the results to
// builds. It reports whether there are any variables.
func (l *Loader) buildPerCluster(a *assembly, u *overlayUse, b *clusterBuild, key buildKey, clusters []overlay.Cluster, builds map[buildKey]*clusterBuild) bool {
	if len(b.parsed.templates) == 0 {
		return false
	}
	keys := map[string]string{}
	u.perCluster[key.dir] = keys
	for _, c := range clusters {
		if _, chosen := slices.BinarySearch(u.chosen[key.dir], c.Name); !chosen {
			continue
		}
		values, sum := u.post.of(c).only(b.parsed.variables())
		keys[c.Name], key.values = sum, sum
		if known := builds[key]; known != nil {
			known.clusters = append(known.clusters, c.Name)
			continue
		}
		p := l.replaceVariables(a, u, b, key, values)
		if !a.addBuilt(p) {
			return true
		}
		builds[key] = &clusterBuild{
			OverlayBuild: &api.OverlayBuild{File: b.File}, parsed: p, sources: b.sources, fingerprint: b.fingerprint + sum, clusters: []string{c.Name}, by: u.it,
		}
	}
	return true
}

// replaceVariables returns what was built with the values of variables, unless it is cached.
func (l *Loader) replaceVariables(a *assembly, u *overlayUse, b *clusterBuild, key buildKey, values clusterValues) *parsed {
	at := cacheKey{b.File, b.fingerprint, true, "/" + key.namespace + "$" + u.it.id.String() + "$" + key.values}
	if p := l.cache[at]; p != nil {
		l.keep(at, p)
		return p
	}
	p := &parsed{forClusters: true}
	p.End, p.steps, p.charts = b.parsed.End, b.parsed.steps, b.parsed.charts
	add := p.addItemsIn(key.namespace)
	for _, t := range b.parsed.templates {
		r := &document.Report{Origin: t.origin, Release: t.release, Limits: a.limits}
		if t.encrypted { // neither a value nor the path to one may get into a message or past a mask
			r.Errorf(nil, "variables are not replaced in an object with encrypted values; annotate it with %s: disabled, or move what has variables to an object without such values", postbuild.Annotation)
		} else if object, errs := postbuild.Replace(t.object, values.values, t.texts); errs == nil {
			p.Size += document.SizeOf(object)
			add(r, object)
		} else {
			for _, e := range errs {
				r.Errorf((*document.FieldPath)(nil).Within(t.object, e.Field), "%s", values.message(e.Err, u.it.id))
			}
		}
		p.Problems = append(p.Problems, r.Problems...)
	}
	l.plain.markSecrets(p, b.File, b.sources...)
	for _, it := range p.items {
		if it.object != nil {
			it.object.Substituted = true
		}
	}
	l.keep(at, p) // before the items without variables are added: the schemas of those are shared already, and in use by snapshots
	p.items = append(p.items, b.parsed.items...)
	p.Problems = append(p.Problems, b.parsed.Problems...)
	return p
}

func (u *overlayUse) key(dir string) buildKey {
	spec := u.it.overlay
	key := buildKey{dir: dir, namespace: spec.Namespace, namespaced: u.it.id.Namespace != "", kind: "Overlay", reserved: strings.Join(spec.ReservedNamespaces, ",")}
	if spec.PostBuild != nil {
		key.variablesOf = u.it.id.String()
	}
	return key
}

// keyFor returns the key of the build of a directory for a cluster.
func (u *overlayUse) keyFor(dir, cluster string) buildKey {
	key := u.key(dir)
	key.values = u.perCluster[dir][cluster]
	return key
}

// keys returns the keys of all builds of a directory.
func (u *overlayUse) keys(dir string) []buildKey {
	values, varies := u.perCluster[dir]
	if !varies {
		return []buildKey{u.key(dir)}
	}
	var all []buildKey
	for _, sum := range slices.Compact(slices.Sorted(maps.Values(values))) {
		key := u.key(dir)
		key.values = sum
		all = append(all, key)
	}
	return all
}

// setPerCluster sets the builds of a directory with variables, and returns the contents.
func setPerCluster(built *api.BuiltOverlay, u *overlayUse, dir string, values map[string]string, builds map[buildKey]*clusterBuild, fingerprint io.Writer) (contents []any) {
	if built.PerCluster == nil {
		built.PerCluster = map[string]map[string]string{}
	}
	built.PerCluster[dir] = map[string]string{}
	for _, c := range slices.Sorted(maps.Keys(values)) {
		key := u.keyFor(dir, c).text()
		built.PerCluster[dir][c] = key
		fmt.Fprintf(fingerprint, "%q %q\n", c, key)
	}
	for _, key := range u.keys(dir) {
		b := builds[key]
		built.Builds[key.text()] = b.OverlayBuild
		contents = append(contents, []any{key.text(), b.Hash})
		fmt.Fprintf(fingerprint, "%q %q %q\n", key.text(), b.fingerprint, b.Hash)
	}
	return contents
}
