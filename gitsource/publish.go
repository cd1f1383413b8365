package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/gitsource/signature"
)

// A Publisher pushes gitfleet's commits to separate branches, without a checkout. It never
// changes a branch to which other people have pushed. Only one goroutine may use it.
type Publisher struct {
	repo       *Repo
	cfg        Config
	remote     *remote.HTTP
	signingKey string
}

// A BranchCommit describes the only commit that a branch has on top of its base.
type BranchCommit struct {
	Branch string
	// Base is the parent: a commit that was fetched.
	Base string
	// Files are the new contents of files by path; nil removes a file.
	Files map[string][]byte
	// Message must contain Marker as one of its lines.
	Message string
	// Marker is the line that identifies the commit as gitfleet's own.
	Marker string
	Time   time.Time
}

// A BranchState is the state of a branch after Publish.
type BranchState struct {
	// Head is the commit that the branch points to.
	Head string
	// Others says that other people have pushed to the branch, which was therefore not changed.
	Others bool
	// Outdated is set if other people have pushed to the branch, and one of the files is
	// different in the base than when the branch was created.
	Outdated bool
}

const publishTimeout = 2 * time.Minute

// Publisher returns a Publisher for the HTTP repository of cfg. If signingKey is not empty,
// commits are signed with the OpenPGP or SSH key in that file, which is read again for each
// commit.
func (r *Repo) Publisher(cfg Config, signingKey string) (*Publisher, error) {
	cfg.Dir = r.cfg.Dir
	cfg, where, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	cfg.Limits = cfg.Limits.ofBranch()
	if where.Scheme != "http" && where.Scheme != "https" {
		return nil, remote.FieldErrorf("url", "branches are pushed over https://, not %s://", where.Scheme)
	}
	if signingKey != "" {
		if _, err := signature.LoadSigningKey(signingKey); err != nil {
			return nil, fmt.Errorf("signing key: %w", err)
		}
	}
	return &Publisher{repo: r, cfg: cfg, remote: remote.NewHTTP(cfg.remote(), where), signingKey: signingKey}, nil
}

// Publish makes a branch point to its commit. A missing branch is created. A branch that
// already has the change and the message stays as it is, whatever was committed to the base since. A branch
// whose only commit is gitfleet's own is replaced, unless it moves before the push arrives. A
// branch to which other people have pushed is not changed.
func (p *Publisher) Publish(ctx context.Context, c BranchCommit) (BranchState, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	defer p.remote.Close() // pushes are rare, so that the connection is not kept
	b, err := p.read(ctx, c.Branch)
	if err != nil {
		return BranchState{}, fmt.Errorf("read branch %s: %w", c.Branch, err)
	}
	state, err := p.publish(ctx, b, c)
	if err = errors.Join(err, b.close()); err != nil {
		return BranchState{}, fmt.Errorf("push branch %s: %w", c.Branch, err)
	}
	return state, nil
}

func (p *Publisher) publish(ctx context.Context, b *remoteBranch, c BranchCommit) (BranchState, error) {
	state := BranchState{Head: b.head.String()}
	base := plumbing.NewHash(c.Base)
	if !b.head.IsZero() {
		if !b.own(c.Marker) {
			var err error
			state.Others = true
			state.Outdated, err = b.outdated(base, slices.Collect(maps.Keys(c.Files)))
			return state, err
		}
		if !b.merged {
			tree, err := b.edit(b.commit.ParentHashes[0], c.Files)
			if err != nil {
				return state, err
			}
			if tree == b.commit.TreeHash && b.commit.Message == c.Message {
				return state, nil
			}
		}
	}
	b.objects.Storage = memory.NewStorage() // objects written for the comparison are not sent
	made, err := p.commit(b, base, c)
	if err != nil {
		return state, err
	}
	state.Head = made.String()
	return state, b.write(ctx, &packp.Command{Name: plumbing.NewBranchReferenceName(c.Branch), Old: b.head, New: made})
}

// Remove deletes a branch unless other people have pushed to it. A missing branch is not an
// error.
func (p *Publisher) Remove(ctx context.Context, branch, marker string) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	defer p.remote.Close()
	b, err := p.read(ctx, branch)
	if err != nil {
		return fmt.Errorf("read branch %s: %w", branch, err)
	}
	if !b.head.IsZero() && b.own(marker) {
		err = b.write(ctx, &packp.Command{Name: plumbing.NewBranchReferenceName(branch), Old: b.head})
	}
	if err = errors.Join(err, b.close()); err != nil {
		return fmt.Errorf("delete branch %s: %w", branch, err)
	}
	return nil
}

