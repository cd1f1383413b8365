package hub

// A vocabulary keeps short strings that occur again and again, in all files,
// only once: it makes a loaded commit smaller. One goroutine at a time uses it.
type vocabulary map[string]string

const (
	maxWords    = 20_000
	maxWordSize = 32
)

func (v vocabulary) of(s string) string {
	if len(s) > maxWordSize {
		return s
	}
	if known, ok := v[s]; ok {
		return known
	}
	if len(v) < maxWords {
		v[s] = s
	}
	return s
}
