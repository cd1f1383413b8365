package diff

import (
	"crypto/sha256"
	"encoding/hex"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ApplyHash returns the lower-case hex SHA-256 of the fields that a manager
// owns by server-side apply, or "" if it owns none. The API server rewrites
// them whenever someone else changes or removes one of their values, and
// leaves them alone when others only add fields of their own or write a
// subresource: as long as the hash is the one that our last apply returned,
// nobody has touched what we applied.
func ApplyHash(entries []metav1.ManagedFieldsEntry, manager string) string {
	for i := range entries {
		e := &entries[i]
		if applied(e, manager) && e.FieldsV1 != nil {
			sum := sha256.Sum256(e.FieldsV1.GetRawBytes())
			return hex.EncodeToString(sum[:])
		}
	}
	return ""
}

// applied reports whether an entry is what the manager applied. There is at
// most one, whatever the version it applied in.
func applied(e *metav1.ManagedFieldsEntry, manager string) bool {
	return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}
