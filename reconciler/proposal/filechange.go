package proposal

// A FileChange is the change of one file of a tree.
type FileChange struct {
	// Path is slash-separated and relative to the top of the repository.
	Path string
	// Before is the content before the change; nil for a new file.
	Before []byte
	// After is the new content; nil for a file that is removed.
	After []byte
}
