package api

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// IDs are ordered as their fields are, one after the other.
func TestIDsAreOrderedByTheirFields(t *testing.T) {
	field := rapid.SampledFrom([]string{"", "a", "ab", "b"})
	id := rapid.Custom(func(t *rapid.T) ID {
		return ID{Group: field.Draw(t, "group"), Kind: field.Draw(t, "kind"), Namespace: field.Draw(t, "namespace"), Name: field.Draw(t, "name")}
	})
	fields := func(id ID) []string { return []string{id.Group, id.Kind, id.Namespace, id.Name} }
	rapid.Check(t, func(t *rapid.T) {
		a, b := id.Draw(t, "a"), id.Draw(t, "b")
		if got, want := a.Compare(b), slices.Compare(fields(a), fields(b)); got != want {
			t.Errorf("%+v against %+v: %d, want %d", a, b, got, want)
		}
	})
}
