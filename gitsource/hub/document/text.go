package document

import (
	"bytes"
	"errors"
	"path"
	"slices"
	"unicode/utf8"

	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
)

var (
	byteOrderMark = []byte("\xef\xbb\xbf")
	lfsHeader     = []byte("version https://git-lfs.github.com/spec/")
)

// PointerFault says what is wrong with a pointer of Git LFS.
const PointerFault = "this is a Git LFS pointer, not the file itself; store it in Git directly: git lfs untrack, then commit the file"

// IsPointer reports whether Git LFS has the file, and this is only a pointer to it.
func IsPointer(data []byte) bool { return bytes.HasPrefix(data, lfsHeader) }

// PlainText returns the UTF-8 text of a file, or an error that says why it is not text.
func PlainText(data []byte) ([]byte, error) {
	switch {
	case IsPointer(data):
		return nil, errors.New(PointerFault)
	case api.EncryptedFile(data) != "":
		return nil, errors.New("the file is encrypted with " + api.EncryptedFile(data) + ", which gitfleet cannot decrypt; list it in " + tree.IgnoreFile + ", and " + api.DecryptionAdvice)
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return nil, errors.New("the file is UTF-16 or UTF-32; save it as UTF-8")
	case bytes.IndexByte(data, 0) >= 0:
		return nil, errors.New("the file has NUL bytes: it is binary, or in an encoding other than UTF-8; save it as UTF-8, or list it in " + tree.IgnoreFile)
	case !utf8.Valid(data):
		return nil, errors.New("the file is not UTF-8; save it as UTF-8")
	}
	return bytes.TrimPrefix(data, byteOrderMark), nil
}

// A chunk is the text of one YAML document, or of a few that are separated by "..." only.
type chunk struct {
	text []byte
	// before is the number of lines before the text.
	before int
}

// split splits a file at its "---" lines, which have no other meaning in YAML. The documents
// are parsed separately, so that an invalid one does not hide the next. Chunks without content
// are left out.
func split(data []byte) []chunk {
	var chunks []chunk
	start, before, line := 0, 0, 0
	flush := func(end int) {
		if text := data[start:end]; hasContent(text) {
			chunks = append(chunks, chunk{text, before})
		}
		start, before = end, line
	}
	for at := 0; at < len(data); line++ {
		if isSeparator(data[at:]) {
			flush(at)
		}
		next := bytes.IndexByte(data[at:], '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	flush(len(data))
	return chunks
}

func isSeparator(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// otherBreaks are characters that end a line in YAML, but not in most editors.
const otherBreaks = "\r\u0085\u2028\u2029"

// hasContent reports whether a text has more than separators, directives and comments.
func hasContent(text []byte) bool {
	for line := range bytes.Lines(text) {
		rest := bytes.TrimRight(line, " \t\r\n")
		if isSeparator(line) {
			rest = rest[len("---"):]
		}
		first := bytes.TrimLeft(rest, " \t\r")
		none := len(first) == 0 || first[0] == '#' || line[0] == '%' || string(rest) == "..."
		if !none || bytes.ContainsAny(bytes.TrimRight(line, "\r\n"), otherBreaks) {
			return true
		}
	}
	return false
}

// IsManifest reports whether a file with this name may contain manifests.
func IsManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}
