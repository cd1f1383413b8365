package hub

import (
	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A parsed has the items of one file or one build. It is what the loader caches.
type parsed struct {
	items    []*item
	problems problem.List
	// size is the approximate memory of the items. end is the position of the last one, and cut
	// says that the budget was used up there.
	size int64
	end  api.Origin
	cut  bool
}

// parseFile parses a file and validates each object in it.
func parseFile(name string, data []byte, limits Limits, interned document.Interner, budget *limit.Budget) *parsed {
	out := &parsed{}
	out.problems = document.Read(name, data, limits, func(r *document.Report, root *yaml.Node) (more bool) {
		c := &document.Decoder{Report: r, Strings: interned, OwnKind: document.IsOwnKind(root), Budget: budget}
		if value, ok := c.Decode(root); ok {
			out.items = append(out.items, itemsOf(r, value)...)
		}
		out.size, out.end, out.cut = out.size+c.Size, r.Origin, c.Cut
		return !c.Cut
	})
	return out
}

// tooLarge refuses a commit whose objects take too much memory.
func (a *assembly) tooLarge(at api.Origin) {
	a.full = true
	a.problem(problem.Error, at, "", "up to here the objects of the commit take more than %s of memory; split the repository, write fewer YAML aliases, or raise limits.commitSize", limit.Size(a.limits.CommitSize))
}

// addParsed adds the items of a file or a build, unless the commit becomes too large.
func (a *assembly) addParsed(p *parsed) {
	if a.size += p.size; a.size > a.limits.CommitSize || p.cut {
		a.tooLarge(p.end)
		return
	}
	a.items = append(a.items, p.items...)
	a.problems = append(a.problems, p.problems...)
}
