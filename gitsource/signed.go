package gitsource

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/gitsource/signature"
)

// Signatures say whose commits are accepted. Every commit between the last
// accepted one and the new head is checked, not the head alone. The files are
// read again at each use.
type Signatures struct {
	// OpenPGP are files of public keys.
	OpenPGP []string
	// AllowedSigners is a file of SSH keys in the format of ssh-keygen.
	AllowedSigners string
	// Paths say who may change what; if there are none, every signer may
	// change everything. The longest path that fits decides, and a file that
	// none fits may be changed by nobody.
	Paths []SignedPath
	// Since is a commit from which on everything must be signed, that commit
	// not included. Without it the first commit ever seen must be signed by
	// somebody who may change every file in it.
	Since string
	// AllowRewrite accepts a head that does not descend from the last accepted
	// one, if it is signed by somebody who may change every file that differs.
	// Otherwise an old, properly signed state could be brought back by anybody
	// who can push.
	AllowRewrite bool
}

// A SignedPath says who may change files below a path.
type SignedPath struct {
	// Path is a directory or file; empty is the whole repository.
	Path string
	// Signers are fingerprints, e-mail addresses or principals.
	Signers []string
}

func (s *Signatures) validate() error {
	var errs []error
	if len(s.OpenPGP) == 0 && s.AllowedSigners == "" {
		errs = append(errs, fieldErrorf("signatures", "set openPGP or allowedSigners, or no commit could ever be accepted"))
	}
	if s.Since != "" {
		if _, err := parseHash(s.Since); err != nil {
			errs = append(errs, &FieldError{Field: "signatures.since", Err: err})
		}
	}
	seen := map[string]bool{}
	for i, p := range s.Paths {
		field := fmt.Sprintf("signatures.paths[%d]", i)
		if p.Path != "" && (path.Clean(p.Path) != p.Path || path.IsAbs(p.Path) || p.Path == "." || strings.HasPrefix(p.Path, "..")) {
			errs = append(errs, fieldErrorf(field+".path", "%q must be a plain path in the repository, such as apps/web", p.Path))
		}
		if len(p.Signers) == 0 {
			errs = append(errs, fieldErrorf(field+".signers", "must name somebody"))
		}
		if seen[p.Path] {
			errs = append(errs, fieldErrorf(field+".path", "%q is there twice", p.Path))
		}
		seen[p.Path] = true
	}
	return errors.Join(errs...)
}

// may reports whether a signer may change a file.
func (s *Signatures) may(signer signature.Signer, file string) bool {
	if len(s.Paths) == 0 {
		return true
	}
	var rule *SignedPath
	for i := range s.Paths {
		p := &s.Paths[i]
		fits := p.Path == "" || file == p.Path || strings.HasPrefix(file, p.Path+"/")
		if fits && (rule == nil || len(p.Path) > len(rule.Path)) {
			rule = p
		}
	}
	if rule == nil {
		return false
	}
	for _, name := range rule.Signers {
		if signer.Is(name) {
			return true
		}
	}
	return false
}

// A CommitError says why a commit of the remote is not accepted. The remote
// works; the commit has to change.
type CommitError struct {
	Hash string
	Err  error
}

// Error names the commit first.
func (e *CommitError) Error() string { return "commit " + e.Hash + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *CommitError) Unwrap() error { return e.Err }

// A verifier checks signatures on the way from an accepted commit to another.
type verifier struct {
	*Signatures
	keys *signature.Keys
	now  time.Time
	st   *store
	diff func(from, to plumbing.Hash) ([]Change, error)
}

// verify returns nil if all that leads to head is properly signed. base is the
// commit accepted last, zero if there was none.
func (r *Repo) verify(st *store, base plumbing.Hash, head *commit) error {
	if r.cfg.Signatures == nil {
		return nil
	}
	keys, err := signature.Load(r.cfg.Signatures.OpenPGP, r.cfg.Signatures.AllowedSigners)
	if err != nil {
		return fmt.Errorf("signatures: %w", err)
	}
	trees := newTreeCache(r.cfg.TreeCache)
	v := &verifier{r.cfg.Signatures, keys, time.Now(), st, func(from, to plumbing.Hash) ([]Change, error) {
		return diffTrees(func(h plumbing.Hash) ([]entry, error) { return trees.read(st, h) }, from, to)
	}}
	return v.from(base, head)
}

func (v *verifier) from(base plumbing.Hash, head *commit) error {
	first := base.IsZero()
	if first && v.Since != "" {
		base = plumbing.NewHash(v.Since)
	}
	if base.IsZero() {
		return v.vouch(head, plumbing.ZeroHash, "it is the first commit seen, so its signer must be allowed to change every file in it; or set signatures.since to a commit you trust")
	}
	fresh, descends, err := between(v.st, base, head, nil)
	switch {
	case err != nil:
		return err
	case descends:
		return v.each(fresh)
	case first:
		return &CommitError{head.hash.String(), fmt.Errorf("does not descend from %s, which signatures.since names", base)}
	case !v.AllowRewrite:
		return &CommitError{head.hash.String(), fmt.Errorf("does not descend from %s, which was accepted before; a signed history only grows, unless signatures.allowRewrite is set", base)}
	}
	from := plumbing.ZeroHash
	if old, err := readCommit(v.st, base); err == nil {
		from = old.tree
	}
	return v.vouch(head, from, "it rewrites history, so its signer must be allowed to change every file that differs")
}

// vouch accepts a commit on its own signature, for all that differs from a
// tree.
func (v *verifier) vouch(c *commit, from plumbing.Hash, why string) error {
	signer, err := v.keys.Verify(c.raw, c.time, v.now)
	if err != nil {
		return &CommitError{c.hash.String(), err}
	}
	changes, err := v.diff(from, c.tree)
	if err != nil {
		return err
	}
	if err := v.paths(signer, changes); err != nil {
		return &CommitError{c.hash.String(), fmt.Errorf("%w (%s)", err, why)}
	}
	return nil
}

// maxReported bounds how many bad commits one error names.
const maxReported = 5

// each checks commits on their own and reports the first bad ones together.
func (v *verifier) each(commits []*commit) error {
	var errs []error
	for _, c := range commits {
		err := v.one(c)
		var bad *CommitError
		if err != nil && !errors.As(err, &bad) {
			return err
		}
		if err != nil && len(errs) < maxReported {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (v *verifier) one(c *commit) error {
	signer, err := v.keys.Verify(c.raw, c.time, v.now)
	if err != nil {
		return &CommitError{c.hash.String(), err}
	}
	if len(v.Paths) == 0 {
		return nil
	}
	changes, err := v.changes(c)
	if err != nil {
		return err
	}
	if err := v.paths(signer, changes); err != nil {
		return &CommitError{c.hash.String(), err}
	}
	return nil
}

// paths reports whether a signer may make changes, naming the first few that may
// not be made.
func (v *verifier) paths(signer signature.Signer, changes []Change) error {
	var refused []string
	for _, c := range changes {
		if !v.may(signer, c.Path) {
			refused = append(refused, c.Path)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	more := ""
	if n := len(refused) - maxReported; n > 0 {
		refused, more = refused[:maxReported], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("signed by %s, who may not change %s%s", signer, strings.Join(refused, ", "), more)
}
