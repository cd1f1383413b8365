package gitsource

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// manifests is a file of about 1 KiB per path, in directories of 50.
func manifests(n int) map[string]string {
	files := make(map[string]string, n)
	for i := range n {
		files[fmt.Sprintf("apps/d%03d/f%05d.yaml", i/50, i)] = manifest(i, 0)
	}
	return files
}

func manifest(i, version int) string {
	s := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c%d\n  namespace: n%d\ndata:\n  version: \"%d\"\n", i, i/50, version)
	for k := 0; len(s) < 1000; k++ {
		s += fmt.Sprintf("  key-%d: value-%d-%d\n", k, i*31+k, i^k)
	}
	return s
}

// history makes a repository of n files and 21 commits.
func history(b *testing.B, n int) *gitrepo.Repo {
	b.Helper()
	g := gitrepo.New(b)
	fastImport(g, "all", manifests(n))
	for v := range 20 {
		change(g, v+1, n)
	}
	g.Git("gc", "-q")
	return g
}

// change commits a new version of one file.
func change(g *gitrepo.Repo, version, n int) string {
	i := version % n
	return fastImport(g, "change", map[string]string{fmt.Sprintf("apps/d%03d/f%05d.yaml", i/50, i): manifest(i, version)})
}

// fastImport commits files to main without a working tree, after running other commands of git
// fast-import.
func fastImport(g *gitrepo.Repo, message string, files map[string]string, first ...string) string {
	var in strings.Builder
	fmt.Fprintf(&in, "commit refs/heads/main\ncommitter Ada <ada@example.com> now\ndata %d\n%s\n", len(message), message)
	if g.Git("for-each-ref") != "" {
		in.WriteString("from refs/heads/main^0\n")
	}
	for _, line := range first {
		in.WriteString(line + "\n")
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", name, len(files[name]), files[name])
	}
	g.Input(in.String(), "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet", "--date-format=now")
	return g.Git("rev-parse", "refs/heads/main")
}

var sizes = []int{1_000, 10_000, 50_000}

func bySize(b *testing.B, run func(b *testing.B, n int)) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) { run(b, n) })
	}
}

// polled opens a repository and polls it until it has a head.
func polled(b *testing.B, cfg Config) *Repo {
	b.Helper()
	r := open(b, cfg.withDefaults())
	pollOnce(b, r)
	return r
}

func pollOnce(b *testing.B, r *Repo) {
	b.Helper()
	if _, err := r.poll(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkUnchangedPoll(b *testing.B) {
	bySize(b, func(b *testing.B, n int) {
		g := history(b, n)
		s := serveGit(b, g)
		r := polled(b, config(b, s.URL))
		b.Run("gitfleet", func(b *testing.B) {
			for b.Loop() {
				pollOnce(b, r)
			}
		})
		b.Run("git", func(b *testing.B) {
			for b.Loop() {
				g.Git("ls-remote", s.URL, "refs/heads/main")
			}
		})
	})
}

func BenchmarkFetchOneCommit(b *testing.B) {
	bySize(b, func(b *testing.B, n int) {
		g := history(b, n)
		s := serveGit(b, g)
		version := 100
		b.Run("gitfleet", func(b *testing.B) {
			r := polled(b, config(b, s.URL))
			for b.Loop() {
				b.StopTimer()
				version++
				change(g, version, n)
				b.StartTimer()
				pollOnce(b, r)
			}
		})
		b.Run("git", func(b *testing.B) {
			mirror := filepath.Join(b.TempDir(), "mirror")
			g.Git("clone", "-q", "--bare", s.URL, mirror)
			for b.Loop() {
				b.StopTimer()
				version++
				change(g, version, n)
				b.StartTimer()
				g.Git("-C", mirror, "fetch", "-q", s.URL, "+refs/heads/main:refs/heads/main")
			}
		})
	})
}

func BenchmarkColdClone(b *testing.B) {
	bySize(b, func(b *testing.B, n int) {
		g := history(b, n)
		s := serveGit(b, g)
		b.Run("gitfleet", func(b *testing.B) {
			for b.Loop() {
				polled(b, config(b, s.URL))
			}
		})
		b.Run("git", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				g.Git("clone", "-q", "--bare", s.URL, filepath.Join(b.TempDir(), fmt.Sprint(i)))
			}
		})
	})
}

func BenchmarkReadAll(b *testing.B) {
	bySize(b, func(b *testing.B, n int) {
		g := history(b, n)
		r := polled(b, config(b, serveGit(b, g).URL))
		for b.Loop() {
			if got := len(contents(b, r, r.last.commit.String())); got != n {
				b.Fatalf("%d files, want %d", got, n)
			}
		}
	})
}

func BenchmarkWalk(b *testing.B) {
	bySize(b, func(b *testing.B, n int) {
		g := history(b, n)
		r := polled(b, config(b, serveGit(b, g).URL))
		fsys, err := r.Files(context.Background(), r.last.commit.String())
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			files := 0
			err := fs.WalkDir(fsys, ".", func(_ string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					files++
				}
				return err
			})
			if err != nil || files != n {
				b.Fatalf("%d files (%v), want %d", files, err, n)
			}
		}
	})
}

func BenchmarkDiffTwoCommits(b *testing.B) {
	bySize(b, func(b *testing.B, n int) {
		g := history(b, n)
		to, from := g.Head(), g.Git("rev-parse", "HEAD~1")
		for _, kind := range []string{"cold", "warm"} {
			b.Run(kind, func(b *testing.B) {
				r := polled(b, config(b, serveGit(b, g).URL))
				for b.Loop() {
					if kind == "cold" {
						b.StopTimer()
						r.trees = objects.NewTreeCache(treeCache)
						b.StartTimer()
					}
					changes, err := diffCommits(r, from, to)
					if err != nil || len(changes) != 1 {
						b.Fatalf("%d changes (%v), want 1", len(changes), err)
					}
				}
			})
		}
		b.Run("git", func(b *testing.B) {
			for b.Loop() {
				g.Git("diff-tree", "-r", from, to)
			}
		})
	})
}

// BenchmarkMemory measures the memory in use after 10,000 files were cloned and read, and the
// peak.
func BenchmarkMemory(b *testing.B) {
	bySize(b, func(b *testing.B, n int) {
		g := history(b, n)
		s := serveGit(b, g)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for b.Loop() {
			r := polled(b, config(b, s.URL))
			if got := len(contents(b, r, r.last.commit.String())); got != n {
				b.Fatalf("%d files", got)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(r)
		}
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/mib, "MiB-held")
		status, err := os.ReadFile("/proc/self/status")
		if err == nil {
			_, peak, _ := strings.Cut(string(status), "VmHWM:")
			b.Logf("peak resident %s", strings.TrimSpace(strings.SplitN(peak, "\n", 2)[0]))
		}
	})
}
