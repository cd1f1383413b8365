package remote

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	gitconfig "github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// localCache is the size of the object cache for reading a local repository, in bytes.
const localCache = 32 << 20

// A Repository is a repository on this machine. It is read directly, since the library's file
// transport would run the git program, and the library refuses repositories with extensions that
// do not matter for reading.
type Repository struct {
	*filesystem.Storage
	dir string
	// lenders are the repositories whose objects this one borrows, by objects/info/alternates. The
	// library looks for some things in none of them, and misreads relative paths.
	lenders []*Repository
}

// OpenRepository opens the repository in a directory: a Git directory, or a working tree, which may
// be a linked one or that of a submodule. The error is transport.ErrRepositoryNotFound if there is
// none, and otherwise says what cannot be read, and what to do.
func OpenRepository(dir string) (*Repository, error) {
	git, err := gitDirectory(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	var files billy.Filesystem = osfs.New(git, osfs.WithBoundOS())
	common := git
	if text, err := os.ReadFile(filepath.Join(git, "commondir")); err == nil { // of a linked working tree
		common = resolve(git, string(text))
		files = dotgit.NewRepositoryFilesystem(files, osfs.New(common, osfs.WithBoundOS()))
	}
	r := storageAt(files, dir, filepath.Join(common, "objects"), maxLenders)
	if err := r.checkFormat(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", dir, err), r.Close())
	}
	return r, nil
}

// maxLenders is how often objects are borrowed of a repository that borrows them itself, as in Git.
const maxLenders = 5

// storageAt returns the repository with some Git directory, whose objects are in a directory.
func storageAt(files billy.Filesystem, dir, objects string, depth int) *Repository {
	r := &Repository{dir: dir, Storage: filesystem.NewStorageWithOptions(files, cache.NewObjectLRU(localCache), filesystem.Options{KeepDescriptors: true})}
	text, err := os.ReadFile(filepath.Join(objects, "info", "alternates"))
	if err != nil || depth == 0 {
		return r
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lent := resolve(objects, line)
			git := filepath.Dir(lent)
			r.lenders = append(r.lenders, storageAt(osfs.New(git, osfs.WithBoundOS()), git, lent, depth-1))
		}
	}
	return r
}

// EncodedObject implements storer.EncodedObjectStorer.
func (r *Repository) EncodedObject(t plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	return readObject(r, func(s *filesystem.Storage) (plumbing.EncodedObject, error) { return s.EncodedObject(t, h) })
}

// EncodedObjectSize implements storer.EncodedObjectStorer.
func (r *Repository) EncodedObjectSize(h plumbing.Hash) (int64, error) {
	return readObject(r, func(s *filesystem.Storage) (int64, error) { return s.EncodedObjectSize(h) })
}

// HasEncodedObject implements storer.EncodedObjectStorer.
func (r *Repository) HasEncodedObject(h plumbing.Hash) error {
	_, err := readObject(r, func(s *filesystem.Storage) (bool, error) { return true, s.HasEncodedObject(h) })
	return err
}

// readObject reads something of an object in the first repository that has the object: r itself, or
// one of those whose objects it borrows.
func readObject[T any](r *Repository, read func(*filesystem.Storage) (T, error)) (T, error) {
	v, err := read(r.Storage)
	for i := 0; err != nil && i < len(r.lenders); i++ {
		v, err = readObject(r.lenders[i], read)
	}
	return v, err
}

// Close closes the files that are kept open.
func (r *Repository) Close() error {
	err := r.Storage.Close()
	for _, lender := range r.lenders {
		err = errors.Join(err, lender.Close())
	}
	return err
}

// gitDirectory returns the Git directory of a working tree, or the directory itself if it is one.
func gitDirectory(dir string) (string, error) {
	git := filepath.Join(dir, ".git")
	switch text, err := os.ReadFile(git); {
	case err == nil && strings.HasPrefix(string(text), gitFile):
		if git = resolve(dir, strings.TrimPrefix(string(text), gitFile)); IsRepository(git) {
			return git, nil
		}
		return "", fmt.Errorf("its file .git names the Git directory %s, which does not exist; if the repository was moved, run \"git worktree repair\" in it, and for a submodule \"git submodule update --init\"", git)
	case IsRepository(git):
		return git, nil
	case IsRepository(dir):
		return dir, nil
	}
	return "", transport.ErrRepositoryNotFound
}

// gitFile is how the file .git of a linked working tree or a submodule begins.
const gitFile = "gitdir:"

