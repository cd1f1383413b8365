package remote

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
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// A Pusher is a remote that can be pushed to.
type Pusher interface {
	// StartPush begins a push session.
	StartPush(ctx context.Context) (PushSession, error)
}

// A PushSession lists the references once, and may then send one update.
type PushSession interface {
	// List returns the references.
	List(ctx context.Context) (*packp.AdvRefs, error)
	// Push sends an update.
	Push(ctx context.Context, req *packp.ReferenceUpdateRequest) error
	io.Closer
}

// Update changes one reference and sends the objects for it. It fails if the reference is no
// longer at the command's old hash.
func Update(ctx context.Context, s PushSession, refs *packp.AdvRefs, c *packp.Command, from storer.EncodedObjectStorer, objects []plumbing.Hash) error {
	req := packp.NewReferenceUpdateRequest()
	req.Commands = []*packp.Command{c}
	needed := []capability.Capability{capability.ReportStatus}
	if refs.Capabilities.Supports(capability.Sideband64k) {
		// over HTTP, only the sideband transports the reason of a refusal
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
		return s.Push(ctx, req)
	}
	r, w := io.Pipe()
	req.Packfile = r
	go func() {
		_, err := packfile.NewEncoder(w, from, false).Encode(objects, 10)
		w.CloseWithError(err)
	}()
	return errors.Join(s.Push(ctx, req), r.Close())
}

// ExplainRefusal adds the usual fix to an error of a server that allows reading but not writing.
func ExplainRefusal(err error) error {
	var refused *HTTPError
	if errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden) ||
		errors.Is(err, transport.ErrAuthorizationFailed) || errors.Is(err, transport.ErrAuthenticationRequired) || errors.Is(err, errClosedBySSH) {
		return fmt.Errorf("%w\nthe credentials of the configuration may read, which is all that the daemon needs; to push they must be allowed to write: push with your own (git push), or name others", err)
	}
	return err
}

// StartPush begins a push over HTTP.
func (h *HTTP) StartPush(ctx context.Context) (PushSession, error) {
	client, header, m, err := h.client(ctx)
	if err != nil {
		return nil, err
	}
	endpoint := h.where.endpoint
	s, err := client.NewReceivePackSession(&endpoint, headerAuth{header})
	if err != nil {
		return nil, err
	}
	return &httpPushSession{s, m}, nil
}

// A httpPushSession speaks Git's protocol over the library's HTTP transport.
type httpPushSession struct {
	transport.ReceivePackSession
	meter *meter
}

func (s *httpPushSession) List(ctx context.Context) (*packp.AdvRefs, error) {
	refs, err := s.AdvertisedReferencesContext(ctx)
	return refs, s.meter.explain(err)
}

func (s *httpPushSession) Push(ctx context.Context, req *packp.ReferenceUpdateRequest) error {
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

// StartPush begins a push over SSH.
func (r *sshRemote) StartPush(ctx context.Context) (PushSession, error) {
	s, err := r.start(ctx, "git-receive-pack")
	if err != nil {
		return nil, err
	}
	return &sshPushSession{s}, nil
}

// errClosedBySSH is the error of a server that accepts a read-only key but does not run
// git-receive-pack.
var errClosedBySSH = errors.New("it ended without an answer")

// An sshPushSession is one run of git-receive-pack.
type sshPushSession struct{ *sshSession }

func (s *sshPushSession) List(ctx context.Context) (*packp.AdvRefs, error) {
	refs, err := s.sshSession.List(ctx)
	if errors.Is(err, packp.ErrEmptyInput) {
		err = s.stderr.explain(errClosedBySSH)
	}
	return refs, err
}

func (s *sshPushSession) Push(_ context.Context, req *packp.ReferenceUpdateRequest) error {
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

// result returns the server's report about the push. The server's messages to the user go to
// stderr.
func (s *sshPushSession) result(req *packp.ReferenceUpdateRequest) io.Reader {
	if !req.Capabilities.Supports(capability.Sideband64k) {
		return s.out
	}
	d := sideband.NewDemuxer(sideband.Sideband64k, s.out)
	d.Progress = &s.stderr
	return d
}
