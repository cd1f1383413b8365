package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	oci "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/gitfleet/gitfleet/.ci/tools/bill"
)

const (
	name = "gitfleet"
	user = 65532
	// passwd is /etc/passwd: the name and the home directory of the user.
	passwd = "gitfleet:x:65532:65532:gitfleet:/var/lib/gitfleet:/sbin/nologin\n"
)

// A file of the image. Its parents belong to root.
type file struct {
	path    string
	mode    fs.FileMode // with fs.ModeDir for a directory
	owner   int
	content []byte
}

// configuration returns how the image is run.
func configuration() oci.Config {
	id := strconv.Itoa(user) + ":" + strconv.Itoa(user)
	return oci.Config{
		User:         id,
		Env:          []string{"PATH=/usr/local/bin"},
		ExposedPorts: map[string]struct{}{"8443/tcp": {}},
		Volumes:      map[string]struct{}{"/var/lib/gitfleet": {}},
		Entrypoint:   []string{"gitfleet"},
		Cmd:          []string{"run", "--config", "/etc/gitfleet/config/gitfleet.yaml"},
		WorkingDir:   "/",
	}
}

// common returns what the images of all platforms have besides the binary.
func common(at time.Time, notices []byte) []file {
	return []file{
		{path: "etc", mode: fs.ModeDir | 0o755},
		{path: "etc/passwd", mode: 0o644, content: []byte(passwd)},
		{path: "etc/ssl", mode: fs.ModeDir | 0o755},
		{path: "etc/ssl/certs", mode: fs.ModeDir | 0o755},
		{path: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: certificates(at)},
		{path: "tmp", mode: fs.ModeDir | 0o755, owner: user},
		{path: "usr", mode: fs.ModeDir | 0o755},
		{path: "usr/share", mode: fs.ModeDir | 0o755},
		{path: "usr/share/doc", mode: fs.ModeDir | 0o755},
		{path: "usr/share/doc/gitfleet", mode: fs.ModeDir | 0o755},
		{path: "usr/share/doc/gitfleet/THIRD_PARTY_NOTICES", mode: 0o644, content: notices},
		{path: "var", mode: fs.ModeDir | 0o755},
		{path: "var/lib", mode: fs.ModeDir | 0o755},
		{path: "var/lib/gitfleet", mode: fs.ModeDir | 0o755, owner: user},
	}
}

// program returns what the image of one platform has.
func program(binary []byte) []file {
	return []file{
		{path: "usr/local", mode: fs.ModeDir | 0o755},
		{path: "usr/local/bin", mode: fs.ModeDir | 0o755},
		{path: "usr/local/bin/gitfleet", mode: 0o755, content: binary},
	}
}

// longestValidity is how long a certificate of a public authority may be valid.
const longestValidity = 398 * 24 * time.Hour

// certificates returns the roots of Mozilla in PEM. A root that is trusted only for certificates
// issued before some day is left out once all of those have expired.
func certificates(at time.Time) []byte {
	var out bytes.Buffer
	oldest := []*x509.Certificate{{NotBefore: at.Add(-longestValidity)}}
	for root := range bundle.Roots() {
		if root.Constraint == nil || root.Constraint(oldest) == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer has no errors
		}
	}
	return out.Bytes()
}

// indexOf returns the index of the images, one for each binary.
func indexOf(version string, at time.Time, notices []byte, paths []string, binaries []*bill.Binary) (oci.ImageIndex, error) {
	shared, err := layerOf(at, common(at, notices))
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, b := range binaries {
		if b.Setting("GOOS") != "linux" || b.Setting("CGO_ENABLED") != "0" {
			return nil, fmt.Errorf("%s: an image needs a static binary for Linux, and GOOS is %q and CGO_ENABLED %q", paths[i], b.Setting("GOOS"), b.Setting("CGO_ENABLED"))
		}
		content, err := os.ReadFile(paths[i])
		if err != nil {
			return nil, err
		}
		own, err := layerOf(at, program(content))
		if err != nil {
			return nil, err
		}
		img, err := imageOf(version, at, b, shared, own)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: oci.Descriptor{Platform: &oci.Platform{OS: "linux", Architecture: b.Setting("GOARCH")}},
		})
	}
	return index, nil
}

func imageOf(version string, at time.Time, b *bill.Binary, layers ...oci.Layer) (oci.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, l := range layers {
		var err error
		if img, err = mutate.Append(img, mutate.Addendum{Layer: l, History: oci.History{Created: oci.Time{Time: at}, CreatedBy: "make image"}}); err != nil {
			return nil, err
		}
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created, config.Config = "linux", b.Setting("GOARCH"), oci.Time{Time: at}, configuration()
	config.Config.Labels = map[string]string{
		"org.opencontainers.image.title": name, "org.opencontainers.image.version": version,
		"org.opencontainers.image.source": "https://github.com/gitfleet/gitfleet", "org.opencontainers.image.licenses": "Apache-2.0",
	}
	if revision := b.Setting("vcs.revision"); revision != "" {
		config.Config.Labels["org.opencontainers.image.revision"] = revision
	}
	return mutate.ConfigFile(img, config)
}

// layerOf returns a layer with files, whose parents come before them.
func layerOf(at time.Time, files []file) (oci.Layer, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{Name: f.path, Typeflag: tar.TypeReg, Mode: int64(f.mode.Perm()), Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)), ModTime: at}
		if f.mode.IsDir() {
			header.Name, header.Typeflag = f.path+"/", tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression))
}

// writeArchive writes an index as a tar archive of its layout.
func writeArchive(path string, index oci.ImageIndex, version string, at time.Time) (err error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), "layout-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	all, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := all.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": name + ":" + version})); err != nil {
		return err
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w := tar.NewWriter(out)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		within, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: within, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content)), ModTime: at}); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	return errors.Join(err, w.Close())
}
