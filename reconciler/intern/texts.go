// Package intern makes equal values share memory.
package intern

// Texts are texts that many records have, such as hashes, commits and reasons. Records that share them take less memory.
// The zero value is not usable; a map is.
type Texts map[string]string

// maxTexts limits how many texts are kept. Beyond it they are forgotten, and shared anew.
const maxTexts = 1 << 16

// Share makes texts refer to the memory of equal ones that were shared before.
func (t Texts) Share(texts ...*string) {
	for _, s := range texts {
		if *s == "" {
			continue
		}
		known, found := t[*s]
		if !found {
			if len(t) >= maxTexts {
				clear(t)
			}
			known, t[*s] = *s, *s
		}
		*s = known
	}
}
