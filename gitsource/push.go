package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/revlist"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// A pusher is a remote that can be pushed to.
type pusher interface {
	// startPush begins a push session.
	startPush(ctx context.Context) (pushSession, error)
}

// A pushSession lists the references once, and may then send one update.
type pushSession interface {
	list(ctx context.Context) (*packp.AdvRefs, error)
	push(ctx context.Context, req *packp.ReferenceUpdateRequest) error
	io.Closer
}

// Push creates a branch on the remote of cfg, at a commit of the clone. It never changes an
// existing branch, and so never the tracked one.
func (c *Clone) Push(ctx context.Context, cfg Config, branch, commit string) error {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return err
	}
	where, err := parseLocation(cfg.URL)
	if err != nil {
		return err
	}
	remote, err := newRemote(cfg, where)
	if err != nil {
		return err
	}
	defer remote.close()
	to, ok := remote.(pusher)
	if !ok {
		return fmt.Errorf("push to %s: it is a directory: use git push", where)
	}
	if err := c.push(ctx, to, plumbing.NewBranchReferenceName(branch), plumbing.NewHash(commit)); err != nil {
		return fmt.Errorf("push branch %s to %s: %w", branch, where, explainRefusal(err))
	}
	return nil
}

func (c *Clone) push(ctx context.Context, to pusher, ref plumbing.ReferenceName, h plumbing.Hash) (err error) {
	s, err := to.startPush(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	refs, err := s.list(ctx)
	if err != nil {
		return err
	}
	if _, there := refs.References[ref.String()]; there {
		return errors.New("the remote has a branch of that name already: delete it there, or name another")
	}
	var have []plumbing.Hash
	for _, there := range refs.References {
		if c.repo.Storer.HasEncodedObject(there) == nil {
			have = append(have, there)
		}
	}
	objects, err := revlist.Objects(c.repo.Storer, []plumbing.Hash{h}, have)
	if err != nil {
		return fmt.Errorf("list objects that the remote does not have: %w", err)
	}
	return update(ctx, s, refs, &packp.Command{Name: ref, Old: plumbing.ZeroHash, New: h}, c.repo.Storer, objects)
}

// update changes one reference, unless it is no longer at the command's old hash, and sends the
// objects for it.
func update(ctx context.Context, s pushSession, refs *packp.AdvRefs, c *packp.Command, from storer.EncodedObjectStorer, objects []plumbing.Hash) error {
	req := packp.NewReferenceUpdateRequest()
	req.Commands = []*packp.Command{c}
	needed := []capability.Capability{capability.ReportStatus}
	if refs.Capabilities.Supports(capability.Sideband64k) {
		// Over HTTP only a sideband has the reason of a refusal.
		needed = append(needed, capability.Sideband64k)
	}
	if c.Action() == packp.Delete {
		needed = append(needed, capability.DeleteRefs)
	}
	for _, capability := range needed {
		if err := req.Capabilities.Set(capability); err != nil {
			return err
		}
	}
	if c.Action() == packp.Delete {
		return s.push(ctx, req)
	}
	r, w := io.Pipe()
	req.Packfile = r
	go func() {
		_, err := packfile.NewEncoder(w, from, false).Encode(objects, 10)
		w.CloseWithError(err)
	}()
	return errors.Join(s.push(ctx, req), r.Close())
}

// explainRefusal adds the usual fix to an error of a server that allows reading but not writing.
func explainRefusal(err error) error {
	var refused *RemoteError
	if errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden) ||
		errors.Is(err, transport.ErrAuthorizationFailed) || errors.Is(err, transport.ErrAuthenticationRequired) || errors.Is(err, errClosedBySSH) {
		return fmt.Errorf("%w\nthe credentials of the configuration may read, which is all that the daemon needs; to push they must be allowed to write: push with your own (git push), or name others", err)
	}
	return err
}

// startPush begins a push over HTTP.
func (h *httpRemote) startPush(ctx context.Context) (pushSession, error) {
	client, header, m, err := h.client(ctx)
	if err != nil {
		return nil, err
	}
	endpoint := h.where.endpoint
	s, err := client.NewReceivePackSession(&endpoint, headerAuth{header})
	if err != nil {
		return nil, err
	}
	return &wireWriting{s, m}, nil
}

// A wireWriting speaks Git's protocol over the library's HTTP transport.
type wireWriting struct {
	transport.ReceivePackSession
	meter *meter
}

func (s *wireWriting) list(ctx context.Context) (*packp.AdvRefs, error) {
	refs, err := s.AdvertisedReferencesContext(ctx)
	return refs, s.meter.explain(err)
}

func (s *wireWriting) push(ctx context.Context, req *packp.ReferenceUpdateRequest) error {
	var messages capture
	req.Progress = &messages
	report, err := s.ReceivePack(ctx, req)
	switch {
	case err != nil:
		return s.meter.credentials.Error(messages.explain(s.meter.explain(err)))
	case report == nil:
		return errors.New("the server does not say what became of it")
	}
	return nil
}

// startPush begins a push over SSH.
func (r *sshRemote) startPush(ctx context.Context) (pushSession, error) {
	s, err := r.start(ctx, "git-receive-pack")
	if err != nil {
		return nil, err
	}
	return &sshWriting{s}, nil
}

// errClosedBySSH is the error of a server that accepts a read-only key and then does not run
// git-receive-pack.
var errClosedBySSH = errors.New("it ended without an answer")

// An sshWriting is one run of git-receive-pack.
type sshWriting struct{ *sshSession }

func (s *sshWriting) list(ctx context.Context) (*packp.AdvRefs, error) {
	refs, err := s.sshSession.list(ctx)
	if errors.Is(err, packp.ErrEmptyInput) {
		err = s.stderr.explain(errClosedBySSH)
	}
	return refs, err
}

func (s *sshWriting) push(_ context.Context, req *packp.ReferenceUpdateRequest) error {
	if err := req.Encode(s.in); err != nil {
		return s.explain(err)
	}
	if err := s.in.Close(); err != nil {
		return s.explain(err)
	}
	report := packp.NewReportStatus()
	if err := report.Decode(s.result(req)); err != nil {
		return s.explain(err)
	}
	if err := report.Error(); err != nil {
		return s.explain(err)
	}
	return nil
}

// result returns the server's report of the push; its messages to the user go to stderr.
func (s *sshWriting) result(req *packp.ReferenceUpdateRequest) io.Reader {
	if !req.Capabilities.Supports(capability.Sideband64k) {
		return s.out
	}
	d := sideband.NewDemuxer(sideband.Sideband64k, s.out)
	d.Progress = &s.stderr
	return d
}
