package gitsource

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// Config configures the tracked repository, the access to it, and the store.
type Config struct {
	// URL is https://, ssh:// or user@host:path, or with the flags below http://, file:// or an
	// absolute path. It contains no credentials.
	URL string
	// Ref is the tracked reference; the zero value is the remote's default branch.
	Ref Ref
	// Interval is the time between polls, 30 seconds if zero.
	Interval time.Duration
	// Dir is the directory that gets the stores, one per address; it is created if necessary.
	Dir string
	// Auth has the credentials for the remote, and the keys and CAs that verify it.
	Auth remote.Auth
	// Hosts have the credentials for other servers, from which remote bases come.
	Hosts remote.Hosts
	// AllowHTTP allows http://. Anybody on the network path can then change what the fleet
	// runs.
	AllowHTTP bool
	// AllowFile allows file:// and paths.
	AllowFile bool
	// Signatures, if not nil, limits whose commits are accepted.
	Signatures *Signatures
	// Limits limit what a remote can cause.
	Limits Limits
	// Logger gets one line per event; nil logs nothing.
	Logger *slog.Logger
	// Hooks are called on events.
	Hooks Hooks
	// Getenv returns the environment variables that credentials name; nil refuses them.
	Getenv func(string) string
}

// Limits limit one remote. A zero field means its default.
type Limits struct {
	// Limits limit one poll: 512 MiB, of which the list of references may take 64 MiB (about a
	// million references) and 30 s.
	remote.Limits
	// FetchTime limits one poll as a whole, or one FetchRef, 10 min by default, also the time for
	// unpacking and checking what was received.
	FetchTime time.Duration
	// FileBytes is the largest file that can be read, 16 MiB by default.
	FileBytes int64
	// Objects limits the objects of one fetch, 5 million by default.
	Objects int
	// ObjectBytes limits the size of an object that is rebuilt from a delta, 128 MiB by
	// default. Other objects are never in memory during a fetch.
	ObjectBytes int64
	// UnpackedBytes limits what the objects of one fetch take together when they are unpacked,
	// 16 GiB by default. Deltas of a few bytes can make large objects.
	UnpackedBytes int64
	// Packs is the maximum number of pack files before they are joined, 50 by default.
	Packs int
}

// Hooks are functions called on events; nil ones are not called.
type Hooks struct {
	// Polled is called after each poll with its duration. If the poll brought a commit, head
	// has returned before; its time is not included.
	Polled func(took time.Duration, err error)
	// Fetching is called with an object before it is fetched and before it is checked, for Run or by FetchRef. It returns a
	// function that is called when that has ended, or an error if it must not begin. It may be called concurrently.
	Fetching func(object string) (end func(), err error)
	// Fetched is called after each fetch with the bytes received.
	Fetched func(took time.Duration, bytes int64, err error)
}

// fetching calls Fetching.
func (h Hooks) fetching(object plumbing.Hash) (end func(), err error) {
	if h.Fetching == nil {
		return func() {}, nil
	}
	return h.Fetching(object.String())
}

const mib = 1 << 20

// treeCache is how many directory entries are cached.
const treeCache = 200_000

// remote is the configuration of the remote.
func (c Config) remote() remote.Config {
	return remote.Config{Auth: c.Auth, Getenv: c.Getenv, Limits: c.Limits.Limits}
}

// complete sets the defaults, validates the result and returns the address of the remote.
func (c Config) complete() (Config, remote.Location, error) {
	c = c.withDefaults()
	if err := c.Validate(); err != nil {
		return c, remote.Location{}, err
	}
	where, err := remote.ParseLocation(c.URL)
	return c, where, err
}

