package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// allocated returns how many MiB a function allocates, including memory that was freed again.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / mib
}

// aliased returns a manifest of some 13 KB that is 95 times as large after its aliases are
// expanded.
func aliased(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: example.com/v1\nkind: Bomb\nmetadata: {name: %s, namespace: a}\nspec:\n  base: &b {", name)
	for i := range 600 {
		fmt.Fprintf(&b, "key-%04d: value-%04d, ", i, i)
	}
	b.WriteString("}\n  list: [" + strings.Repeat("*b, ", 94) + "]\n")
	return b.String()
}

// Repositories that are small in Git but would be very large in memory are refused before they
// are read completely, with the position at which the limit was exceeded.
func TestTheMemoryOfACommitIsBounded(t *testing.T) {
	aliases, overlays, largeBase := map[string]string{}, map[string]string{}, map[string]string{}
	for i := range 2500 {
		aliases[fmt.Sprintf("a/%04d.yaml", i)] = aliased(fmt.Sprintf("b%04d", i))
	}
	var base strings.Builder
	for i := range 100 {
		fmt.Fprintf(&base, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d, namespace: a}\ndata: {a: b}\n---\n", i)
	}
	overlays["base/kustomization.yaml"], overlays["base/all.yaml"] = "resources: [all.yaml]\n", base.String()
	for i := range 1500 {
		overlays[fmt.Sprintf("overlays/%04d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../../base]\nnamePrefix: p%d-\n", i)
	}
	largeBase["base/kustomization.yaml"], largeBase["base/all.yaml"] = "resources: [all.yaml]\n", base.String()
	below := "../base"
	for level := range 4 {
		var names []string
		for i := range 4 {
			name := fmt.Sprintf("l%d-%d", level, i)
			largeBase[name+"/kustomization.yaml"] = fmt.Sprintf("resources: [%s]\nnamePrefix: p%d-\n", below, i)
			names = append(names, "../"+name)
		}
		below = strings.Join(names, ", ")
	}
	largeBase["all/kustomization.yaml"] = "resources: [" + below + "]\n"
	kustomizations := map[string]string{}
	for i := range 2500 {
		kustomizations[fmt.Sprintf("k/%04d/kustomization.yaml", i)] = "configMapGenerator:\n- &g\n  name: a\n  literals: &l [" + strings.Repeat("a=b, ", 800) + "]\n" + strings.Repeat("- {name: b, literals: *l}\n", 90)
	}
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"aliases":                {aliases, "up to here the objects of the commit take more than 8 MiB of memory"},
		"overlays of one base":   {overlays, "up to here the objects of the commit take more than 8 MiB of memory"},
		"a base again and again": {largeBase, "all/kustomization.yaml: the build reads more than 2 MiB"},
		"kustomizations":         {kustomizations, "up to here the objects of the commit take more than 8 MiB of memory"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tree := newMemoryTree(test.files)
			var err error
			took := allocated(func() {
				_, err = load(Commit{}, tree, Options{Limits: Limits{CommitSize: 8 * mib, BuildInput: 2 * mib}})
			})
			problems := (*LoadError)(nil)
			if !errors.As(err, &problems) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%v, want %q", err, test.want)
			}
			if problems.Problems[0].Origin.Path == "" {
				t.Errorf("%v says no file", problems.Problems[0])
			}
			t.Logf("%d MiB", took)
			if took > 512 {
				t.Errorf("it took %d MiB", took)
			}
		})
	}
}

