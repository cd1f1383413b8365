package build

import (
	"encoding/json"

	"sigs.k8s.io/kustomize/api/resource"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/placement/api"
)

// collect decodes the objects of a build as if they had been read from files. It visits all of
// them, or none if they are larger than the limit.
func (b *builder) collect(resources []*resource.Resource, maxSize int64, out *Built, visit func(*document.Report, any)) {
	var size int64
	var reports []*document.Report
	var objects []any
	for i, res := range resources {
		r := &document.Report{Limits: b.graph.limits}
		r.Origin, r.Release = b.originOf(b.origins[i])
		value, bytes, ok := document.Decode(r, res.YNode(), maxSize-out.Size)
		out.Size, out.End = out.Size+bytes, r.Origin
		if out.Cut = out.Size > maxSize; out.Cut {
			break
		}
		if !ok {
			b.problems = append(b.problems, r.Problems...)
			continue
		}
		if b.markKey != "" {
			removeMarks(value, b.markKey)
		}
		b.takeLists(value, out)
		b.targets.take(value)
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

// originOf returns the position of the document from which an object was made, and the release of a chart that it belongs to, if any.
func (b *builder) originOf(m sourceMark) (origin api.Origin, release string) {
	origin = api.Origin{Path: b.File, Kustomization: b.File}
	if m.path == "" {
		return origin, ""
	}
	origin.Path, origin.Line, origin.Document = m.path, m.line, m.document
	f, isChart := b.chartFiles[m.path]
	if !isChart {
		return b.localOrigin(origin), ""
	}
	origin.Path = f.source
	return b.chartOrigin(f.in, f.chart, origin), f.in.file + ": " + f.chart.field
}
