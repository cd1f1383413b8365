package api

import (
	"fmt"
	"strings"
)

// Pointers reads JSON pointers that are separated by commas or white space. What
// is no pointer to a field is an error, and the good ones are returned all the
// same.
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
