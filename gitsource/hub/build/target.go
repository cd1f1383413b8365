package build

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub/chart"
)

// A Target is a kustomization to build, and everything it includes.
type Target struct {
	// File is the kustomization file.
	File string
	root *kustomization
	// parts are all kustomizations of the build, each once, sorted by directory.
	parts []*kustomization
	graph *Graph
}

// Target returns the target in a directory of Roots.
func (g *Graph) Target(dir string) Target {
	return Target{g.nodes[dir].file, g.nodes[dir], g.withBases(dir), g}
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

// Fault returns why the target cannot be built for clusters; empty if it may be tried.
func (t Target) Fault() string {
	if t.root.isComponent() {
		return t.File + ": a component cannot be built by itself; refer to it in a kustomization"
	}
	for _, k := range t.parts {
		if problems := k.problems.Errors(); len(problems) > 0 {
			return problems.Summary()
		}
	}
	return ""
}

// Fingerprint identifies everything that a build reads: builds with equal fingerprints have
// equal results.
func (t Target) Fingerprint() (string, error) {
	h := sha256.New()
	io.WriteString(h, t.root.dir)
	for _, k := range t.parts {
		for _, f := range k.reads() {
			hash, err := t.graph.tree.Hash(f.path)
			if err != nil {
				return "", err
			}
			io.WriteString(h, "\x00"+f.path+"\x00"+hash)
		}
		for _, c := range k.charts {
			if c.dir == "" {
				continue
			}
			from, err := t.graph.chart(c.dir)
			if err != nil {
				return "", err
			}
			io.WriteString(h, "\x00"+c.dir+"\x00"+from.Hash)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Sources lists the files of the commit that a build reads, sorted.
func (t Target) Sources() []string {
	var names []string
	for _, k := range t.parts {
		if k.locked && t.graph.remotes.LockFile != "" {
			names = append(names, t.graph.remotes.LockFile)
		}
		if t.graph.tree.MountOf(k.dir) != "" {
			continue
		}
		for _, f := range k.reads() {
			names = append(names, f.path)
		}
		for _, c := range k.charts {
			if c.dir == "" || c.remote {
				continue
			}
			if from, err := t.graph.chart(c.dir); err == nil { // else the fingerprint has the error
				names = append(names, from.Files()...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// chart returns the chart in a directory.
func (g *Graph) chart(dir string) (*chart.Chart, error) {
	if c := g.charts[dir]; c != nil {
		return c, nil
	}
	// Nothing says which objects of a chart have values of an encrypted file.
	c, err := chart.Read(g.tree.AsStored(), dir, g.limits)
	if err != nil {
		return nil, err
	}
	g.charts[dir] = c
	return c, nil
}
