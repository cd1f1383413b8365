package build

import (
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
)

// generate makes up the kustomization of a directory that has none, as Flux does: with all manifests in the directory and below,
// where a directory that has a kustomization counts as a whole.
func (g *Graph) generate(k *kustomization) error {
	found, err := resourcesBelow(g.tree, k.dir, g.limits.Depth)
	k.file, k.generated = path.Join(k.dir, FileNames[0]), true
	for _, name := range found {
		relative := strings.TrimPrefix(name, k.dir+"/")
		k.spec.Resources = append(k.spec.Resources, relative)
		k.mentions = append(k.mentions, mention{field: "resources", value: relative})
		k.size += int64(len(relative))
	}
	return err
}

// position is where the kustomization that is built is declared: its file, or the directory if it has none.
func (t Target) position() string {
	if t.root.generated {
		return t.root.dir
	}
	return t.File
}

// resourcesBelow returns what a kustomization lists that is made up for a directory, sorted.
func resourcesBelow(t *tree.Tree, dir string, depth int) (names []string, err error) {
	entries, err := t.List(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case !e.IsDir():
			if document.IsManifest(name) {
				names = append(names, name)
			}
		case depth == 0 || hasFile(t, name, "Chart.yaml") || slices.ContainsFunc(FileNames, func(file string) bool { return hasFile(t, name, file) }):
			names = append(names, name) // a chart is reported, since it has no kustomization
		default:
			below, err := resourcesBelow(t, name, depth-1)
			if err != nil {
				return nil, err
			}
			names = append(names, below...)
		}
	}
	return names, nil
}

func hasFile(t *tree.Tree, dir, name string) bool {
	is, err := t.IsFile(path.Join(dir, name))
	return is && err == nil
}

// CanBuild reports whether there is something to build for a directory without a kustomization.
func CanBuild(t *tree.Tree, dir string, depth int) (bool, error) {
	names, err := resourcesBelow(t, dir, depth)
	return len(names) > 0, err
}

// HasManifests reports whether a directory without a kustomization has manifests, in it or below, that are not those of a kustomization
// below.
func HasManifests(t *tree.Tree, dir string, depth int) (bool, error) {
	names, err := resourcesBelow(t, dir, depth)
	return slices.ContainsFunc(names, document.IsManifest), err
}