// withDefaults sets the defaults.
func (c Config) withDefaults() Config {
	c.Interval = cmp.Or(c.Interval, 30*time.Second)
	l := &c.Limits
	l.FetchBytes = cmp.Or(l.FetchBytes, 512*mib)
	l.ListBytes = cmp.Or(l.ListBytes, 64*mib)
	l.ListTime = cmp.Or(l.ListTime, 30*time.Second)
	l.FetchTime = cmp.Or(l.FetchTime, 10*time.Minute)
	l.FileBytes = cmp.Or(l.FileBytes, 16*mib)
	l.Objects = cmp.Or(l.Objects, 5_000_000)
	l.ObjectBytes = cmp.Or(l.ObjectBytes, 128*mib)
	l.UnpackedBytes = cmp.Or(l.UnpackedBytes, 16*1024*mib)
	l.Packs = cmp.Or(l.Packs, 50)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate returns all problems of the configuration, each as a FieldError.
func (c Config) Validate() error {
	var errs []error
	where, err := remote.ParseLocation(c.URL)
	switch {
	case err != nil:
		errs = append(errs, &remote.FieldError{Field: "url", Err: err})
	default:
		errs = append(errs, c.validateScheme(where.Scheme))
		errs = append(errs, c.Auth.Validate(where.Scheme, c.Getenv != nil))
	}
	errs = append(errs, c.Ref.validate())
	if c.Dir == "" {
		errs = append(errs, remote.FieldErrorf("stateDir", "must name a directory"))
	} else if !filepath.IsAbs(c.Dir) {
		errs = append(errs, remote.FieldErrorf("stateDir", "must be an absolute path, is %q", c.Dir))
	}
	if c.Interval != 0 && c.Interval < time.Second {
		errs = append(errs, remote.FieldErrorf("interval", "must be at least 1s, is %s; use the webhook for speed", c.Interval))
	}
	errs = append(errs, c.Limits.validate())
	if c.Signatures != nil {
		errs = append(errs, c.Signatures.validate())
	}
	return errors.Join(errs...)
}

func (c Config) validateScheme(scheme string) error {
	switch {
	case scheme == "http" && !c.AllowHTTP:
		return &remote.FieldError{Field: "url", Err: errors.New("http:// is neither secret nor authentic: use https://, or set allowHTTP"), Permit: "allowHTTP"}
	case scheme == "file" && !c.AllowFile:
		return &remote.FieldError{Field: "url", Err: errors.New("a local path needs allowFile"), Permit: "allowFile"}
	}
	return nil
}

func (l Limits) validate() error {
	var errs []error
	for _, f := range []struct {
		name     string
		negative bool
	}{
		{"limits.fetchBytes", l.FetchBytes < 0},
		{"limits.listBytes", l.ListBytes < 0},
		{"limits.listTime", l.ListTime < 0},
		{"limits.fetchTime", l.FetchTime < 0},
		{"limits.fileBytes", l.FileBytes < 0},
		{"limits.fetchObjects", l.Objects < 0},
		{"limits.objectBytes", l.ObjectBytes < 0},
		{"limits.unpackedBytes", l.UnpackedBytes < 0},
		{"limits.packs", l.Packs < 0},
	} {
		if f.negative {
			errs = append(errs, remote.FieldErrorf(f.name, "must not be negative"))
		}
	}
	return errors.Join(errs...)
}

// Signatures configures whose commits are accepted. Every commit between the last accepted one
// and the new head is verified, not just the head. The key files are read again for each
// verification.
type Signatures struct {
	// OpenPGP lists files of public keys.
	OpenPGP []string
	// AllowedSigners is a file of SSH keys in the format of ssh-keygen.
	AllowedSigners string
	// Paths limits who may change which files. If it is empty, every signer may change every
	// file. The longest matching path decides, and nobody may change a file that matches no
	// path.
	Paths []SignedPath
	// Since is a commit whose descendants must be signed; it does not have to be signed itself.
	// If it is empty, the first commit that is fetched must be signed by a signer who may
	// change every file in it.
	Since string
	// AllowRewrite accepts a head that does not descend from the last accepted commit, if it is
	// signed by a signer who may change every file that differs. It is off by default, since
	// otherwise anybody who can push could bring back an old signed state.
	AllowRewrite bool
}

// A SignedPath limits who may change the files below a path, and what they may produce.
type SignedPath struct {
	grant.Grant
	// Signers are fingerprints, e-mail addresses or principals.
	Signers []string
}

func (s *Signatures) validate() error {
	var errs []error
	if len(s.OpenPGP) == 0 && s.AllowedSigners == "" {
		errs = append(errs, remote.FieldErrorf("signatures", "set openPGP or allowedSigners, or no commit could ever be accepted"))
	}
	if s.Since != "" {
		if _, err := objects.ParseHash(s.Since); err != nil {
			errs = append(errs, &remote.FieldError{Field: "signatures.since", Err: err})
		}
	}
	seen := map[string]bool{}
	for i, p := range s.Paths {
		field := fmt.Sprintf("signatures.paths[%d]", i)
		if p.Path != "" && (path.Clean(p.Path) != p.Path || path.IsAbs(p.Path) || p.Path == "." || strings.HasPrefix(p.Path, "..")) {
			errs = append(errs, remote.FieldErrorf(field+".path", "%q must be a plain path in the repository, such as apps/web", p.Path))
		}
		if len(p.Signers) == 0 {
			errs = append(errs, remote.FieldErrorf(field+".signers", "must name somebody"))
		}
		if seen[p.Path] {
			errs = append(errs, remote.FieldErrorf(field+".path", "%q is there twice", p.Path))
		}
		seen[p.Path] = true
		if of, message := p.Validate(); of != "" {
			errs = append(errs, remote.FieldErrorf(field+"."+of, "%s", message))
		}
	}
	return errors.Join(errs...)
}

// ofBranch returns the limits for a branch that anybody may have pushed, such as that of a pull
// request.
func (l Limits) ofBranch() Limits {
	l.FetchBytes, l.Objects = min(l.FetchBytes, branchBytes), min(l.Objects, branchObjects)
	l.ObjectBytes, l.UnpackedBytes = min(l.ObjectBytes, branchObject), min(l.UnpackedBytes, branchUnpacked)
	return l
}

// The limits of a fetch by FetchRef and of a commit that is pushed.
const (
	branchBytes    = 32 * mib
	branchObject   = 32 * mib
	branchUnpacked = 2048 * mib
	branchObjects  = 100_000
	branchCommits  = 1000
)
