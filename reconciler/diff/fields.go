package diff

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ApplyHash returns the lower-case hex SHA-256 of the fields that a manager
// owns by server-side apply, or "" if it owns none. The API server rewrites
// them whenever someone else changes or removes one of their values, and
// leaves them alone when others only add fields of their own or write a
// subresource: as long as the hash is the one that our last apply returned,
// nobody has touched what we applied under a name of his own. The order in which
// a decoder leaves the fields does not matter.
func ApplyHash(entries []metav1.ManagedFieldsEntry, manager string) string {
	if e := entryOf(entries, manager); e != nil && e.FieldsV1 != nil {
		sum := sha256.Sum256(CanonicalFields(e.FieldsV1))
		return hex.EncodeToString(sum[:])
	}
	return ""
}

// CanonicalFields returns the JSON of a set of fields in the order in which an
// API server writes it: items of a list by the values of their keys, numbers
// before larger numbers. A decoder that goes through a Go map leaves them in the
// order of their text instead, so that port 443 comes before port 80. A
// field set that cannot be parsed is returned unchanged. Callers must not modify the
// result.
func CanonicalFields(f *metav1.FieldsV1) []byte {
	raw := f.GetRawBytes()
	if !ordersItems(raw) {
		return raw // names of fields are in the same order either way
	}
	set := fieldpath.NewSet()
	if set.FromJSON(bytes.NewReader(raw)) != nil {
		return raw
	}
	canonical, err := set.ToJSON()
	if err != nil {
		return raw
	}
	return canonical
}

// ordersItems reports whether the JSON of a set of fields may name items of
// lists by key, value or index, or escapes anything. Most objects do none of it,
// and are spared the parsing.
func ordersItems(raw []byte) bool {
	return bytes.ContainsRune(raw, '\\') || bytes.Contains(raw, []byte(`"v:`)) || bytes.Contains(raw, []byte(`"i:`))
}

// AppliedAt returns when a manager last changed an object by server-side apply,
// to the second; zero if it never did. An apply that changes nothing leaves the
// time as it is.
func AppliedAt(entries []metav1.ManagedFieldsEntry, manager string) time.Time {
	if e := entryOf(entries, manager); e != nil && e.Time != nil {
		return e.Time.Time
	}
	return time.Time{}
}

// entryOf returns what a manager applied; nil if nothing.
func entryOf(entries []metav1.ManagedFieldsEntry, manager string) *metav1.ManagedFieldsEntry {
	for i := range entries {
		if applied(&entries[i], manager) {
			return &entries[i]
		}
	}
	return nil
}

// applied reports whether an entry is what the manager applied. There is at
// most one, whatever the version it applied in.
func applied(e *metav1.ManagedFieldsEntry, manager string) bool {
	return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}
