package remote

import (
	"context"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
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