// resolve returns a path that a file in dir has.
func resolve(dir, name string) string {
	if name = strings.TrimSpace(name); filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// IsRepository reports whether a directory is a Git directory, or that of a linked working tree.
func IsRepository(dir string) bool {
	fsys := osfs.New(dir, osfs.WithBoundOS())
	if _, err := fsys.Stat("HEAD"); err != nil {
		return false
	}
	if _, err := fsys.Stat("commondir"); err == nil {
		return true
	}
	objects, err := fsys.Stat("objects")
	return err == nil && objects.IsDir()
}

// checkFormat refuses formats that the library would misread.
func (r *Repository) checkFormat() error {
	cfg, err := r.Config()
	if err != nil {
		return fmt.Errorf("read Git's configuration: %w", err)
	}
	extensions := cfg.Raw.Section("extensions")
	if format := extensions.Option("objectformat"); format != "" && !strings.EqualFold(format, "sha1") {
		return fmt.Errorf("the repository has %s hashes, and only SHA-1 can be read; check out the commit with git, and name its directory without @", strings.ToUpper(format))
	}
	if format := extensions.Option("refstorage"); format != "" && !strings.EqualFold(format, "files") {
		return fmt.Errorf("the repository stores its references as %s, which cannot be read; run \"git -C %s refs migrate --ref-format=files\"", format, r.dir)
	}
	return nil
}

// References returns the references of the repository, and its HEAD.
func (r *Repository) References() (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	iter, err := r.IterReferences()
	if err != nil {
		return nil, err
	}
	if err := iter.ForEach(refs.AddReference); err != nil {
		return nil, err
	}
	head, err := storer.ResolveReference(r, plumbing.HEAD)
	if err == nil {
		h := head.Hash()
		refs.Head = &h
	} else if !errors.Is(err, plumbing.ErrReferenceNotFound) {
		return nil, err
	}
	return refs, nil
}

// Explain adds to the error of a missing object why the repository may lack it, and which command
// adds it.
func (r *Repository) Explain(err error) error {
	if !errors.Is(err, plumbing.ErrObjectNotFound) {
		return err
	}
	why := r.Shallowness()
	if cfg, fault := r.Config(); fault == nil && isPartial(cfg) {
		why = fmt.Sprintf("it is a partial clone, in which git downloads files when it needs them, and nothing is downloaded here; run \"git -C %s fetch --refetch --filter=blob:limit=1g\"", r.dir)
	}
	if why == "" && len(r.lenders) > 0 {
		var lenders []string
		for _, lender := range r.lenders {
			lenders = append(lenders, lender.dir)
		}
		why = fmt.Sprintf("it borrows objects of %s, which may be gone or may have removed them; run \"git -C %s fsck\"", strings.Join(lenders, " and "), r.dir)
	}
	if why == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, why)
}

// Shallowness says that the repository is a shallow clone, and which command adds the commits and
// branches that it lacks. It is empty for other repositories.
func (r *Repository) Shallowness() string {
	if shallow, err := r.Shallow(); err != nil || len(shallow) == 0 {
		return ""
	}
	return fmt.Sprintf("it is a shallow clone, without the older commits and perhaps without other branches; run \"git -C %s fetch --unshallow --tags origin '+refs/heads/*:refs/remotes/origin/*'\"", r.dir)
}

// HashesWithPrefix returns the objects whose hashes begin with some hexadecimal digits, sorted.
func (r *Repository) HashesWithPrefix(digits string) ([]plumbing.Hash, error) {
	start, err := hex.DecodeString(digits[:len(digits)&^1]) // the last digit may be half a byte
	if err != nil {
		return nil, err
	}
	found, err := r.Storage.HashesWithPrefix(start)
	if err != nil {
		return nil, err
	}
	for _, lender := range r.lenders {
		more, err := lender.HashesWithPrefix(digits)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	found = slices.DeleteFunc(found, func(h plumbing.Hash) bool { return !strings.HasPrefix(h.String(), digits) })
	slices.SortFunc(found, func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(found), nil
}

// isPartial reports whether a repository was cloned with a filter.
func isPartial(cfg *gitconfig.Config) bool {
	if cfg.Raw.Section("extensions").Option("partialclone") != "" {
		return true
	}
	for _, remote := range cfg.Raw.Section("remote").Subsections {
		if strings.EqualFold(remote.Option("promisor"), "true") {
			return true
		}
	}
	return false
}
