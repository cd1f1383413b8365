package hub

import (
	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A parsed has the items of one file or one build. It is what the loader caches.
type parsed struct {
	items    []*item
	problems problem.List
	// size is the approximate memory of the items. end is the position of the last one, and cut
	// the position at which the budget was used up, if it was.
	size     int64
	end, cut api.Origin
}

// parseFile parses a file and validates each object in it.
func parseFile(name string, data []byte, limits Limits, words document.Vocabulary, spending *document.Budget) *parsed {
	out := &parsed{}
	out.problems = document.Read(name, data, limits.documents(), func(r *document.Report, root *yaml.Node) (more bool) {
		c := &document.Decoder{Report: r, Limits: limits.documents(), Words: words, OwnKind: document.IsOwnKind(root), Budget: spending}
		if value, ok := c.Decode(root); ok {
			out.items = append(out.items, itemsOf(r, value)...)
		}
		out.size, out.end = out.size+c.Size, r.Origin
		if c.Cut {
			out.cut = r.Origin
		}
		return !c.Cut
	})
	return out
}

// parsedBuild validates each object of a build.
func parsedBuild(b *build.Result) *parsed {
	out := &parsed{problems: b.Problems, size: b.Size, end: b.End, cut: b.Cut}
	for _, o := range b.Objects {
		out.items = append(out.items, itemsOf(o.Report, o.Value)...)
		out.problems = append(out.problems, o.Report.Problems...)
	}
	if b.Exceeded {
		out.items = nil
	}
	return out
}

// tooLarge refuses a commit whose objects take too much memory.
func (a *assembly) tooLarge(at api.Origin) {
	a.full = true
	a.problem(problem.Error, at, "", "up to here the objects of the commit take more than %s of memory; split the repository, write fewer YAML aliases, or raise limits.commitSize", problem.Size(a.limits.CommitSize))
}

// addParsed adds the items of a file or a build, unless the commit becomes too large.
func (a *assembly) addParsed(p *parsed) {
	if a.size += p.size; a.size > a.limits.CommitSize || p.cut != (api.Origin{}) {
		a.tooLarge(p.last())
		return
	}
	a.add(p)
}

// last returns the position of the last decoded object.
func (p *parsed) last() api.Origin {
	if p.cut != (api.Origin{}) {
		return p.cut
	}
	return p.end
}
