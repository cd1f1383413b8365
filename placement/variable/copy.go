package variable

import (
	"maps"
	"slices"
	"strconv"
)

// A Replacer replaces the texts in an object. at is the path of the field that a text is in, with the positions in lists as
// digits; it must not be kept.
type Replacer interface {
	// Key returns the key of a mapping for the key key.
	Key(key string, at []string) string
	// Text returns the value for the value text.
	Text(text string, at []string) any
	// SameKeys is called if several keys of a mapping have become the same.
	SameKeys(key string, at []string)
}

// Copy returns a copy of decoded JSON with its texts replaced.
func Copy(v any, r Replacer) any { return copyOf(v, nil, r) }

func copyOf(v any, at []string, r Replacer) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			name := r.Key(key, at)
			if _, twice := out[name]; twice {
				r.SameKeys(name, at)
			}
			out[name] = copyOf(v[key], append(at[:len(at):len(at)], key), r)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = copyOf(item, append(at[:len(at):len(at)], strconv.Itoa(i)), r)
		}
		return out
	case string:
		return r.Text(v, at)
	}
	return v
}
