package api

import (
	"fmt"
	"strings"
)

var escapes, unescapes = strings.NewReplacer("~", "~0", "/", "~1"), strings.NewReplacer("~0", "~", "~1", "/")

// EscapeKey returns a key as it is written in a JSON pointer.
func EscapeKey(key string) string { return escapes.Replace(key) }

// SplitPointer returns the keys of a JSON pointer, unescaped.
func SplitPointer(pointer string) []string {
	keys := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, key := range keys {
		keys[i] = unescapes.Replace(key)
	}
	return keys
}

// Pointers parses JSON pointers that are separated by commas or white space. It returns all
// valid pointers, and an error if any is invalid.
func Pointers(text string) ([]string, error) {
	var pointers, wrong []string
	for _, p := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		if strings.HasPrefix(p, "/") && len(p) > 1 {
			pointers = append(pointers, p)
		} else {
			wrong = append(wrong, p)
		}
	}
	if wrong != nil {
		return pointers, fmt.Errorf("%q is no JSON pointer to a field; write for example /spec/replicas", wrong)
	}
	return pointers, nil
}
