package build

import (
	"fmt"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/listitem"
)

// mount is the directory in which a build finds the repository; the file system of the build
// has nothing above it.
const mount = "/repository"

// A builder builds one kustomization from its files.
type builder struct {
	Target
	texts map[string][]byte
	// positions are the positions of the documents in the files, places where their objects can be marked, and sizes the memory of the files.
	positions map[string][]sourcePosition
	places    map[string][]place
	sizes     map[string]int64
	secrets   []string
	problems  problem.List
	// inputLeft is how much memory further files may take, each counted once.
	inputLeft int64
	// uses are the indexes in the patches, whose lists the build copies.
	uses []indexUse
	// targets are those of patches that may match nothing.
	targets patchTargets
	// chartFiles are the files in place of charts, by their names, and rendered the steps of the renderings.
	chartFiles map[string]chartFile
	rendered   map[string]int64
	// marks are the origins of the objects that have the annotation markKey, by its value, and origins those of the objects that were
	// built.
	marks   []sourceMark
	markKey string
	origins []sourceMark
}

// Built is the result of a build.
type Built struct {
	document.File
	// Uses are the indexes by which patches address items of lists.
	Uses []listitem.Use
	// Charts are the steps of the renderings of charts, by what identifies a rendering within the commit.
	Charts map[string]int64
}

// A sourceMark is what the mark of an object stands for: the position of the object or of its generator.
type sourceMark struct {
	path           string
	line, document int
}

// An indexUse is an index in the path of an operation.
type indexUse struct {
	origin        api.Origin
	field         string
	pointer, list string
	index         int
}

// A patchTarget is the target of a patch that has the field with its index.
type patchTarget struct {
	mention
	file     string
	selector types.Selector
	// parts are the kustomizations whose objects it may match.
	parts []*kustomization
	// found says that an object of the build has the field.
	found bool
}

// patchTargets are those of a build.
type patchTargets []*patchTarget

// A chartFile is a file that a build reads in place of a chart.
type chartFile struct {
	*renderedFile
	in    *kustomization
	chart *helmChart
}

func newBuilder(t Target) *builder {
	return &builder{
		Target: t, texts: map[string][]byte{}, positions: map[string][]sourcePosition{}, places: map[string][]place{}, sizes: map[string]int64{},
		inputLeft: t.graph.limits.BuildInput, chartFiles: map[string]chartFile{}, rendered: map[string]int64{},
	}
}

func (b *builder) fail(path, format string, args ...any) {
	b.problems = append(b.problems, problem.Problem{Origin: api.Origin{Path: path}, Severity: problem.Error, Message: fmt.Sprintf(format, args...)})
}

func (b *builder) use(name string, bytes int64) {
	b.sizes[name] += bytes
	b.inputLeft -= bytes
}

// localOrigin returns the origin of an object of a remote base: the reference to the base in the repository.
func (b *builder) localOrigin(o api.Origin) api.Origin {
	root := b.graph.tree.MountOf(o.Path)
	if root == "" {
		return o
	}
	for _, k := range b.parts {
		if b.graph.tree.MountOf(k.file) != "" {
			continue
		}
		for _, r := range k.remotes {
			if r.root == root {
				return api.Origin{Path: k.file, Line: r.line, Kustomization: b.File}
			}
		}
	}
	return api.Origin{Path: b.File, Kustomization: b.File}
}

// visitScalars visits the scalars of a node that are not keys.
func visitScalars(n *yaml.Node, visit func(*yaml.Node)) {
	if n.Kind == yaml.ScalarNode {
		visit(n)
	}
	for i, child := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			visitScalars(child, visit)
		}
	}
}
