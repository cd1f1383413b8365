package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/variable/postbuild"
)

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

func (k buildKey) compare(o buildKey) int {
	return strings.Compare(fmt.Sprint(k), fmt.Sprint(o))
}

// A clusterBuild is the result of building one directory, or of rendering a chart for some clusters.
type clusterBuild struct {
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

// addTemplatesIn adds the objects of a build that have variables as templates, and the others as items.
func (p *parsed) addTemplatesIn(namespace string) func(*document.Report, any) {
	add := p.addItemsIn(namespace)
	return func(r *document.Report, value any) {
		if object, is := value.(map[string]any); is && postbuild.Applies(object) {
			t := template{origin: r.Origin, release: r.Release, object: object, texts: map[string]bool{}}
			for _, path := range schema.TextFields(object) {
				t.texts[postbuild.Key(path)] = true
			}
			p.templates = append(p.templates, t)
			return
		}
		add(r, value)
	}
}

// checkBuild checks the objects of a build as those of the hub are checked, sets its content, and returns the problems. used says that it
// is for a cluster.
func (a *assembly) checkBuild(t *tree.Tree, b *clusterBuild, key buildKey, scopes map[api.GroupKind]bool, definitions map[api.GroupKind]*item, used bool) (problem.List, error) {
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
func (b *clusterBuild) fill(items []*item) {
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
	namespaced, declared := scopes[it.id.GroupKind()]
	if !declared {
		usually, _ := api.UsuallyNamespaced(it.id.GroupKind())
		namespaced = key.namespaced || usually
	}
	if !namespaced {
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
		a.problem(problem.Error, it.origin, "", "%s is cluster-scoped, and %s has objects of its own namespace only; use a Cluster%s", id, api.WithArticle(key.kind), key.kind)
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

// checkProducts reports objects of a build that are not granted to some files and to those that it is built from.
func (a *assembly) checkProducts(files []string, b *clusterBuild, key buildKey, scopes map[api.GroupKind]bool) {
	var products []grant.Product
	for _, it := range b.parsed.items {
		products = append(products, it.inNamespace(key, scopes).products(scopes)...)
	}
	a.problems = append(a.problems, a.grants.Check(slices.Concat(files, b.sources), products)...)
}

// A knownOverlay is an overlay with its builds, and used the number of the last load that used it.
type knownOverlay struct {
	fingerprint string
	item        *item
	used        int
}

// setContent sets what an overlay or a chart has for clusters, which fingerprint identifies; contents are hashed for the
// object. The item of one that has not changed since the last loads is the same.
func (l *Loader) setContent(a *assembly, it *item, built *api.BuiltOverlay, fingerprint hash.Hash, contents []any) {
	known, sum := l.overlays[it], hex.EncodeToString(fingerprint.Sum(nil))
	if known == nil || known.fingerprint != sum {
		with, object := *it, *it.object
		object.Hash, _ = api.HashOf(contents, nil)
		object.Overlay = built
		with.object = &object
		known = &knownOverlay{fingerprint: sum, item: &with}
		l.overlays[it] = known
	}
	known.used = l.loads
	a.items[slices.Index(a.items, it)] = known.item
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

// listed names clusters, at most three.
func listed(clusters []string) string {
	if len(clusters) <= 4 {
		return strings.Join(clusters, ", ")
	}
	return fmt.Sprintf("%s and %d more clusters", strings.Join(clusters[:3], ", "), len(clusters)-3)
}
