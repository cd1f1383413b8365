package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/test/gitrepo"
)

func dirFS(dir string) fs.FS { return os.DirFS(dir) }

// fsck checks a store with the git program.
func fsck(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.Command("git", "-c", "safe.directory=*", "--git-dir="+dir, "fsck", "--strict", "--full")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "missing") {
		t.Errorf("git fsck: %v\n%s", err, out)
	}
}

// When there are many packs, they are joined, also if they contain the same objects. Every
// commit that was ever fetched can be read, and git finds no error.
func TestTheStoreStaysBounded(t *testing.T) {
	for _, kind := range []string{"http", "file"} {
		t.Run(kind, func(t *testing.T) {
			g := gitrepo.New(t)
			address := g.Dir
			if kind == "http" {
				address = serveGit(t, g).URL
			}
			base := g.Commit("base", map[string]string{"a": "0", "big": gitrepo.Noise(20_000)})
			cfg := config(t, address)
			cfg.Limits.Packs = 5
			r := start(t, cfg)
			r.wantHead(base)
			if err := r.poll(); err != nil {
				t.Fatal(err)
			}
			all := map[string]string{base: "0"}
			for i := range 16 {
				if i%5 == 4 { // the history is rewritten, and big is fetched again
					g.Git("checkout", "-q", "--orphan", fmt.Sprint("orphan", i))
					g.Git("branch", "-q", "-M", "main")
				}
				content := fmt.Sprint(i + 1)
				hash := g.Commit("change "+content, map[string]string{"a": content, "big": gitrepo.Noise(20_000) + strings.Repeat("x", i/5)})
				if err := r.again(); err != nil {
					t.Fatal(err)
				}
				r.wantHead(hash)
				all[hash] = content
				if n := len(packFiles(t, r.Repo, ".pack")); n > 5 {
					t.Fatalf("%d packs after %d commits, at most 5", n, i+2)
				}
			}
			for hash, content := range all {
				if got := contents(t, r.Repo, hash)["a"]; got != content {
					t.Errorf("a of %s is %q, want %q", hash, got, content)
				}
			}
			st := r.stored.Load()
			names, err := fs.Glob(dirFS(st.Dir), "objects/pack/*")
			if err != nil || len(names) != 2*len(packFiles(t, r.Repo, ".pack")) {
				t.Errorf("the files are %v (%v)", names, err)
			}
			fsck(t, st.Dir)
		})
	}
}

// packFiles returns the packs of a store, largest first.
func packFiles(t *testing.T, r *Repo, suffix string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(r.stored.Load().Dir, "objects", "pack", "*"+suffix))
	if err != nil || len(files) == 0 {
		t.Fatalf("no packs: %v", err)
	}
	return files
}

// overwrite damages a file in place, as a failing disk would.
func overwrite(t *testing.T, path string, at int64, content []byte) {
	t.Helper()
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(content, at)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// If a store is damaged while it is open, readers get an error and never fewer or other files.
// The store is cloned again, and head is called again.
func TestADamagedStoreIsClonedAnew(t *testing.T) {
	damage := map[string]func(t *testing.T, r *Repo){
		"bits flipped in every object": func(t *testing.T, r *Repo) {
			for _, path := range packFiles(t, r, ".pack") {
				info, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				overwrite(t, path, 12, bytes.Repeat([]byte{0x55}, int(info.Size())-12))
			}
		},
		"pack cut short": func(t *testing.T, r *Repo) {
			for _, path := range packFiles(t, r, ".pack") {
				if err := errors.Join(os.Chmod(path, 0o600), os.Truncate(path, 20)); err != nil {
					t.Fatal(err)
				}
			}
		},
	}
	for name, hurt := range damage {
		t.Run(name, func(t *testing.T) {
			g := gitrepo.New(t)
			want := map[string]string{"a": gitrepo.Noise(40_000), "dir/b": gitrepo.Noise(30_000)}
			hash := g.Commit("first", want)
			var log bytes.Buffer
			cfg := config(t, serveGit(t, g).URL)
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			r := start(t, cfg)
			r.wantHead(hash)
			if err := r.poll(); err != nil {
				t.Fatal(err)
			}
			fsys, err := r.Files(t.Context(), hash)
			if err != nil {
				t.Fatal(err)
			}
			old := r.stored.Load().Dir
			hurt(t, r.Repo)
			for file := range want {
				content, err := fs.ReadFile(fsys, file)
				if err == nil && string(content) != want[file] {
					t.Fatalf("%s has other content", file)
				}
				if err == nil {
					t.Fatalf("%s could still be read", file)
				}
			}
			if err := r.poll(); err != nil { // the read has nudged
				t.Fatal(err)
			}
			r.wantHead(hash)
			if got := contents(t, r.Repo, hash); !maps.Equal(got, want) {
				t.Error("the new clone has other files")
			}
			for file := range want { // files that were opened before can be read, too
				if content, err := fs.ReadFile(fsys, file); err != nil || string(content) != want[file] {
					t.Errorf("%s through the old file system: %v", file, err)
				}
			}
			if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the damaged store is still there: %v", err)
			}
			if !strings.Contains(log.String(), "cloned again") {
				t.Errorf("the log says nothing:\n%s", log.String())
			}
		})
	}
}

