package gitsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/gitfleet/gitfleet/gitsource/mask"
)

// A remote is a remote repository.
type remote interface {
	// session begins a session with the current credentials.
	session(ctx context.Context) (session, error)
	// close closes connections kept for the next session.
	close()
}

// A session lists the references once, and may then fetch once.
type session interface {
	list(ctx context.Context) (*packp.AdvRefs, error)
	// fetch returns a pack with everything that the wants need and the haves do not have. has
	// reports what is already in the store.
	fetch(ctx context.Context, f fetch) (io.ReadCloser, error)
	// received returns the number of bytes received so far.
	received() int64
	io.Closer
}

// A fetch is a fetch request.
type fetch struct {
	wants, haves []plumbing.Hash
	has          func(plumbing.Hash) bool
}

func newRemote(cfg Config, where location) (remote, error) {
	switch where.scheme {
	case "http", "https":
		return newHTTPRemote(cfg, where), nil
	case "file":
		return &localRemote{where.endpoint.Path}, nil
	case "ssh":
		return &sshRemote{cfg: cfg, where: where}, nil
	}
	return nil, fieldErrorf("url", "scheme %s is not supported", where.scheme)
}

// A wireSession speaks Git's protocol over the library's HTTP transport.
type wireSession struct {
	transport.UploadPackSession
	meter *meter
	refs  *packp.AdvRefs
}

func (s *wireSession) list(ctx context.Context) (*packp.AdvRefs, error) {
	refs, err := s.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, s.meter.explain(err)
	}
	s.refs = refs
	return refs, nil
}

func (s *wireSession) fetch(ctx context.Context, f fetch) (io.ReadCloser, error) {
	s.meter.fetch()
	req, err := request(s.refs, f)
	if err != nil {
		return nil, err
	}
	res, err := s.UploadPack(ctx, req)
	if err != nil {
		return nil, s.meter.explain(err)
	}
	return &wirePack{demultiplex(req, res), res, s.meter}, nil
}

func (s *wireSession) received() int64 { return s.meter.total() }

// request asks for a pack, never a shallow one.
func request(refs *packp.AdvRefs, f fetch) (*packp.UploadPackRequest, error) {
	req := packp.NewUploadPackRequestFromCapabilities(refs.Capabilities)
	req.Wants, req.Haves = f.wants, f.haves
	if refs.Capabilities.Supports(capability.NoProgress) {
		if err := req.Capabilities.Set(capability.NoProgress); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// demultiplex extracts the pack from a response that may have messages.
func demultiplex(req *packp.UploadPackRequest, res io.Reader) io.Reader {
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, res)
	case req.Capabilities.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, res)
	}
	return res
}

// A wirePack reads the pack, and returns why it ended early.
type wirePack struct {
	io.Reader
	io.Closer
	meter *meter
}

func (p *wirePack) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err != nil && err != io.EOF {
		err = p.meter.explain(err)
	}
	return n, err
}

// A meter counts the bytes that a session receives, ends it at the limit, and records the first
// failure: the library does not always return the cause.
type meter struct {
	limits Limits
	// credentials are masked in every error: the server may have echoed them.
	credentials mask.Credentials

	mu       sync.Mutex
	n        int64
	fetching bool
	err      error
}

func newMeter(limits Limits) *meter { return &meter{limits: limits} }

// fetch raises the limit from that of the listing to that of the whole session.
func (m *meter) fetch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fetching = true
}

// count adds received bytes; it returns an error at the limit.
func (m *meter) count(n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n += int64(n)
	most, what := m.limits.FetchBytes, " (limits.fetchBytes)"
	if !m.fetching && m.limits.ListBytes < most {
		most, what = m.limits.ListBytes, " in a list of references"
	}
	if m.n <= most {
		return nil
	}
	err := fmt.Errorf("%w: more than %d bytes%s", ErrTooLarge, most, what)
	m.err = cmp.Or(m.err, err)
	return err
}

func (m *meter) total() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n
}

// fail records the first failure, and returns it.
func (m *meter) fail(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = cmp.Or(m.err, err)
	return err
}

func (m *meter) explain(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil && !errors.Is(err, m.err) {
		err = m.err
	}
	return m.credentials.Error(err)
}

// metered counts a stream.
type metered struct {
	io.ReadCloser
	meter *meter
}

func (r metered) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	if over := r.meter.count(n); over != nil {
		return 0, over
	}
	return n, err
}
