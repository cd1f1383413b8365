package build

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/chart"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
)

// maxVisits limits the kustomizations of one build. Repeated references count each time:
// kustomize builds a base again for each of them, so that even a small repository could make a
// build endless.
const maxVisits = 10_000

// A Graph has all kustomizations of a commit and the references between them.
type Graph struct {
	nodes map[string]*kustomization
	// Roots are the directories to build, in order: those that no other kustomization includes.
	Roots []string
	// unused are the directories of components and bases that no kustomization uses.
	unused []string
	// overlays are the directories that overlays build, and whether they do so for any cluster.
	overlays map[string]bool
	// included are the directories that kustomizations refer to.
	included map[string]bool
	// owned maps files to the kustomization file that uses them. ownedDirs does so for
	// directories, whose manifests are read only if a kustomization lists them.
	owned, ownedDirs map[string]string
	// Size is the approximate memory of the kustomization files, and Last the file that was
	// read last.
	Size int64
	Last string

	tree    *tree.Tree
	limits  limit.Limits
	remotes Remotes
	uses    []RemoteBase
	// remoteCharts are those that kustomizations ask for, charts those that were read, by their directories, and renderings what
	// they have become, by their keys. rendered is the chart of the last rendering; the others have released their files.
	remoteCharts []RemoteChart
	charts       map[string]*chart.Chart
	renderings   map[string]*rendering
	rendered     *chart.Chart
}

// Read reads the kustomizations of the given directories, and everything that they refer to. It
// stops when they exceed the memory limit.
func Read(t *tree.Tree, dirs []string, limits limit.Limits, remotes Remotes) (*Graph, error) {
	g := &Graph{
		nodes: map[string]*kustomization{}, tree: t, limits: limits, remotes: remotes,
		charts: map[string]*chart.Chart{}, renderings: map[string]*rendering{},
	}
	if err := g.Add(dirs); err != nil {
		return nil, err
	}
	g.Arrange(dirs, nil)
	return g, nil
}

// Add reads further kustomizations, and everything that they refer to, within the memory limit. Arrange has to follow.
func (g *Graph) Add(dirs []string) error {
	for pending := slices.Clone(dirs); len(pending) > 0 && g.Size <= g.limits.CommitSize; pending = pending[1:] {
		dir := pending[0]
		if g.nodes[dir] != nil {
			continue
		}
		k, err := g.read(dir)
		if err != nil {
			return err
		}
		k.own = len(k.problems)
		g.nodes[dir] = k
		g.Size, g.Last = g.Size+k.size, k.file
		pending = append(pending, k.dirs...)
	}
	return nil
}

// Arrange finds the Roots among some directories, and forgets what was found before. overlays are the directories that
// overlays build, and whether they do so for any cluster: they are no Roots.
func (g *Graph) Arrange(dirs []string, overlays map[string]bool) {
	if g.Size > g.limits.CommitSize { // not everything was read
		return
	}
	for _, k := range g.nodes {
		k.problems = k.problems[:k.own]
	}
	g.Roots, g.unused, g.overlays = nil, nil, overlays
	g.owned, g.ownedDirs = map[string]string{}, map[string]string{}
	g.own()
	g.checkKinds()
	g.findRoots(dirs)
}

// checkKinds reports components among the resources, and other kustomizations among the components.
func (g *Graph) checkKinds() {
	for _, k := range g.nodes {
		for _, m := range k.mentions {
			switch n := g.nodes[path.Join(k.dir, m.value)]; {
			case n == nil:
			case m.kind == fileOrDirectory && n.isComponent():
				k.fail(m, "%s is a component; list it under components", n.dir)
			case m.kind == componentDirectory && !n.isComponent() && !n.problems[:n.own].HasErrors():
				k.fail(m, "%s is no component; list it under resources, or write kind: Component in its file", n.dir)
			}
		}
	}
}

func (g *Graph) own() {
	for _, dir := range slices.Sorted(maps.Keys(g.nodes)) {
		k := g.nodes[dir]
		g.ownedDirs[dir] = k.file
		for _, f := range k.files {
			g.owned[f.path] = k.file
			if at := path.Dir(f.path); g.ownedDirs[at] == "" && document.IsManifest(f.path) {
				g.ownedDirs[at] = k.file
			}
		}
	}
}

