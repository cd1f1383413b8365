package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	oci "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// build compiles a small program.
func build(t *testing.T, env ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/small\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", "small", ".")
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOFLAGS="), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "small")
}

// unpack reads the index of an archive.
func unpack(t *testing.T, archive string) oci.ImageIndex {
	t.Helper()
	dir := t.TempDir()
	content, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(bytes.NewReader(content))
	for h, err := r.Next(); !errors.Is(err, io.EOF); h, err = r.Next() {
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, h.Name)
		text, err := io.ReadAll(r)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "gitfleet:v1.2.3" {
		t.Fatalf("the archive holds %+v", manifest.Manifests)
	}
	index, err := all.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// files returns the files of an image, each with its mode, owner and path, and their content by
// path.
func files(t *testing.T, img oci.Image) (list []string, content map[string][]byte) {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content = map[string][]byte{}
	for _, l := range layers {
		open, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		r := tar.NewReader(open)
		for h, err := r.Next(); !errors.Is(err, io.EOF); h, err = r.Next() {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, fmt.Sprintf("%s %d:%d %s", h.FileInfo().Mode(), h.Uid, h.Gid, h.Name))
			if content[h.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.Sort(list)
	return list, content
}

// The archive has a valid image for each binary, with nothing but the binary, the certificates,
// the name of its user and its directories. It is the same each time.
func TestImage(t *testing.T) {
	amd64, arm64 := build(t, "GOARCH=amd64"), build(t, "GOARCH=arm64")
	archive := filepath.Join(t.TempDir(), "image.tar")
	notices := filepath.Join(t.TempDir(), "notices")
	if err := os.WriteFile(notices, []byte("notices"), 0o600); err != nil {
		t.Fatal(err)
	}
	var texts [2]bytes.Buffer
	var archives [2][]byte
	for i := range texts {
		if err := run([]string{archive, "v1.2.3", "1790000000", notices, amd64, arm64}, &texts[i]); err != nil {
			t.Fatal(err)
		}
		var err error
		if archives[i], err = os.ReadFile(archive); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) || !bytes.Equal(texts[0].Bytes(), texts[1].Bytes()) {
		t.Error("it is another each time")
	}
	if left, err := os.ReadDir(filepath.Dir(archive)); err != nil || len(left) != 1 {
		t.Errorf("beside the archive there is %v, %v", left, err)
	}
	index := unpack(t, archive)
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ arch, binary string }{{"amd64", amd64}, {"arm64", arm64}} {
		if p := manifest.Manifests[i].Platform; p.String() != "linux/"+want.arch {
			t.Errorf("image %d is for %s", i, p)
		}
		img, err := index.Image(manifest.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		list, content := files(t, img)
		if got := strings.Join(list, "\n"); got != `-rw-r--r-- 0:0 etc/passwd
-rw-r--r-- 0:0 etc/ssl/certs/ca-certificates.crt
-rw-r--r-- 0:0 usr/share/doc/gitfleet/THIRD_PARTY_NOTICES
-rwxr-xr-x 0:0 usr/local/bin/gitfleet
drwxr-xr-x 0:0 etc/
drwxr-xr-x 0:0 etc/ssl/
drwxr-xr-x 0:0 etc/ssl/certs/
drwxr-xr-x 0:0 usr/
drwxr-xr-x 0:0 usr/local/
drwxr-xr-x 0:0 usr/local/bin/
drwxr-xr-x 0:0 usr/share/
drwxr-xr-x 0:0 usr/share/doc/
drwxr-xr-x 0:0 usr/share/doc/gitfleet/
drwxr-xr-x 0:0 var/
drwxr-xr-x 0:0 var/lib/
drwxr-xr-x 65532:65532 tmp/
drwxr-xr-x 65532:65532 var/lib/gitfleet/` {
			t.Errorf("it has\n%s", got)
		}
		if binary, err := os.ReadFile(want.binary); err != nil || !bytes.Equal(content["usr/local/bin/gitfleet"], binary) {
			t.Errorf("the binary is another: %v", err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(content["etc/ssl/certs/ca-certificates.crt"]) || bytes.Count(content["etc/ssl/certs/ca-certificates.crt"], []byte("BEGIN CERTIFICATE")) < 100 {
			t.Error("the certificates are missing")
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.OS != "linux" || config.Architecture != want.arch || !config.Created.Equal(time.Unix(1790000000, 0)) || config.Config.Labels["org.opencontainers.image.version"] != "v1.2.3" {
			t.Errorf("it is configured as %+v", config)
		}
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	var bom cyclonedx.BOM
	if err := json.Unmarshal(texts[0].Bytes(), &bom); err != nil || (*bom.Metadata.Component.Hashes)[0].Value != digest.Hex || !strings.Contains(texts[0].String(), "pkg:golang/golang.org/x/crypto/x509roots/fallback@v") {
		t.Errorf("the bill, %v, is of another image:\n%s", err, texts[0].String())
	}
	if err := run([]string{archive, "v1.2.3", "1790000000", notices, build(t, "GOOS=darwin")}, io.Discard); err == nil || !strings.Contains(err.Error(), "static binary for Linux") {
		t.Errorf("an image with a binary for macOS: %v", err)
	}
}
