package document

// A Vocabulary stores equal short strings once, so that a loaded commit takes less memory. It
// is not safe for concurrent use.
type Vocabulary map[string]string

const (
	maxWords    = 20_000
	maxWordSize = 32
)

func (v Vocabulary) of(s string) string {
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
