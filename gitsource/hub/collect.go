package hub

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/gitfleet/gitfleet/placement/api"
)

const originAnnotation = "config.kubernetes.io/origin"

// collect validates the objects of a build as if they were in files.
func (b *builder) collect(m resmap.ResMap, dir string, out *parsed) {
	var size int64
	words := vocabulary{}
	for _, res := range m.Resources() {
		r := &report{origin: b.originOf(res, dir)}
		c := &converter{r: r, limits: b.limits, words: words, ours: isOurs(res.YNode()), budget: b.budget}
		value, ok := c.document(res.YNode())
		if ok {
			b.forgetOrigin(value)
			data, _ := json.Marshal(value)
			if size += int64(len(data)); size > b.limits.BuildOutput {
				b.fail("the build writes more than %s; make it smaller, or raise limits.buildOutput", bytesText(b.limits.BuildOutput))
				out.items = nil
				return
			}
			out.items = append(out.items, itemsOf(r, value)...)
		}
		out.size, out.end = out.size+c.size, r.origin
		if c.cut {
			out.cut = r.origin
			return
		}
		b.problems = append(b.problems, r.problems...)
	}
}

// originOf finds the document from which an object was made.
func (b *builder) originOf(res *resource.Resource, dir string) api.Origin {
	origin := api.Origin{Path: b.file, Kustomization: b.file}
	o, err := res.GetOrigin()
	if err != nil || o == nil {
		return origin
	}
	if o.Path == "" {
		if o.ConfiguredIn != "" {
			origin.Path = path.Join(dir, o.ConfiguredIn)
			origin.Line = b.generatorLine(origin.Path, res.GetName())
		}
		return origin
	}
	origin.Path = path.Join(dir, o.Path)
	if p, ok := nearest(b.positions[origin.Path], res.GetKind(), res.GetName()); ok {
		origin.Line, origin.Document = p.line, p.document
	}
	return origin
}

// nearest finds the document from which an object was probably made: of the same kind, and with
// the longest name that is contained in the object's name, since kustomize may have added a
// prefix or suffix. If the name was replaced, it finds the only document of the kind.
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
		for _, g := range k.text.generators {
			if strings.Contains(name, g.name) && len(g.name) > length {
				line, length = g.line, len(g.name)
			}
		}
		return line
	}
	return 0
}

// forgetOrigin removes the annotation added by withOrigins.
func (b *builder) forgetOrigin(value any) {
	for _, k := range b.parts {
		if k.file == b.file && slices.Contains(k.text.spec.BuildMetadata, types.OriginAnnotations) {
			return
		}
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