// Dashboards of more than 1 MiB, many of them in one list, load as plain files and in a
// kustomization: monitoring stacks have them.
func TestLargeDashboardsLoad(t *testing.T) {
	var list strings.Builder
	list.WriteString("apiVersion: v1\nkind: ConfigMapList\nitems:\n")
	for i := range 3 {
		fmt.Fprintf(&list, "- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: dashboard-%d, namespace: monitoring}\n  data:\n    dashboard.json: |-\n", i)
		for panel := range 12_000 {
			fmt.Fprintf(&list, "      {\"id\": %d, \"type\": \"timeseries\", \"title\": \"Panel %d\", \"datasource\": {\"uid\": \"$datasource\"}},\n", panel, panel)
		}
	}
	if n := list.Len(); n < 3*mib || n > 4*mib {
		t.Fatalf("the list has %d bytes", n)
	}
	for name, files := range map[string]map[string]string{
		"plain":         {"dashboards.yaml": list.String()},
		"kustomization": {"kustomization.yaml": "namePrefix: fleet-\nresources: [dashboards.yaml]\n", "dashboards.yaml": list.String()},
	} {
		t.Run(name, func(t *testing.T) {
			if s := mustLoad(t, NewLoader(Options{}), newMemoryTree(files)); len(s.Objects) != 3 {
				t.Errorf("%d objects", len(s.Objects))
			}
		})
	}
}

// The position at which a commit exceeds the limit does not depend on the order in which files
// were parsed.
func TestTooLargeIsReportedAtOnePosition(t *testing.T) {
	files := map[string]string{}
	for i := range 20 {
		files[fmt.Sprintf("%02d.yaml", i)] = aliased(fmt.Sprintf("b%d", i))
	}
	messages := map[string]bool{}
	for range 10 {
		_, err := load(Commit{}, newMemoryTree(files), Options{Limits: Limits{CommitSize: 16 * mib}})
		messages[fmt.Sprint(err)] = true
	}
	if len(messages) != 1 {
		t.Errorf("messages %v", messages)
	}
}

// The counted size of a commit is close to the memory that its objects take.
func TestSizeIsCloseToMemory(t *testing.T) {
	for name, text := range map[string]func(int) string{
		"aliases":     func(i int) string { return aliased(fmt.Sprintf("b%d", i)) },
		"deployments": func(i int) string { return manifest(i, 0) },
		"small maps": func(i int) string {
			return fmt.Sprintf("apiVersion: example.com/v1\nkind: A\nmetadata: {name: a%d, namespace: b}\nspec: [%s]\n", i, strings.Repeat("{a: b}, ", 2000))
		},
		"numbers": func(i int) string {
			return fmt.Sprintf("apiVersion: example.com/v1\nkind: A\nmetadata: {name: a%d, namespace: b}\nspec: [%s]\n", i, strings.Repeat("1234567, ", 2000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for i := range 10 {
				files[fmt.Sprintf("a/%04d.yaml", i)] = text(i)
			}
			tree := newMemoryTree(files)
			heap := func() int64 {
				runtime.GC()
				runtime.GC() // the first one keeps the buffers in pools
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return int64(m.HeapAlloc)
			}
			before := heap()
			l := NewLoader(Options{})
			s := mustLoad(t, l, tree)
			took := heap() - before
			var counted int64
			for _, p := range l.cache {
				counted += p.Size
			}
			t.Logf("%d KiB counted, %d KiB taken", counted/kib, took/kib)
			if counted < took/2 || counted > 4*took {
				t.Errorf("%d KiB are counted, and it takes %d KiB", counted/kib, took/kib)
			}
			runtime.KeepAlive(s)
		})
	}
}

// A repository of very many empty directories is refused soon. In Git it is small, since equal
// directories are stored once.
func TestDirectoriesCountAsFiles(t *testing.T) {
	_, err := load(Commit{}, endless{}, Options{Limits: Limits{Files: 1000}})
	if err == nil || !strings.Contains(err.Error(), "more than 1000 files and directories") {
		t.Error(err)
	}
}

// An endless tree has ten directories and a hidden file in each directory.
type endless struct{}

func (endless) Open(name string) (fs.File, error) { return nil, fs.ErrInvalid }

func (endless) Stat(name string) (fs.FileInfo, error) { return memoryInfo{name, 0, true}, nil }

func (endless) ReadDir(string) ([]fs.DirEntry, error) {
	entries := []fs.DirEntry{fs.FileInfoToDirEntry(memoryInfo{".hidden", 0, false})}
	for i := range 10 {
		entries = append(entries, fs.FileInfoToDirEntry(memoryInfo{fmt.Sprint(i), 0, true}))
	}
	return entries, nil
}
