package document

// An Interner stores equal short strings once, so that a loaded commit takes less memory. A nil
// Interner stores nothing. It is not safe for concurrent use.
type Interner map[string]string

const (
	maxInterned     = 20_000
	maxInternedSize = 32
)

func (in Interner) intern(s string) string {
	if in == nil || len(s) > maxInternedSize {
		return s
	}
	if known, ok := in[s]; ok {
		return known
	}
	if len(in) < maxInterned {
		in[s] = s
	}
	return s
}
