// Package gitsource reads the repository that is the hub: commits come in,
// files go out.
//
// Run watches one reference of one remote and calls head with each new commit;
// Files reads a commit's tree straight from the object store. There is no
// checkout and no git program. What was fetched once is never thrown away, so
// a commit that some cluster still holds can be read long after the remote has
// forgotten it, and an object that should be there and is not is always an
// error: a listing is never shorter than the tree it lists.
package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// A Commit is what the remote's history says of one state of the hub.
type Commit struct {
	Hash    string
	Author  string
	Email   string
	Subject string
	// Message is whole, with its trailers.
	Message string
	// Time is when the commit was made, not when its change was written.
	Time    time.Time
	Parents []string
}

// A Repo is a remote reference and the local store of what it has held. All of
// its methods may be called from any goroutine, Run from only one at a time.
type Repo struct {
	cfg    Config
	remote remote

	// stored is replaced as a whole when the store is cloned anew; whoever
	// reads goes through it each time.
	stored  atomic.Pointer[store]
	place   place
	lock    *os.File
	trees   *treeCache
	damage  atomic.Pointer[damage]
	nudges  chan struct{}
	backoff backoff

	// Only Run's goroutine touches these.
	last   poll
	clones clones

	mu     sync.Mutex
	status Status
	// failures counts in a row the polls at which the remote did not answer.
	failures int
}

// A damage is something the store should have and has not.
type damage struct{ err error }

// Open opens the store below cfg.StateDir, or makes it. It does not touch the
// network: a commit that was accepted before can be read with Git down.
func Open(cfg Config) (*Repo, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	where, err := parseLocation(cfg.URL)
	if err != nil {
		return nil, err
	}
	remote, err := newRemote(cfg, where)
	if err != nil {
		return nil, err
	}
	r := &Repo{
		cfg:     cfg,
		remote:  remote,
		trees:   newTreeCache(cfg.TreeCache),
		nudges:  make(chan struct{}, 1),
		backoff: newBackoff(cfg.Interval),
		status:  Status{URL: where.String(), Ref: cfg.Ref.String()},
	}
	r.place, err = locate(cfg.StateDir, where.String())
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if r.lock, err = lock(r.place.path + ".lock"); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	st, dropped, err := r.place.open()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", err), r.lock.Close())
	}
	if dropped != nil {
		cfg.Logger.Warn("the store is damaged; the repository will be cloned anew", "err", redact(dropped.Error()))
	}
	r.stored.Store(st)
	return r, nil
}

// Close releases the store and open connections. No other method may be called
// afterwards; Run must have returned.
func (r *Repo) Close() error {
	r.remote.close()
	return errors.Join(r.stored.Load().close(), r.lock.Close())
}

// Commit answers what is known of a commit that was fetched at any time.
func (r *Repo) Commit(_ context.Context, hash string) (Commit, error) {
	h, err := parseHash(hash)
	if err != nil {
		return Commit{}, err
	}
	c, err := r.commit(h)
	if err != nil {
		return Commit{}, err
	}
	return c.public(), nil
}

// Files answers the tree of a commit that was fetched at any time. The file
// system reads from the object store when it is asked, and implements
// fs.ReadDirFS, fs.ReadFileFS, fs.StatFS and Hasher.
func (r *Repo) Files(_ context.Context, commit string) (fs.FS, error) {
	h, err := parseHash(commit)
	if err != nil {
		return nil, err
	}
	c, err := r.commit(h)
	if err != nil {
		return nil, err
	}
	return &files{repo: r, root: c.tree, time: c.time, commit: commit}, nil
}

// Nudge makes Run poll soon instead of at its next turn. It never blocks, and
// any number of nudges before that poll are one.
func (r *Repo) Nudge() {
	select {
	case r.nudges <- struct{}{}:
	default:
	}
}

// object reads one object of a commit that is known.
func (r *Repo) object(t plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	var content []byte
	err := r.reading(func(st *store) (err error) {
		content, err = st.object(t, h, r.cfg.Limits.FileBytes)
		return err
	})
	return content, err
}

// reading reads from the store, again if it was replaced meanwhile, and
// remembers if it lacks what it should have: Run then clones anew.
func (r *Repo) reading(read func(*store) error) error {
	for {
		st := r.stored.Load()
		err := read(st)
		if !isDamage(err) {
			return err
		}
		if r.stored.Load() == st {
			r.damaged(err)
			return err
		}
	}
}

func (r *Repo) damaged(err error) {
	if r.damage.CompareAndSwap(nil, &damage{err}) {
		r.Nudge()
	}
}

// commit reads a commit. One that the store never had is not damage: it may
// have been lost with an earlier store.
func (r *Repo) commit(h plumbing.Hash) (*commit, error) {
	st := r.stored.Load()
	if !st.has(h) {
		return nil, fmt.Errorf("commit %s: %w", h, ErrUnknownCommit)
	}
	content, err := r.object(plumbing.CommitObject, h)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", h, err)
	}
	return parseCommit(h, content)
}