// List returns the branches whose names begin with a prefix, sorted.
func (p *Publisher) List(ctx context.Context, prefix string) (branches []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	defer p.remote.Close()
	s, refs, err := p.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list branches: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for name := range refs {
		if branch, is := strings.CutPrefix(name, "refs/heads/"); is && strings.HasPrefix(branch, prefix) {
			branches = append(branches, branch)
		}
	}
	slices.Sort(branches)
	return branches, nil
}

// list begins a session and returns the references of the remote, of which an empty repository
// has none.
func (p *Publisher) list(ctx context.Context) (remote.Session, map[string]plumbing.Hash, error) {
	s, err := p.remote.Session(ctx)
	if err != nil {
		return nil, nil, err
	}
	refs, err := s.List(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return s, nil, nil
	}
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, refs.References, nil
}

// commit creates the commit in memory.
func (p *Publisher) commit(b *remoteBranch, base plumbing.Hash, c BranchCommit) (plumbing.Hash, error) {
	tree, err := b.edit(base, c.Files)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if before, err := object.GetCommit(b.objects, base); err != nil {
		return plumbing.ZeroHash, err
	} else if before.TreeHash == tree {
		return plumbing.ZeroHash, errors.New("the commit would change nothing")
	}
	who := object.Signature{Name: publisherName, Email: publisherEmail, When: c.Time.UTC()}
	made := &object.Commit{Author: who, Committer: who, Message: c.Message, TreeHash: tree, ParentHashes: []plumbing.Hash{base}}
	if p.signingKey != "" {
		if made.PGPSignature, err = p.sign(made); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	return storeObject(b.objects, made)
}

func (p *Publisher) sign(c *object.Commit) (string, error) {
	key, err := signature.LoadSigningKey(p.signingKey)
	if err != nil {
		return "", fmt.Errorf("signing key: %w", err)
	}
	raw := &plumbing.MemoryObject{}
	if err := c.EncodeWithoutSignature(raw); err != nil {
		return "", err
	}
	payload, err := contentOf(raw)
	if err != nil {
		return "", err
	}
	return key.Sign(payload, time.Now())
}

// read begins a push, and fetches the part of the branch that is not in the tracked history into a separate store. A branch that
// does not exist needs no other request before the push.
func (p *Publisher) read(ctx context.Context, branch string) (*remoteBranch, error) {
	st := p.repo.stored.Load()
	b := &remoteBranch{tracked: st, objects: &layeredObjects{Storage: memory.NewStorage(), store: st, limit: p.cfg.Limits.FileBytes}}
	err := p.start(ctx, b, plumbing.NewBranchReferenceName(branch))
	if err == nil && !b.head.IsZero() {
		err = p.fetch(ctx, b)
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// start begins the push session of a branch.
func (p *Publisher) start(ctx context.Context, b *remoteBranch, name plumbing.ReferenceName) (err error) {
	if b.session, err = p.remote.StartPush(ctx); err != nil {
		return err
	}
	b.refs, err = b.session.List(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		b.refs, err = packp.NewAdvRefs(), nil
	}
	if err != nil {
		return markPush(err)
	}
	b.head = b.refs.References[name.String()]
	return nil
}

// fetch reads the commit of a branch that exists.
func (p *Publisher) fetch(ctx context.Context, b *remoteBranch) (err error) {
	if b.tracked.Has(b.head) {
		b.merged, err = p.repo.follows(ctx, b.tracked, b.head)
	} else {
		err = p.fetchLayer(ctx, b)
	}
	if errors.Is(err, ErrTooLarge) {
		b.tooLarge = true
		return nil
	}
	if err != nil {
		return err
	}
	if b.commit, err = object.GetCommit(b.objects, b.head); err != nil {
		return fmt.Errorf("commit %s: %w", b.head, err)
	}
	return nil
}

func (p *Publisher) fetchLayer(ctx context.Context, b *remoteBranch) (err error) {
	s, _, err := p.list(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if b.fetched, err = p.repo.fetchLayer(ctx, s, p.repo.storePath.Prefix+".branch", b.head); err == nil {
		b.objects.store = b.fetched
	}
	return err
}

// follows reports whether the last accepted commit descends from a commit of the store. A
// commit that was tracked only before the history was rewritten does not count: the branch may
// be the only place that still has it.
func (r *Repo) follows(ctx context.Context, st *objects.Store, h plumbing.Hash) (bool, error) {
	accepted, ok := st.AcceptedRef(r.key())
	if !ok {
		return false, nil
	}
	c, err := readCommit(st, accepted)
	if err != nil {
		return false, err
	}
	_, descends, err := between(st, h, c, ctx.Err)
	return descends, err
}

// A remoteBranch is a branch as it was read from the remote, with the session that may push it.
type remoteBranch struct {
	session remote.PushSession
	refs    *packp.AdvRefs
	head    plumbing.Hash // zero if the branch does not exist
	commit  *object.Commit
	// tracked is the store of the tracked history.
	tracked *objects.Store
	// objects has the tracked history and the branch.
	objects *layeredObjects
	// tooLarge is set if the branch exceeds the limits of a fetch, so that commit is nil.
	tooLarge bool
	fetched  *objects.Store
	// merged is set if everything in the branch is also in the last accepted commit.
	merged bool
}

func (b *remoteBranch) close() error {
	var err error
	if b.session != nil {
		err = b.session.Close()
	}
	if b.fetched != nil {
		err = errors.Join(err, b.fetched.Remove())
	}
	return err
}

// write pushes one change of the branch. The server refuses it if the branch has moved since it was read.
func (b *remoteBranch) write(ctx context.Context, c *packp.Command) error {
	return markPush(remote.Update(ctx, b.session, b.refs, c, b.objects, slices.Collect(maps.Keys(b.objects.Objects))))
}

// markPush marks the error of a request to write.
func markPush(err error) error {
	if refused, ok := errors.AsType[*remote.HTTPError](err); ok {
		refused.Push = true
	}
	return err
}

// own reports whether nobody else has pushed to a branch: it has no commit on top of the
// tracked history, or only gitfleet's own.
func (b *remoteBranch) own(marker string) bool {
	if b.tooLarge {
		return false
	}
	who := b.commit.Committer
	return b.merged || who.Name == publisherName && who.Email == publisherEmail && len(b.commit.ParentHashes) == 1 &&
		b.tracked.Has(b.commit.ParentHashes[0]) && slices.Contains(strings.Split(b.commit.Message, "\n"), marker)
}

// outdated reports whether the files have changed in base since the branch was created: no
// tracked commit that the branch contains has them as base has them.
func (b *remoteBranch) outdated(base plumbing.Hash, paths []string) (bool, error) {
	if b.tooLarge {
		return false, nil
	}
	want, err := b.tree(base)
	if err != nil {
		return false, err
	}
	queue, seen := []plumbing.Hash{b.head}, map[plumbing.Hash]bool{b.head: true}
	for i := 0; i < len(queue) && i < branchCommits; i++ {
		if b.tracked.Has(queue[i]) {
			tree, err := b.tree(queue[i])
			if err != nil {
				return false, err
			}
			if !slices.ContainsFunc(paths, func(path string) bool { return !sameEntry(entryOf(tree, path), entryOf(want, path)) }) {
				return false, nil
			}
			continue
		}
		c, err := object.GetCommit(b.objects, queue[i])
		if err != nil {
			return false, err
		}
		for _, parent := range c.ParentHashes {
			if !seen[parent] {
				seen[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	return true, nil
}

func (b *remoteBranch) tree(commit plumbing.Hash) (*object.Tree, error) {
	c, err := object.GetCommit(b.objects, commit)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", commit, err)
	}
	return c.Tree()
}

// edit writes the tree of a commit with some files replaced; their modes are kept.
func (b *remoteBranch) edit(commit plumbing.Hash, files map[string][]byte) (plumbing.Hash, error) {
	before, err := b.tree(commit)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	changes := map[string]*object.TreeEntry{}
	for path, content := range files {
		if !fs.ValidPath(path) {
			return plumbing.ZeroHash, fmt.Errorf("%q is no path of a file", path)
		}
		if changes[path] = nil; content == nil {
			continue
		}
		e := object.TreeEntry{Mode: filemode.Regular}
		if was := entryOf(before, path); was != nil {
			e.Mode = was.Mode
		}
		if !e.Mode.IsRegular() && e.Mode != filemode.Executable {
			return plumbing.ZeroHash, fmt.Errorf("%s: %w", path, errNotRegular)
		}
		blob, err := encoded(plumbing.BlobObject, content)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if e.Hash, err = b.objects.SetEncodedObject(blob); err != nil {
			return plumbing.ZeroHash, err
		}
		changes[path] = &e
	}
	return editTree(b.objects, before, changes)
}
