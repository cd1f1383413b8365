package hub

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// A memoryTree is the tree of a commit as Git stores it, with content by hash.
type memoryTree struct {
	files map[string][]byte
	dirs  map[string][]fs.DirEntry
	hash  map[string]string
	// reads counts the files that were read.
	reads int
}

func newMemoryTree(files map[string]string) *memoryTree {
	m := &memoryTree{files: map[string][]byte{}, dirs: map[string][]fs.DirEntry{".": nil}, hash: map[string]string{}}
	names := map[string]map[string]bool{".": {}}
	for name, text := range files {
		m.files[name] = []byte(text)
		m.hash[name] = sum(text)
		for child := name; child != "."; child = path.Dir(child) {
			dir := path.Dir(child)
			if names[dir] == nil {
				names[dir] = map[string]bool{}
			}
			names[dir][child] = true
		}
	}
	m.list(".", names)
	return m
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:20])
}

func (m *memoryTree) list(dir string, names map[string]map[string]bool) {
	var all strings.Builder
	for _, child := range slices.Sorted(maps.Keys(names[dir])) {
		if names[child] != nil {
			m.list(child, names)
		}
		info, _ := m.Stat(child)
		m.dirs[dir] = append(m.dirs[dir], fs.FileInfoToDirEntry(info))
		fmt.Fprintln(&all, child, m.hash[child])
	}
	m.hash[dir] = sum(all.String())
}

func (m *memoryTree) Hash(name string) (string, error) {
	return m.hash[name], nil
}

func (m *memoryTree) ReadDir(name string) ([]fs.DirEntry, error) {
	return slices.Clone(m.dirs[name]), nil
}

func (m *memoryTree) Stat(name string) (fs.FileInfo, error) {
	data, isFile := m.files[name]
	return memoryInfo{path.Base(name), int64(len(data)), !isFile}, nil
}

func (m *memoryTree) Open(name string) (fs.File, error) {
	m.reads++
	info, _ := m.Stat(name)
	return &memoryFile{bytes.NewReader(m.files[name]), info}, nil
}

type memoryFile struct {
	*bytes.Reader
	info fs.FileInfo
}

func (f *memoryFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *memoryFile) Close() error               { return nil }

type memoryInfo struct {
	name string
	size int64
	dir  bool
}

func (i memoryInfo) Name() string       { return i.name }
func (i memoryInfo) Size() int64        { return i.size }
func (i memoryInfo) ModTime() time.Time { return time.Time{} }
func (i memoryInfo) IsDir() bool        { return i.dir }
func (i memoryInfo) Sys() any           { return nil }
func (i memoryInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// manyFiles returns n manifests of about 1 KiB in directories of 50.
func manyFiles(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("apps/team-%03d/object-%05d.yaml", i/50, i)] = manifest(i, 0)
	}
	return files
}

func manifest(i, version int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: object-%05d
  namespace: team-%03d
  labels:
    app.kubernetes.io/name: object-%05d
    app.kubernetes.io/part-of: team-%03d
  annotations:
    example.com/version: "%d"
spec:
  replicas: 2
  selector:
    matchLabels:
      app.kubernetes.io/name: object-%05d
  template:
    metadata:
      labels:
        app.kubernetes.io/name: object-%05d
        app.kubernetes.io/part-of: team-%03d
    spec:
      containers:
      - name: main
        image: registry.example.com/team-%03d/object-%05d:1.%d.0
        args: ["--listen=:8080", "--log-level=info", "--queue=orders"]
        ports:
        - name: http
          containerPort: 8080
        resources:
          requests: {cpu: 50m, memory: 64Mi}
          limits: {cpu: "1", memory: 256Mi}
        env:
        - name: REGION
          value: west
        - name: MODE
          value: production
`, i, i/50, i, i/50, version, i, i, i/50, i/50, i, version)
}

// commits returns a number of commits of n files; each differs from the one before in one file.
func commits(n, count int) []*memoryTree {
	files := manyFiles(n)
	var trees []*memoryTree
	for version := range count {
		files["apps/team-001/object-00077.yaml"] = manifest(77, version)
		trees = append(trees, newMemoryTree(files))
	}
	return trees
}

func BenchmarkColdLoad(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 50_000} {
		tree := newMemoryTree(manyFiles(n))
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var l *Loader
			for b.Loop() {
				l = NewLoader(Options{Limits: Limits{Files: 2 * n}})
				if _, err := l.Load(Commit{}, tree); err != nil {
					b.Fatal(err)
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB-held")
			runtime.KeepAlive(l)
		})
	}
}

// BenchmarkPlainYAML is the baseline for the first load: it only parses the same files with the
// YAML library.
func BenchmarkPlainYAML(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		tree := newMemoryTree(manyFiles(n))
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for name := range tree.files {
					f, _ := tree.Open(name)
					data, _ := io.ReadAll(f)
					var v map[string]any
					if err := yaml.Unmarshal(data, &v); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkOneFileCommit(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 50_000} {
		// more commits than the loader caches, so that each load parses one file
		trees := commits(n, 4)
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			l := NewLoader(Options{})
			if _, err := l.Load(Commit{}, trees[0]); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 1; b.Loop(); i++ {
				if _, err := l.Load(Commit{}, trees[i%len(trees)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkKustomization measures the build of an overlay of 100 resources, and a second load
// of the same files.
func BenchmarkKustomization(b *testing.B) {
	files := map[string]string{"overlay/kustomization.yaml": "namespace: web\nnamePrefix: prod-\nresources: [../base]\n"}
	var list strings.Builder
	for i := range 100 {
		name := fmt.Sprintf("object-%03d.yaml", i)
		files["base/"+name] = manifest(i, 0)
		list.WriteString("- " + name + "\n")
	}
	files["base/kustomization.yaml"] = "resources:\n" + list.String()
	var trees []*memoryTree
	for i := range 4 {
		files["other.yaml"] = fmt.Sprintf(namespaceText, fmt.Sprint("ns-", i))
		trees = append(trees, newMemoryTree(files))
	}
	b.Run("built", func(b *testing.B) {
		for b.Loop() {
			if _, err := load(Commit{}, trees[0], Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		l := NewLoader(Options{})
		for i := 0; b.Loop(); i++ {
			if _, err := l.Load(Commit{}, trees[i%len(trees)]); err != nil {
				b.Fatal(err)
			}
		}
		if l.built != 1 {
			b.Fatalf("built %d times", l.built)
		}
	})
}
