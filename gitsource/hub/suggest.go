package hub

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// didYouMean returns the end of a message about an unknown word: the most similar known word, or
// all of them.
func didYouMean(word string, known []string) string {
	if best := api.Closest(word, known); best != "" {
		return "did you mean " + best + "?"
	}
	return "known here: " + strings.Join(known, ", ")
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
