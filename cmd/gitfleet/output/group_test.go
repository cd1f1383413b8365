package output

import (
	"fmt"
	"testing"
)

// Groups are in the order of their first items, and their items in the order that they had.
func TestGroupBy(t *testing.T) {
	for want, words := range map[string][]string{
		"[]":                          nil,
		"[{a [a]}]":                   {"a"},
		"[{b [b bee]} {a [ant ape]}]": {"b", "ant", "bee", "ape"},
	} {
		if got := fmt.Sprint(GroupBy(words, func(w string) string { return w[:1] })); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
}
