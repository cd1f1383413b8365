package document

import (
	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
)

// A Syntax has the parsed documents of a file, which are not validated.
type Syntax struct {
	Documents []Document
	Problems  problem.List
	// Size is the approximate memory of the documents.
	Size int64
}

// A Document is one document of a file.
type Document struct {
	Root *yaml.Node
	// LinesBefore is the number of lines before the text that Root was parsed from.
	LinesBefore int
	// Number is the number of the document in the file, from 1.
	Number int
}

// Parse parses a file without validating its objects, since patches are not complete objects.
// Once the budget is used up, the rest is skipped.
func Parse(name string, data []byte, limits limit.Limits, budget *limit.Budget) *Syntax {
	out := &Syntax{}
	out.Problems = Read(name, data, limits, func(r *Report, root *yaml.Node) (more bool) {
		c := &Decoder{Report: r, Budget: budget}
		c.Decode(root)
		out.Size += c.Size
		out.Documents = append(out.Documents, Document{root, r.LinesBefore, r.Origin.Document})
		return !c.Cut
	})
	return out
}
