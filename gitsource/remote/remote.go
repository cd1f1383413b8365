// Package remote reads and writes remote repositories over HTTP, SSH and the file system.
//
// New returns the Remote at an address. A Session lists its references and fetches one pack of
// limited size; a PushSession changes one reference. Credentials are read from files or the
// environment for each session, and no error contains them. The git program is not used.
package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/gitfleet/gitfleet/gitsource/mask"
	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// A Config configures the access to a remote.
type Config struct {
	// Auth has the credentials for the remote, and the keys and CAs that verify it.
	Auth Auth
	// Getenv returns the environment variables that credentials name; nil refuses them.
	Getenv func(string) string
	// Limits limit what the remote can cause.
	Limits Limits
}

// Limits limit one session.
type Limits struct {
	// FetchBytes limits what is received.
	FetchBytes int64
	// ListBytes limits the part of FetchBytes that the list of references may take.
	ListBytes int64
	// ListTime limits the listing of references.
	ListTime time.Duration
}

// A Remote is a remote repository.
type Remote interface {
	// Session begins a session with the current credentials.
	Session(ctx context.Context) (Session, error)
	// Close closes idle connections.
	Close()
}

// A Session lists the references once, and may then fetch once.
type Session interface {
	// List returns the references.
	List(ctx context.Context) (*packp.AdvRefs, error)
	// Fetch returns a pack with all objects that the wanted commits need and the store does not
	// have.
	Fetch(ctx context.Context, f FetchRequest) (io.ReadCloser, error)
	// Received returns the number of bytes received so far.
	Received() int64
	io.Closer
}

// A FetchRequest describes a fetch.
type FetchRequest struct {
	// Wants are the commits to fetch. Haves are commits that the store has with their whole
	// history.
	Wants, Haves []plumbing.Hash
	// Has reports whether an object is in the store.
	Has func(plumbing.Hash) bool
	// Shallow asks for the wanted commits without the history behind them; a remote may send it all the same.
	Shallow bool
}

// New returns the remote at an address.
func New(cfg Config, where Location) (Remote, error) {
	switch where.Scheme {
	case "http", "https":
		return NewHTTP(cfg, where), nil
	case "file":
		return &localRemote{where.endpoint.Path}, nil
	case "ssh":
		return &sshRemote{cfg: cfg, where: where}, nil
	}
	return nil, FieldErrorf("url", "scheme %s is not supported", where.Scheme)
}

// A wireSession speaks Git's protocol over the library's HTTP transport.
type wireSession struct {
	transport.UploadPackSession
	meter *meter
	refs  *packp.AdvRefs
}

func (s *wireSession) List(ctx context.Context) (*packp.AdvRefs, error) {
	refs, err := s.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, s.meter.explain(err)
	}
	s.refs = refs
	return refs, nil
}

func (s *wireSession) Fetch(ctx context.Context, f FetchRequest) (io.ReadCloser, error) {
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

func (s *wireSession) Received() int64 { return s.meter.total() }

// request returns a request for a pack.
func request(refs *packp.AdvRefs, f FetchRequest) (*packp.UploadPackRequest, error) {
	req := packp.NewUploadPackRequestFromCapabilities(refs.Capabilities)
	req.Wants, req.Haves = f.Wants, f.Haves
	if refs.Capabilities.Supports(capability.NoProgress) {
		if err := req.Capabilities.Set(capability.NoProgress); err != nil {
			return nil, err
		}
	}
	if f.Shallow && refs.Capabilities.Supports(capability.Shallow) {
		req.Depth = packp.DepthCommits(1)
		if err := req.Capabilities.Set(capability.Shallow); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// demultiplex extracts the pack from a response that may also contain messages.
func demultiplex(req *packp.UploadPackRequest, res io.Reader) io.Reader {
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, res)
	case req.Capabilities.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, res)
	}
	return res
}

// A wirePack reads the pack. If the pack ends early, its error says why.
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

// A meter counts the bytes that a session receives, and ends the session at the limit. It
// records the first failure, since the library does not always return the cause.
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

// fetch raises the limit from that of the list of references to that of the whole session.
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
	err := fmt.Errorf("%w: more than %d bytes%s", objects.ErrTooLarge, most, what)
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
	return shortened(m.credentials.Error(err))
}

// shortened returns err if its text is short. Otherwise it returns an error that wraps err and has the
// beginning of its text, on one line. The library puts what a server says into errors, and a line of the
// protocol has up to 64 KiB.
func shortened(err error) error {
	if err == nil || len(err.Error()) <= maxText {
		return err
	}
	return &shortenedError{oneLine(err.Error()), err}
}

type shortenedError struct {
	text string
	err  error
}

func (e *shortenedError) Error() string { return e.text }
func (e *shortenedError) Unwrap() error { return e.err }

// metered counts the bytes that are read from a stream.
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
