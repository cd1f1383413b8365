package diff

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ApplyHash returns the SHA-256, in lower-case hexadecimal digits, of the fields that a manager
// owns by server-side apply; "" if it owns none. The API server rewrites these fields whenever
// somebody else changes or removes one of their values, also through the scale subresource, but
// not when others only add fields or write a status. So while the hash is that of the last apply,
// nobody with another manager name has changed the applied fields. The order in which a decoder
// returns the fields does not matter.
func ApplyHash(entries []metav1.ManagedFieldsEntry, manager string) string {
	if e := entryOf(entries, manager); e != nil && e.FieldsV1 != nil {
		return hashOfFields(CanonicalFields(e.FieldsV1))
	}
	return ""
}

func hashOfFields(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// maxTaken bounds the fields that Taken considers, since it tries all of their subsets.
const maxTaken = 10

// Taken returns the fields that a manager has owned by server-side apply when its ApplyHash was hash, and that others have
// changed and own since: those that make up the fields of that hash together with what the manager still owns. nil if there
// are none, or if that cannot be found out, such as after a field was deleted.
func Taken(entries []metav1.ManagedFieldsEntry, manager, hash string) *fieldpath.Set {
	own := entryOf(entries, manager)
	if own == nil || hash == "" {
		return nil
	}
	ours, theirs := fieldsOf(own), fieldpath.NewSet()
	for i := range entries {
		if e := &entries[i]; !applied(e, manager) && !byContract(e) {
			theirs = theirs.Union(fieldsOf(e).Leaves())
		}
	}
	var candidates []fieldpath.Path
	theirs.Iterate(func(path fieldpath.Path) {
		if !ours.Has(path) && inItemsOf(ours, path) {
			candidates = append(candidates, slices.Clone(path))
		}
	})
	for n := 1; len(candidates) <= maxTaken && n < 1<<len(candidates); n++ {
		taken := fieldpath.NewSet()
		for i, path := range candidates {
			if n&(1<<i) != 0 {
				taken.Insert(path)
			}
		}
		if raw, err := ours.Union(taken).ToJSON(); err == nil && hashOfFields(raw) == hash {
			return taken
		}
	}
	return nil
}

// inItemsOf reports whether a set has all list items that a path is in.
func inItemsOf(set *fieldpath.Set, path fieldpath.Path) bool {
	for n, e := range path {
		if e.FieldName == nil && !set.Has(path[:n+1]) {
			return false
		}
	}
	return true
}

// AppliesReplicas reports whether a manager owns spec.replicas by server-side apply. It reads no
// further than that, since it is asked about every observed object.
func AppliesReplicas(entries []metav1.ManagedFieldsEntry, manager string) bool {
	e := entryOf(entries, manager)
	if e == nil || e.FieldsV1 == nil {
		return false
	}
	raw := e.FieldsV1.GetRawBytes()
	return bytes.Contains(raw, []byte(`"f:replicas"`)) && ownsField(raw, "f:spec", "f:replicas")
}

// ownsField reports whether the JSON of a field set has a field, by the path of its names, or anything
// below it.
func ownsField(raw []byte, path ...string) bool {
	dec := json.NewDecoder(bytes.NewReader(raw))
	for _, name := range path {
		if t, err := dec.Token(); err != nil || t != json.Delim('{') {
			return false
		}
		for {
			t, err := dec.Token()
			if key, ok := t.(string); err != nil || !ok {
				return false // the end of the object
			} else if key == name {
				break
			}
			var skipped json.RawMessage
			if dec.Decode(&skipped) != nil {
				return false
			}
		}
	}
	return true
}

// CanonicalFields returns the JSON of a field set in the API server's order: list items sorted
// by the values of their keys, numbers numerically. A decoder that uses a Go map sorts them as
// text instead, so that port 443 comes before port 80. An invalid field set is returned
// unchanged. The result must not be modified.
func CanonicalFields(f *metav1.FieldsV1) []byte {
	raw := f.GetRawBytes()
	if !ordersItems(raw) {
		return raw // field names sort equally in both orders
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

// ordersItems reports whether the JSON of a field set may have list items by key, value or
// index, or escapes. Most objects have none, and so need no parsing.
func ordersItems(raw []byte) bool {
	return bytes.ContainsRune(raw, '\\') || bytes.Contains(raw, []byte(`"v:`)) || bytes.Contains(raw, []byte(`"i:`))
}

// AppliedAt returns when a manager last changed an object by server-side apply, in whole
// seconds; zero if it never did. An apply that changes nothing does not change the time.
func AppliedAt(entries []metav1.ManagedFieldsEntry, manager string) time.Time {
	if e := entryOf(entries, manager); e != nil && e.Time != nil {
		return e.Time.Time
	}
	return time.Time{}
}