// A store that is damaged at the start is cloned again. While the remote is down head is not
// called, since no complete commit is available.
func TestAStoreFoundDamagedIsClonedAnew(t *testing.T) {
	damage := map[string]func(t *testing.T, r *Repo){
		"index cut short": func(t *testing.T, r *Repo) {
			path := packFiles(t, r, ".idx")[0]
			if err := errors.Join(os.Chmod(path, 0o600), os.Truncate(path, 100)); err != nil {
				t.Fatal(err)
			}
		},
		"index lost": func(t *testing.T, r *Repo) {
			if err := os.Remove(packFiles(t, r, ".idx")[0]); err != nil {
				t.Fatal(err)
			}
		},
		"pack lost": func(t *testing.T, r *Repo) {
			if err := os.Remove(packFiles(t, r, ".pack")[0]); err != nil {
				t.Fatal(err)
			}
		},
		"trees unreadable": func(t *testing.T, r *Repo) {
			path := packFiles(t, r, ".pack")[0]
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			overwrite(t, path, 12, make([]byte, info.Size()-12))
		},
	}
	for name, hurt := range damage {
		t.Run(name, func(t *testing.T) {
			g := gitrepo.New(t)
			hash := g.Commit("first", map[string]string{"a": "1", "dir/b": "2"})
			s := serveGit(t, g)
			cfg := config(t, s.URL)
			t.Run("before", func(t *testing.T) {
				r := start(t, cfg)
				r.wantHead(hash)
				if err := r.poll(); err != nil {
					t.Fatal(err)
				}
				hurt(t, r.Repo)
			})
			s.answer(status(503))
			r := start(t, cfg)
			wantError(t, r.poll(), "503")
			r.wantNoHead()
			s.answer(nobody)
			err := r.again()
			if err != nil { // if the damage was found late, there is one more poll before the server was repaired
				err = r.again()
			}
			if err != nil {
				t.Fatal(err)
			}
			r.wantHead(hash)
			if got := contents(t, r.Repo, hash); len(got) != 2 {
				t.Errorf("files are %v", got)
			}
		})
	}
}

// A disk that damages every clone does not cause clones all the time.
func TestClonesAnewAreRare(t *testing.T) {
	g := gitrepo.New(t)
	hash := g.Commit("first", map[string]string{"a": gitrepo.Noise(10_000)})
	s := serveGit(t, g)
	r := open(t, config(t, s.URL).withDefaults())
	poll := func() error {
		_, err := r.poll(context.Background())
		return err
	}
	hurt := func() {
		for _, path := range packFiles(t, r, ".pack") {
			overwrite(t, path, 12, bytes.Repeat([]byte{0x55}, 5000))
		}
		fsys, err := r.Files(t.Context(), hash)
		if err == nil {
			_, err = fs.ReadFile(fsys, "a")
		}
		if err == nil {
			t.Fatal("the damage was not found")
		}
	}
	if err := poll(); err != nil {
		t.Fatal(err)
	}
	hurt()
	if err := poll(); err != nil {
		t.Fatal(err)
	}
	hurt()
	s.requests()
	wantError(t, poll(), "damaged again, next clone in 1m0s")
	if slices.Contains(s.requests(), "POST /git-upload-pack") {
		t.Error("it was cloned all the same")
	}
	r.clones.last = r.clones.last.Add(-time.Minute)
	if err := poll(); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, r, hash); len(got) != 1 {
		t.Errorf("files are %v", got)
	}
}

// The files of an interrupted fetch are removed at the next start.
func TestLeftoversAreSwept(t *testing.T) {
	g := gitrepo.New(t)
	hash := g.Commit("first", map[string]string{"a": "1"})
	cfg := config(t, g.Dir)
	var store string
	t.Run("before", func(t *testing.T) {
		r := start(t, cfg)
		r.wantHead(hash)
		store = r.stored.Load().Dir
	})
	name := "pack-0123456789012345678901234567890123456789"
	for _, left := range []string{"incoming-123", "incoming-123.idx", ".tmp-1", name + ".pack"} {
		if err := os.WriteFile(filepath.Join(store, "objects", "pack", left), []byte("PACK"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	half := strings.TrimSuffix(store, ".1") + ".2" // a second clone that was interrupted
	if err := os.MkdirAll(filepath.Join(half, "objects", "pack"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := start(t, cfg)
	r.wantHead(hash)
	names, err := fs.Glob(dirFS(filepath.Join(store, "objects", "pack")), "*")
	if err != nil || len(names) != 2 {
		t.Errorf("files are %v (%v)", names, err)
	}
	if _, err := os.Stat(half); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the half clone is still there: %v", err)
	}
}

// Two addresses have separate stores, and neither shows the commits of the other.
func TestAnotherAddressIsAnotherStore(t *testing.T) {
	one, two := gitrepo.New(t), gitrepo.New(t)
	first, second := one.Commit("one", nil), two.Commit("two", nil)
	cfg := config(t, one.Dir)
	t.Run("one", func(t *testing.T) { start(t, cfg).wantHead(first) })
	cfg.URL = two.Dir
	r := start(t, cfg)
	r.wantHead(second)
	_, err := r.Files(t.Context(), first)
	if !errors.Is(err, ErrUnknownCommit) {
		t.Errorf("the other's commit: %v", err)
	}
}

// Reading while packs are fetched and joined is safe.
func TestReadersDoNotDisturbFetches(t *testing.T) {
	g := gitrepo.New(t)
	files := map[string]string{}
	for i := range 50 {
		files[fmt.Sprintf("d%d/f%d", i%7, i)] = gitrepo.Noise(500 + i)
	}
	first := g.Commit("first", files)
	cfg := config(t, g.Dir)
	cfg.Limits.Packs = 2
	r := start(t, cfg)
	r.wantHead(first)
	if err := r.poll(); err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := len(contents(t, r.Repo, first)); got != 50 {
					t.Errorf("%d files", got)
				}
				r.Status()
			}
		})
	}
	for i := range 10 {
		hash := g.Commit("more", map[string]string{"more": fmt.Sprint(i)})
		if err := r.again(); err != nil {
			t.Error(err)
		}
		r.wantHead(hash)
	}
	close(stop)
	readers.Wait()
}
