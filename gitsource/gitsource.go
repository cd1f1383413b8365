// Package gitsource reads the Git repository of the hub.
//
// Run polls one reference of one remote and calls head with each new commit that is accepted: the
// store has all of it and, if signatures are required, it is signed. Whether its manifests can be
// loaded is the caller's concern. Files reads the tree of a commit from the object store. Package
// objects is the store, and package remote the access to the remote. There is no checkout, and the
// git program is not used. Objects of the tracked history are never deleted, so that a commit that
// clusters still run can be read after the remote has dropped it. A missing object is always an
// error: no listing is ever shorter than the tree.
package gitsource

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/gitsource/filelock"
	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// A Repo is a remote reference with its local store. It is safe for concurrent use, except that
// only one Run may be active at a time.
type Repo struct {
	cfg    Config
	remote remote.Remote
	// branches is the same remote with the limits of FetchRef.
	branches remote.Remote

	// stored is replaced as a whole when the repository is cloned again. Readers must load it
	// each time.
	stored       atomic.Pointer[objects.Store]
	storePath    objects.StorePath
	lock         *os.File
	trees        *objects.TreeCache
	damage       atomic.Pointer[error] // about an object that is missing from the store
	pollRequests chan struct{}
	retry        atomic.Bool // the next poll forgets what was refused before
	backoff      backoff
	// branch is the store of FetchRef; nil if it has fetched nothing.
	branch   *objects.Store
	branchMu sync.Mutex

	// The fields below belong to Run's goroutine.
	last     lastPoll
	refused  refusal
	exceeded exceeded
	waited   time.Duration // for what the remote sends, during the fetch or check of an object
	clones   cloneHistory

	steps  steps
	mu     sync.Mutex
	status Status
	// remoteFailures counts consecutive failed polls, for the backoff. A poll that finds a commit
	// that is not accepted does not count, since the remote works.
	remoteFailures int
}

// Open opens or creates the store below cfg.Dir. It does not use the network, so that
// accepted commits can be read while the remote is down.
func Open(cfg Config) (*Repo, error) {
	cfg, where, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	tracked, err := remote.New(cfg.remote(), where)
	if err != nil {
		return nil, err
	}
	bounded := cfg
	bounded.Limits = cfg.Limits.ofBranch()
	branches, err := remote.New(bounded.remote(), where)
	if err != nil {
		return nil, err
	}
	r := &Repo{
		cfg:          cfg,
		remote:       tracked,
		branches:     branches,
		trees:        objects.NewTreeCache(treeCache),
		pollRequests: make(chan struct{}, 1),
		backoff:      newBackoff(cfg.Interval),
		status:       Status{URL: where.String(), Ref: cfg.Ref.String()},
	}
	r.storePath, err = objects.StorePathOf(cfg.Dir, where.String())
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if r.lock, err = filelock.Open(r.storePath.Prefix+".lock", os.O_CREATE|os.O_RDWR); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	st, dropped, err := r.storePath.Open()
	if err == nil {
		err = os.RemoveAll(r.branchDir()) // left by a process that was killed
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", err), r.lock.Close())
	}
	if dropped != nil {
		cfg.Logger.Warn("the store is damaged; the repository will be cloned again", "err", remote.Redact(dropped.Error()))
	}
	r.stored.Store(st)
	return r, nil
}

// Close closes the store and connections. Run must have returned, and no other method may be
// called afterwards.
func (r *Repo) Close() error {
	r.remote.Close()
	return errors.Join(r.dropBranch(), r.stored.Load().Close(), r.lock.Close())
}

// RequestPoll makes Run poll soon. It never blocks, and several requests before that poll count as one.
func (r *Repo) RequestPoll() {
	select {
	case r.pollRequests <- struct{}{}:
	default:
	}
}

// Retry requests a poll that also fetches and checks what was refused before.
func (r *Repo) Retry() {
	r.retry.Store(true)
	r.RequestPoll()
}

// withStore reads from the store, and reads again if the store was replaced meanwhile. It
// records missing objects, so that Run clones the repository again.
func (r *Repo) withStore(read func(*objects.Store) error) error {
	for {
		st := r.stored.Load()
		err := read(st)
		if !objects.IsDamage(err) {
			return err
		}
		if r.stored.Load() == st {
			r.damaged(err)
			return err
		}
	}
}

func (r *Repo) damaged(err error) {
	if r.damage.CompareAndSwap(nil, &err) {
		r.RequestPoll()
	}
}

// cloneHistory records when the repository was last cloned again, and how many times in a row.
// It limits the clones that a broken disk or remote can cause.
type cloneHistory struct {
	last time.Time
	n    int
}

// A lastPoll is what the last successful poll found: the object that the remote's reference
// points to, which may be a tag, and its commit.
type lastPoll struct{ object, commit plumbing.Hash }

// branchDir is the directory of the store of FetchRef.
func (r *Repo) branchDir() string { return r.storePath.Prefix + ".pull" }

// dropBranch removes the store of FetchRef.
func (r *Repo) dropBranch() error {
	r.branchMu.Lock()
	defer r.branchMu.Unlock()
	if r.branch == nil {
		return nil
	}
	st := r.branch
	r.branch = nil
	return st.Remove()
}

// key is the name under which the store records the accepted commit. It depends on whether
// signatures are required, since a commit that was accepted without them does not count once
// they are.
func (r *Repo) key() string {
	if r.cfg.Signatures != nil {
		return r.cfg.Ref.key() + "-signed"
	}
	return r.cfg.Ref.key()
}
