package build

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/placement/api"
)

const originAnnotation = "config.kubernetes.io/origin"

// collect decodes the objects of a build as if they had been read from files. It visits all of
// them, or none if they are larger than the limit.
func (b *builder) collect(resources []*resource.Resource, maxSize int64, out *Built, visit func(*document.Report, any)) {
	var size int64
	var reports []*document.Report
	var objects []any
	for _, res := range resources {
		r := &document.Report{Limits: b.graph.limits}
		r.Origin, r.Release = b.originOf(res)
		value, bytes, ok := document.Decode(r, res.YNode(), maxSize-out.Size)
		out.Size, out.End = out.Size+bytes, r.Origin
		if out.Cut = out.Size > maxSize; out.Cut {
			break
		}
		if !ok {
			b.problems = append(b.problems, r.Problems...)
			continue
		}
		b.removeOrigin(value)
		b.takeLists(value, out)
		data, _ := json.Marshal(value)
		if size += int64(len(data)); size > b.graph.limits.BuildOutput {
			b.fail(b.File, "the build writes more than %s; make it smaller, or raise limits.buildOutput", limit.Size(b.graph.limits.BuildOutput))
			return
		}
		reports, objects = append(reports, r), append(objects, value)
	}
	b.prepareHooks(reports, objects)
	for i, r := range reports {
		visit(r, objects[i])
		b.problems = append(b.problems, r.Problems...)
	}
}

// originOf finds the document from which an object was made, and the release of a chart that it belongs to, if any.
func (b *builder) originOf(res *resource.Resource) (origin api.Origin, release string) {
	origin = api.Origin{Path: b.File, Kustomization: b.File}
	o, err := res.GetOrigin()
	if err != nil || o == nil {
		return origin, ""
	}
	if o.Path == "" {
		if o.ConfiguredIn != "" {
			origin.Path = path.Join(b.root.dir, o.ConfiguredIn)
			if local := b.localOrigin(origin); local != origin {
				return local, ""
			}
			origin.Line = b.generatorLine(origin.Path, res.GetName())
		}
		return origin, ""
	}
	origin.Path = path.Join(b.root.dir, o.Path)
	f, isChart := b.chartFiles[origin.Path]
	if local := b.localOrigin(origin); local != origin && !isChart {
		return local, ""
	}
	if p, ok := nearest(b.positions[origin.Path], res.GetKind(), res.GetName()); ok {
		origin.Line, origin.Document = p.line, p.document
	}
	if isChart {
		origin.Path = f.source
		return b.chartOrigin(f.in, f.chart, origin), f.in.file + ": " + f.chart.field
	}
	return origin, ""
}

// nearest finds the document from which an object was probably made. It is of the same kind,
// and of several it is the one with the longest name that is part of the object's name, since
// kustomize may have added a prefix or suffix. If no name matches, it is the only document of
// the kind.
func nearest(positions []sourcePosition, kind, name string) (best sourcePosition, found bool) {
	positions = slices.DeleteFunc(slices.Clone(positions), func(p sourcePosition) bool { return p.kind != kind })
	for _, p := range positions {
		if strings.Contains(name, p.name) && (!found || len(p.name) > len(best.name)) {
			best, found = p, true
		}
	}
	if !found && len(positions) == 1 {
		return positions[0], true
	}
	return best, found
}

// generatorLine finds the generator of an object.
func (b *builder) generatorLine(file, name string) int {
	var best sourcePosition
	for _, k := range b.parts {
		for _, g := range k.generators {
			if k.file == file && strings.Contains(name, g.name) && len(g.name) > len(best.name) {
				best = g
			}
		}
	}
	return best.line
}

// removeOrigin removes the annotation that every build adds, unless the user wants it.
func (b *builder) removeOrigin(value any) {
	if slices.Contains(b.root.spec.BuildMetadata, types.OriginAnnotations) {
		return // the user wants it
	}
	object, _ := value.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if _, there := annotations[originAnnotation]; !there {
		return
	}
	delete(annotations, originAnnotation)
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}
