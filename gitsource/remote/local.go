package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// localCache is the size of the object cache for reading a local repository, in bytes.
const localCache = 32 << 20

// A localRemote is a repository on this machine. It is read directly, since the library's file
// transport would run the git program.
type localRemote struct{ path string }

func (l *localRemote) Session(context.Context) (Session, error) {
	dir := l.path
	if IsRepository(filepath.Join(dir, ".git")) {
		dir = filepath.Join(dir, ".git")
	} else if !IsRepository(dir) {
		return nil, fmt.Errorf("%s: %w", l.path, transport.ErrRepositoryNotFound)
	}
	st := filesystem.NewStorageWithOptions(osfs.New(dir, osfs.WithBoundOS()), cache.NewObjectLRU(localCache),
		filesystem.Options{KeepDescriptors: true, AlternatesFS: osfs.New("/", osfs.WithBoundOS())})
	return &localSession{Storage: st}, nil
}

func (l *localRemote) Close() {}

// IsRepository reports whether a directory is a Git directory.
func IsRepository(dir string) bool {
	fsys := osfs.New(dir, osfs.WithBoundOS())
	_, head := fsys.Stat("HEAD")
	objects, err := fsys.Stat("objects")
	return head == nil && err == nil && objects.IsDir()
}

type localSession struct{ *filesystem.Storage }

func (l *localSession) Received() int64 { return 0 }

func (l *localSession) List(context.Context) (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	iter, err := l.IterReferences()
	if err != nil {
		return nil, err
	}
	if err := iter.ForEach(refs.AddReference); err != nil {
		return nil, err
	}
	head, err := storer.ResolveReference(l, plumbing.HEAD)
	if err == nil {
		h := head.Hash()
		refs.Head = &h
	} else if !errors.Is(err, plumbing.ErrReferenceNotFound) {
		return nil, err
	}
	if len(refs.References) == 0 {
		return nil, transport.ErrEmptyRemoteRepository
	}
	return refs, nil
}

// Fetch packs all reachable objects that the store does not have. It does not descend into
// objects of the store, which has everything that they refer to.
func (l *localSession) Fetch(ctx context.Context, f FetchRequest) (io.ReadCloser, error) {
	var missing []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	add := func(h plumbing.Hash) (added bool) {
		if seen[h] || f.Has(h) {
			return false
		}
		seen[h] = true
		missing = append(missing, h)
		return true
	}
	pending := slices.Clone(f.Wants)
	for len(pending) > 0 {
		h := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if !add(h) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o, err := object.GetObject(l, h)
		if err != nil {
			return nil, fmt.Errorf("object %s: %w", h, err)
		}
		switch o := o.(type) {
		case *object.Tag:
			pending = append(pending, o.Target)
		case *object.Commit:
			pending = append(append(pending, o.TreeHash), o.ParentHashes...)
		case *object.Tree:
			for _, e := range o.Entries {
				switch e.Mode {
				case filemode.Dir:
					pending = append(pending, e.Hash)
				case filemode.Submodule: // the commit is in another repository
				default:
					add(e.Hash)
				}
			}
		}
	}
	return l.encode(missing), nil
}

// encode writes a pack of objects while the pack is read.
func (l *localSession) encode(objects []plumbing.Hash) io.ReadCloser {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Deltas would save space, but make reading slower, and the store is read far more
		// often than it is written.
		_, err := packfile.NewEncoder(w, l.Storage, false).Encode(objects, 0)
		w.CloseWithError(err)
	}()
	return &localPack{r, done}
}

// A localPack waits for its writer when it is closed.
type localPack struct {
	*io.PipeReader
	done chan struct{}
}

func (p *localPack) Close() error {
	err := p.PipeReader.Close()
	<-p.done
	return err
}
