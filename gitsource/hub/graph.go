package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path"
	"slices"
	"strings"
)

// maxVisits limits the kustomizations of one build, counting repetitions: kustomize builds a
// base again for each reference, so that a small repository could keep it busy for ever.
const maxVisits = 10_000

// A graph has all kustomizations of a commit and their references.
type graph struct {
	nodes map[string]*kustomization
	// roots are the directories to build, in order: those that no other kustomization includes.
	roots []string
	// owned are the files that belong to a kustomization, and ownedDirs the directories whose
	// manifests are read only if a kustomization lists them. The values are the kustomization
	// files.
	owned, ownedDirs map[string]string
	// size is the approximate memory of the kustomization files, and last the one read last.
	size int64
	last string
}

// newGraph reads the kustomizations of the given directories, and of everything they refer to.
func newGraph(t *tree, dirs []string, files *cache[textKey, *kustomizationFile]) (*graph, error) {
	g := &graph{nodes: map[string]*kustomization{}, owned: map[string]string{}, ownedDirs: map[string]string{}}
	for pending := slices.Clone(dirs); len(pending) > 0; pending = pending[1:] {
		dir := pending[0]
		if g.nodes[dir] != nil {
			continue
		}
		k, err := readKustomization(t, dir, files)
		if err != nil {
			return nil, err
		}
		g.nodes[dir] = k
		if g.size, g.last = g.size+k.text.size, k.file; g.size > t.limits.CommitSize {
			return g, nil
		}
		pending = append(pending, k.dirs...)
	}
	g.own()
	g.findRoots(dirs)
	return g, nil
}

func (g *graph) own() {
	for _, dir := range sortedKeys(g.nodes) {
		k := g.nodes[dir]
		g.ownedDirs[dir] = k.file
		for _, f := range k.files {
			g.owned[f.path] = k.file
			if at := path.Dir(f.path); g.ownedDirs[at] == "" && isManifest(f.path) {
				g.ownedDirs[at] = k.file
			}
		}
	}
}

// findRoots finds the kustomizations to build, and cycles, which have no root.
func (g *graph) findRoots(dirs []string) {
	taken := map[string]bool{}
	for _, k := range g.nodes {
		for _, d := range k.dirs {
			taken[d] = true
		}
	}
	visits := map[string]int{}
	for _, dir := range dirs {
		switch k := g.nodes[dir]; {
		case taken[dir]:
		case k.component:
			k.warn(0, "", "no kustomization uses this component, so it has no effect")
		default:
			g.roots = append(g.roots, dir)
			if n := g.visit(dir, visits, nil); n > maxVisits {
				k.fail(0, "", "the build would go through more than %d kustomizations; refer to each base fewer times", maxVisits)
			}
		}
	}
	for _, dir := range sortedKeys(g.nodes) {
		g.visit(dir, visits, nil)
	}
}

// visit counts the kustomizations in a build of dir, and reports cycles.
func (g *graph) visit(dir string, visits map[string]int, way []string) int {
	if n, known := visits[dir]; known {
		return n
	}
	if i := slices.Index(way, dir); i >= 0 {
		last := g.nodes[way[len(way)-1]]
		last.failAt(dir, "these kustomizations refer to each other in a circle: %s; remove one of the references", strings.Join(append(way[i:], dir), " -> "))
		return 1
	}
	n := 1
	for _, next := range g.nodes[dir].dirs {
		n = min(n+g.visit(next, visits, append(way, dir)), maxVisits+1)
	}
	visits[dir] = n
	return n
}

// withBases returns a kustomization and everything it includes, each once, sorted by directory.
func (g *graph) withBases(dir string) []*kustomization {
	seen := map[string]*kustomization{}
	var add func(string)
	add = func(d string) {
		if seen[d] == nil {
			seen[d] = g.nodes[d]
			for _, next := range g.nodes[d].dirs {
				add(next)
			}
		}
	}
	add(dir)
	var all []*kustomization
	for _, d := range sortedKeys(seen) {
		all = append(all, seen[d])
	}
	return all
}

func (g *graph) problems() Problems {
	var all Problems
	for _, dir := range sortedKeys(g.nodes) {
		all = append(all, g.nodes[dir].problems...)
	}
	return all
}

// buildable reports whether there is no problem in any of the files of a build.
func buildable(parts []*kustomization) bool {
	return !slices.ContainsFunc(parts, func(k *kustomization) bool { return hasErrors(k.problems) })
}

// fingerprint identifies everything that a build reads: builds with the same fingerprint have
// the same result.
func fingerprint(t *tree, dir string, parts []*kustomization) (string, error) {
	h := sha256.New()
	io.WriteString(h, dir)
	for _, k := range parts {
		for _, f := range append([]reference{{path: k.file}}, k.files...) {
			hash, err := t.hash(f.path)
			if err != nil {
				return "", err
			}
			io.WriteString(h, "\x00"+f.path+"\x00"+hash)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
