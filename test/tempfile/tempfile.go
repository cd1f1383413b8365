// Package tempfile writes files for tests, in temporary directories.
package tempfile

import (
	"os"
	"path/filepath"
	"testing"

	certutil "k8s.io/client-go/util/cert"
)

// Write writes a file that only its owner may read, and returns its path.
func Write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Certificate writes a self-signed certificate and its key, and returns their paths.
func Certificate(t *testing.T) (cert, key string) {
	t.Helper()
	certPEM, keyPEM, err := certutil.GenerateSelfSignedCertKey("somebody", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Write(t, "client.crt", string(certPEM)), Write(t, "client.key", string(keyPEM))
}
