package build

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
)

// A Target is a kustomization to build, and everything it includes.
type Target struct {
	// File is the kustomization file.
	File string
	dir  string
	// parts are all kustomizations of the build, each once, sorted by directory.
	parts  []*kustomization
	tree   *tree.Tree
	limits Limits
}

// Target returns the target in a directory of Roots.
func (g *Graph) Target(dir string) Target {
	return Target{dir: dir, File: g.nodes[dir].file, parts: g.withBases(dir), tree: g.tree, limits: g.limits}
}

// withBases returns a kustomization and everything it includes, each once, sorted by directory.
func (g *Graph) withBases(dir string) []*kustomization {
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
	for _, d := range slices.Sorted(maps.Keys(seen)) {
		all = append(all, seen[d])
	}
	return all
}

// Valid reports whether there is no problem in any of the kustomization files.
func (t Target) Valid() bool {
	return !slices.ContainsFunc(t.parts, func(k *kustomization) bool { return k.problems.HasErrors() })
}

// Fingerprint identifies everything that a build reads: builds with equal fingerprints have
// equal results.
func (t Target) Fingerprint() (string, error) {
	h := sha256.New()
	io.WriteString(h, t.dir)
	for _, k := range t.parts {
		for _, f := range append([]reference{{path: k.file}}, k.files...) {
			hash, err := t.tree.Hash(f.path)
			if err != nil {
				return "", err
			}
			io.WriteString(h, "\x00"+f.path+"\x00"+hash)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Sources lists the files that a build reads, sorted.
func (t Target) Sources() []string {
	var names []string
	for _, k := range t.parts {
		names = append(names, k.file)
		for _, f := range k.files {
			names = append(names, f.path)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
