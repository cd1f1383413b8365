package schema

import (
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// DidYouMean returns the end of a message about an unknown word: the most similar known word,
// or all known words.
func DidYouMean(word string, known []string) string {
	if best := api.Closest(word, known); best != "" {
		return "did you mean " + best + "?"
	}
	return "known here: " + strings.Join(known, ", ")
}
