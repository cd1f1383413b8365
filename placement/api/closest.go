package api

import "strings"

// Closest returns the known word that is most similar to a word, to suggest it for an unknown
// one; empty if none is similar. Of a short word only one letter may differ.
func Closest(word string, known []string) string {
	differ := max(2, len(word)/3)
	if len(word) < 5 {
		differ = min(1, len(word)-1)
	}
	best, distance := "", differ+1
	for _, k := range known {
		if len(k)-len(word) >= distance || len(word)-len(k) >= distance {
			continue
		}
		if d := editDistance(strings.ToLower(word), strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	return best
}

// DidYouMean returns the end of a message about an unknown word for which another one was probably meant.
func DidYouMean(word string) string { return "did you mean " + word + "?" }

// Suggest returns the end of a message about an unknown word: the most similar known word, or fix if none is similar.
func Suggest(word string, known []string, fix string) string {
	if best := Closest(word, known); best != "" {
		return DidYouMean(best)
	}
	return fix
}

// editDistance counts the letters to insert, delete, replace or swap.
func editDistance(a, b string) int {
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			changed := 1
			if a[i] == b[j] {
				changed = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+changed)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
