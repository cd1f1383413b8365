package build

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
)

// baseName matches the name that people give to the directory of a base, such as base, bases/web or
// web-base.
var baseName = regexp.MustCompile(`(?i)(?:^|[^a-z0-9])bases?\d?(?:$|[^a-z0-9])`)

// IsOnlyBase reports whether a target that no kustomization uses was meant to be used by others only:
// its directory is called a base, and neither the kustomizations nor any object say in which
// namespace its objects belong. As it is, it cannot be built by itself. Whatever else is wrong with
// it does not matter.
func (t Target) IsOnlyBase() (bool, error) {
	if !baseName.MatchString(t.root.dir) {
		return false, nil
	}
	lacking := false
	for _, k := range t.parts {
		if k.spec.Namespace != "" || len(k.spec.Transformers) > 0 { // which may set it
			return false, nil
		}
		for _, g := range k.generatorArgs() {
			if g.Namespace != "" {
				return false, nil
			}
			lacking = true
		}
		for _, c := range k.charts {
			lacking = lacking || c.Namespace == ""
		}
		for _, f := range k.files {
			if f.data || f.schema {
				continue
			}
			lacks, has, err := t.namespaces(f.path)
			if has || err != nil {
				return false, err
			}
			lacking = lacking || lacks
		}
	}
	return lacking, nil
}

func (k *kustomization) generatorArgs() []types.GeneratorArgs {
	var all []types.GeneratorArgs
	for _, g := range k.spec.ConfigMapGenerator {
		all = append(all, g.GeneratorArgs)
	}
	for _, g := range k.spec.SecretGenerator {
		all = append(all, g.GeneratorArgs)
	}
	return all
}

// namespaces reports whether some object of a file lacks the namespace that its kind requires, and
// whether some object has or is a namespace. What cannot be read counts as neither.
func (t Target) namespaces(name string) (lacks, has bool, err error) {
	data, fault, err := t.graph.tree.Read(name)
	if err != nil || fault != "" {
		return false, false, err
	}
	var look func(value any)
	look = func(value any) {
		object, _ := value.(map[string]any)
		items, _ := object["items"].([]any)
		for _, item := range items {
			look(item)
		}
		metadata, _ := object["metadata"].(map[string]any)
		version, _ := object["apiVersion"].(string)
		kind, _ := object["kind"].(string)
		gk := schema.FromAPIVersionAndKind(version, kind).GroupKind()
		namespace, _ := metadata["namespace"].(string)
		namespaced, known := api.Namespaced(gk)
		has = has || namespace != "" || gk == api.GroupKind{Kind: "Namespace"}
		lacks = lacks || known && namespaced && namespace == ""
	}
	document.Read(name, data, t.graph.limits, t.graph.limits.BuildInput, func(_ *document.Report, value any) { look(value) })
	return lacks, has, nil
}

// Drop leaves out the problems of a target that was not meant to be built, and of what only such
// targets use: they become warnings. why continues a sentence about the base.
func (t Target) Drop(why string) {
	t.root.add(problem.Warning, 1, "", "no kustomization uses this base, and %s, so it has no effect; remove it, or list its directory in %s", why, tree.IgnoreFile)
	t.graph.unused = append(t.graph.unused, t.root.dir)
}

// Hint adds to the problems of a target, which refuse the commit, that nothing uses it. That is left
// out for an overlay of others, since none is expected to use it.
func (t Target) Hint() {
	if len(t.root.dirs) == 0 || baseName.MatchString(t.root.dir) {
		t.root.add(problem.Warning, 1, "", "no other kustomization uses this one, so it is built; if it is not meant to be deployed, remove it, or list its directory in %s", tree.IgnoreFile)
	}
}

// Unused lists the kustomization files, sorted, of components and bases that are not built since no
// kustomization uses them.
func (g *Graph) Unused() []string {
	var files []string
	for _, dir := range g.unused {
		files = append(files, g.nodes[dir].file)
	}
	slices.Sort(files)
	return files
}

// onlyUnused returns the directories of the kustomizations that are used by unused ones only, and of those that are used
// by overlays, and otherwise by unused ones at most.
func (g *Graph) onlyUnused() (unused, built map[string]bool) {
	var mark func(set map[string]bool, dir string)
	mark = func(set map[string]bool, dir string) {
		if !set[dir] {
			set[dir] = true
			for _, next := range g.nodes[dir].dirs {
				mark(set, next)
			}
		}
	}
	unused, built = map[string]bool{}, map[string]bool{}
	used := map[string]bool{}
	for _, dir := range g.unused {
		mark(unused, dir)
	}
	for dir, forCluster := range g.overlays {
		if forCluster {
			mark(built, dir)
		} else {
			mark(unused, dir)
		}
	}
	for _, dir := range g.Roots {
		if !slices.Contains(g.unused, dir) {
			mark(used, dir)
		}
	}
	for dir := range used {
		delete(unused, dir)
		delete(built, dir)
	}
	return unused, built
}
