package e2e

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/test/checkout"
)

// An image is the built container image, unpacked.
type image struct {
	root   string // a directory with its files
	config struct {
		User            string
		Env, Entrypoint []string
	}
}

// builtImage builds the image and unpacks it.
func builtImage(t *testing.T) *image {
	t.Helper()
	archive, err := checkout.Image(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	layout, i := t.TempDir(), &image{root: t.TempDir()}
	unpackTar(t, archive, false, layout)
	blob := func(digest string) string {
		return filepath.Join(layout, "blobs", strings.Replace(digest, ":", "/", 1))
	}
	// The archive names an index, that names one manifest, and that the configuration and layers.
	type descriptor struct{ Digest string }
	var manifest struct {
		Manifests, Layers []descriptor
		Config            descriptor
	}
	read := func(file string, into any) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for file := filepath.Join(layout, "index.json"); file != ""; {
		manifest.Manifests = nil
		read(file, &manifest)
		file = ""
		if len(manifest.Manifests) > 0 {
			file = blob(manifest.Manifests[0].Digest)
		}
	}
	read(blob(manifest.Config.Digest), &struct{ Config any }{&i.config})
	for _, l := range manifest.Layers {
		unpackTar(t, blob(l.Digest), true, i.root)
	}
	return i
}

// unpackTar unpacks directories and files, with their modes.
func unpackTar(t *testing.T, file string, compressed bool, dir string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := io.Reader(f)
	if compressed {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	r := tar.NewReader(in)
	for h, err := r.Next(); !errors.Is(err, io.EOF); h, err = r.Next() {
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(path.Clean(h.Name)))
		if h.FileInfo().IsDir() {
			err = os.MkdirAll(to, h.FileInfo().Mode().Perm())
		} else {
			var out *os.File
			if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil {
				out, err = os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, h.FileInfo().Mode().Perm())
			}
			if err == nil {
				_, err = io.Copy(out, r)
				err = errors.Join(err, out.Close())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// linkTo makes the files of the image those of another directory as well.
func (i *image) linkTo(root string) error {
	return filepath.WalkDir(i.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == i.root {
			return err
		}
		within, err := filepath.Rel(i.root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.Mkdir(filepath.Join(root, within), 0o755)
		}
		return os.Link(path, filepath.Join(root, within))
	})
}

// program returns the path of the entrypoint within the image.
func (i *image) program() string {
	for _, e := range i.config.Env {
		list, found := strings.CutPrefix(e, "PATH=")
		if !found {
			continue
		}
		for dir := range strings.SplitSeq(list, ":") {
			if program := path.Join(dir, i.config.Entrypoint[0]); exists(filepath.Join(i.root, program)) {
				return program
			}
		}
	}
	return i.config.Entrypoint[0]
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
