package document

import (
	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
)

// A Syntax is the documents of a file, not validated.
type Syntax struct {
	Documents []Document
	Problems  problem.List
	// Size is the approximate memory of the documents.
	Size int64
}

// A Document is one document of a file.
type Document struct {
	Root *yaml.Node
	// LinesBefore is the number of lines above the text that root was parsed from.
	LinesBefore int
	// Number counts the documents of the file, from one.
	Number int
}

// Parse reads a file without validating its objects, since patches are none. Once the
// budget is used up, the rest is skipped.
func Parse(name string, data []byte, limits Limits, spending *Budget) *Syntax {
	out, words := &Syntax{}, Vocabulary{}
	out.Problems = Read(name, data, limits, func(r *Report, root *yaml.Node) (more bool) {
		c := &Decoder{Report: r, Limits: limits, Words: words, Budget: spending}
		c.Decode(root)
		out.Size += c.Size
		out.Documents = append(out.Documents, Document{root, r.LinesBefore, r.Origin.Document})
		return !c.Cut
	})
	return out
}
