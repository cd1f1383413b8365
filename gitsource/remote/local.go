package remote

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// A localRemote is a repository on this machine.
type localRemote struct{ path string }

func (l *localRemote) Session(context.Context) (Session, error) {
	r, err := OpenRepository(l.path)
	if err != nil {
		return nil, err
	}
	return &localSession{r}, nil
}

func (l *localRemote) Close() {}

type localSession struct{ *Repository }

func (l *localSession) Received() int64 { return 0 }

func (l *localSession) List(context.Context) (*packp.AdvRefs, error) {
	refs, err := l.References()
	if err == nil && len(refs.References) == 0 {
		err = transport.ErrEmptyRemoteRepository
	}
	return refs, err
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
			return nil, l.Explain(fmt.Errorf("object %s: %w", h, err))
		}
		switch o := o.(type) {
		case *object.Tag:
			pending = append(pending, o.Target)
		case *object.Commit:
			if pending = append(pending, o.TreeHash); !f.Shallow {
				pending = append(pending, o.ParentHashes...)
			}
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
		_, err := packfile.NewEncoder(w, l.Repository, false).Encode(objects, 0)
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
