package work

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// hashOf returns the hash of a content. Refused objects are part of it, since a cluster reports
// them as failed.
func hashOf(manifests []*Manifest, refused []Refused) string {
	h := sha256.New()
	for _, m := range manifests {
		writeManifest(h, m)
	}
	for _, r := range refused {
		writeField(h, r.Reason)
		writeManifest(h, r.Manifest)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// hashOfError returns the hash that stands for content that cannot be rendered.
func hashOfError(err error) string {
	h := sha256.New()
	writeField(h, "cannot be rendered")
	writeField(h, err.Error())
	return hex.EncodeToString(h.Sum(nil))
}

func writeManifest(h hash.Hash, m *Manifest) {
	id := m.ID
	for _, s := range []string{id.Group, m.Object.Content.GroupVersionKind().Version, id.Kind, id.Namespace, id.Name, m.Hash} {
		writeField(h, s)
	}
	if e := m.Envelope; e != nil {
		for _, s := range []string{string(e.Type), e.Namespace, e.Name} {
			writeField(h, s)
		}
	}
	writeField(h, "")
}

// writeField ends each string with a byte that no string contains.
func writeField(h hash.Hash, s string) {
	io.WriteString(h, s) // a hash never returns an error
	h.Write([]byte{0})
}

// hashObject returns the hash as in api.Object.
func hashObject(u *unstructured.Unstructured, key []byte) (string, error) {
	hash, err := api.HashOf(u.Object, key)
	if err != nil {
		return "", fmt.Errorf("encode %s %q: %w", u.GetKind(), u.GetName(), err)
	}
	return hash, nil
}
