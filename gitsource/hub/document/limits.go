package document

// Limits limit the documents of a file.
type Limits struct {
	// Documents is the maximum number of documents in a file.
	Documents int
	// AliasExpansion is how many times larger a document may become when its YAML aliases are
	// expanded.
	AliasExpansion int
	// Depth is the maximum nesting of a document.
	Depth int
}
