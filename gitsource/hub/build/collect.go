package build

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/placement/api"
)

const originAnnotation = "config.kubernetes.io/origin"

// collect decodes the objects of a build as if they had been read from files.
func (b *builder) collect(m resmap.ResMap, out *Result, visit func(*document.Report, any)) {
	var size int64
	interned := document.Interner{}
	for _, res := range m.Resources() {
		r := &document.Report{Origin: b.originOf(res), Limits: b.graph.limits}
		c := &document.Decoder{Report: r, Strings: interned, OwnKind: document.IsOwnKind(res.YNode()), Budget: b.budget}
		value, ok := c.Decode(res.YNode())
		if ok {
			b.removeOrigin(value)
			data, _ := json.Marshal(value)
			if size += int64(len(data)); size > b.graph.limits.BuildOutput {
				b.fail("the build writes more than %s; make it smaller, or raise limits.buildOutput", limit.Size(b.graph.limits.BuildOutput))
				out.Exceeded = true
				return
			}
			visit(r, value)
		}
		b.problems = append(b.problems, r.Problems...)
		out.Size, out.End = out.Size+c.Size, r.Origin
		if out.Cut = c.Cut; out.Cut {
			return
		}
	}
}

// originOf finds the document from which an object was made.
func (b *builder) originOf(res *resource.Resource) api.Origin {
	origin := api.Origin{Path: b.File, Kustomization: b.File}
	o, err := res.GetOrigin()
	if err != nil || o == nil {
		return origin
	}
	if o.Path == "" {
		if o.ConfiguredIn != "" {
			origin.Path = path.Join(b.root.dir, o.ConfiguredIn)
			origin.Line = b.generatorLine(origin.Path, res.GetName())
		}
		return origin
	}
	origin.Path = path.Join(b.root.dir, o.Path)
	if p, ok := nearest(b.positions[origin.Path], res.GetKind(), res.GetName()); ok {
		origin.Line, origin.Document = p.line, p.document
	}
	return origin
}

// nearest finds the document from which an object was probably made. It is of the same kind,
// and of several it is the one with the longest name that is part of the object's name, since
// kustomize may have added a prefix or suffix. If no name matches, it is the only document of
// the kind.
func nearest(positions []sourcePosition, kind, name string) (best sourcePosition, found bool) {
	ofKind := 0
	var last sourcePosition
	for _, p := range positions {
		if p.kind != kind {
			continue
		}
		ofKind, last = ofKind+1, p
		if strings.Contains(name, p.name) && (!found || len(p.name) > len(best.name)) {
			best, found = p, true
		}
	}
	if !found && ofKind == 1 {
		return last, true
	}
	return best, found
}

// generatorLine finds the generator of an object.
func (b *builder) generatorLine(file, name string) int {
	for _, k := range b.parts {
		if k.file != file {
			continue
		}
		line, length := 0, 0
		for _, g := range k.content.generators {
			if strings.Contains(name, g.name) && len(g.name) > length {
				line, length = g.line, len(g.name)
			}
		}
		return line
	}
	return 0
}

// removeOrigin removes the annotation added by withOrigins.
func (b *builder) removeOrigin(value any) {
	if slices.Contains(b.root.content.spec.BuildMetadata, types.OriginAnnotations) {
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
