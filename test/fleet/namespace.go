package fleet

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"
)

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// Namespace returns a name for a namespace, made from the name of the test, that
// no other call returns. It creates nothing.
func Namespace(t testing.TB) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	random := make([]byte, 3)
	rand.Read(random) // never fails, by its documentation
	return strings.TrimRight(name[:min(len(name), 48)], "-") + "-" + hex.EncodeToString(random)
}