// findRoots finds the kustomizations to build. It also finds cycles, which have no root.
func (g *Graph) findRoots(dirs []string) {
	g.included = map[string]bool{}
	for _, k := range g.nodes {
		for _, d := range k.dirs {
			g.included[d] = true
		}
	}
	visits := map[string]int{}
	for _, dir := range dirs {
		switch k := g.nodes[dir]; {
		case g.included[dir]:
		case k.isComponent():
			k.add(problem.Warning, 1, "", "no kustomization uses this component, so it has no effect")
			g.unused = append(g.unused, dir)
		default:
			g.Roots = append(g.Roots, dir)
			g.checkStart(dir, visits)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(g.overlays)) {
		g.checkStart(dir, visits)
	}
	for _, dir := range slices.Sorted(maps.Keys(g.nodes)) {
		g.visit(dir, visits, nil)
	}
}

// checkStart reports what is wrong with a kustomization only because a build begins with it: an order that kustomize does not know, and
// that the build would go through too many kustomizations.
func (g *Graph) checkStart(dir string, visits map[string]int) {
	if m := g.nodes[dir].unknownOrder; m != nil {
		g.nodes[dir].fail(*m, "%s", m.value)
	}
	if n := g.visit(dir, visits, nil); n > maxVisits {
		g.nodes[dir].fail(mention{}, "the build would go through more than %d kustomizations; refer to each base fewer times", maxVisits)
	}
}

// visit counts the kustomizations in a build of dir, and reports cycles. stack are the directories
// that lead to dir.
func (g *Graph) visit(dir string, visits map[string]int, stack []string) int {
	if n, known := visits[dir]; known {
		return n
	}
	if i := slices.Index(stack, dir); i >= 0 {
		last := g.nodes[stack[len(stack)-1]]
		last.failAt(dir, "these kustomizations refer to each other in a cycle: %s; remove one of the references", strings.Join(append(stack[i:], dir), " -> "))
		return 1
	}
	n := 1
	for _, next := range g.nodes[dir].dirs {
		n = min(n+g.visit(next, visits, append(stack, dir)), maxVisits+1)
	}
	visits[dir] = n
	return n
}

// References are all references of kustomizations of the commit to its files, also of those that are not built.
func (g *Graph) References() []grant.Reference {
	var all []grant.Reference
	for _, dir := range slices.Sorted(maps.Keys(g.nodes)) {
		k := g.nodes[dir]
		if g.tree.MountOf(dir) != "" {
			continue
		}
		for _, f := range k.files {
			all = append(all, k.reference(f.path, f.path))
		}
		for _, d := range k.dirs {
			if g.tree.MountOf(d) == "" {
				all = append(all, k.reference(d, g.nodes[d].file))
			}
		}
	}
	for _, c := range g.Charts() {
		all = append(all, grant.Reference{Origin: c.Origin, Field: c.Field, To: c.File})
	}
	return all
}

// reference is the one to a file or a directory of the commit; to is its file.
func (k *kustomization) reference(name, to string) grant.Reference {
	r := grant.Reference{Origin: api.Origin{Path: k.file}, To: to}
	if i := slices.IndexFunc(k.mentions, func(m mention) bool { return path.Join(k.dir, m.value) == name }); i >= 0 {
		r.Origin.Line, r.Field = k.mentions[i].line, k.mentions[i].field
	}
	return r
}

// Problems are those of all kustomizations. Those of unused ones are warnings, and those of what only overlays build are
// failures.
func (g *Graph) Problems() problem.List {
	var all problem.List
	unused, built := g.onlyUnused()
	for _, dir := range slices.Sorted(maps.Keys(g.nodes)) {
		problems := g.nodes[dir].problems
		if g.tree.MountOf(dir) != "" { // nobody here can correct what is merely deprecated there
			problems = problems.Errors()
		}
		switch {
		case built[dir]:
			problems = problems.Failures()
		case unused[dir]:
			problems = problems.Warnings()
		}
		all = append(all, problems...)
	}
	return all
}

// Included reports whether a kustomization refers to that of a directory.
func (g *Graph) Included(dir string) bool { return g.included[dir] }

// Owner returns the kustomization file that a file belongs to; empty if the file is a plain
// manifest. listed says that the kustomization refers to the file itself.
func (g *Graph) Owner(name string) (file string, listed bool) {
	if file := g.owned[name]; file != "" {
		return file, true
	}
	return g.ownedDirs[path.Dir(name)], false
}

// IsUnread reports whether a kustomization file could not be read, so that what it lists is not known.
func (g *Graph) IsUnread(file string) bool {
	k := g.nodes[path.Dir(file)]
	return k != nil && len(k.mentions) == 0 && k.problems.HasErrors()
}
