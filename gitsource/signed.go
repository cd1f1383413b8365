package gitsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/gitsource/signature"
	"github.com/gitfleet/gitfleet/placement/api"
)

// publicCommit converts a commit for other packages, with its signer unless s is nil.
func (s *Signatures) publicCommit(c *objects.Commit) Commit {
	out := publicCommit(c)
	if s != nil {
		out.Signer = printable(s.signer(c))
	}
	return out
}

// signer returns whose valid signature a commit has; empty if nobody's.
func (s *Signatures) signer(c *objects.Commit) string {
	keys, err := signature.Load(s.OpenPGP, s.AllowedSigners)
	if err != nil {
		return ""
	}
	signer, err := keys.Verify(c.Raw, c.Time, time.Now())
	if err != nil {
		return ""
	}
	return signer.String()
}

// mayChange reports whether a signer may change a file, and what has to change if not.
func (s *Signatures) mayChange(signer signature.Signer, file string) (may bool, advice string) {
	if len(s.Paths) == 0 {
		return true, ""
	}
	i := grant.Longest(len(s.Paths), func(i int) string { return s.Paths[i].Path }, file)
	switch {
	case i < 0:
		return false, "no path in source.signatures.paths has that file; add one"
	case slices.ContainsFunc(s.Paths[i].Signers, signer.Is):
		return true, ""
	}
	return false, fmt.Sprintf("have somebody sign it whom source.signatures.paths[%d].signers names, or add the signer there", i)
}

// checkTrailers returns an error if a commit message releases blocked deletions of a placement that no
// path of the signer may produce.
func (s *Signatures) checkTrailers(signer signature.Signer, message string) error {
	for _, name := range api.AllowedDeletions(message) {
		if !slices.ContainsFunc(s.Paths, func(p SignedPath) bool { return slices.ContainsFunc(p.Signers, signer.Is) && p.Releases(name) }) {
			return fmt.Errorf("signed by %s, who may not release deletions of %s; remove it from the trailer %s, or add it to placements of a path of the signer", signer, name, api.AllowTrailer)
		}
	}
	return nil
}

// A CommitError is the reason why a commit of the remote is not accepted. Polling again does
// not help; a new commit has to be pushed.
type CommitError struct {
	Hash string
	Err  error
}

// Error returns the commit and the reason.
func (e *CommitError) Error() string { return "commit " + e.Hash + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *CommitError) Unwrap() error { return e.Err }

// A verifier verifies the signatures of the commits since an accepted one.
type verifier struct {
	*Signatures
	keys *signature.Keys
	now  time.Time
	st   *objects.Store
	tree treeReader
	// done returns an error once the work has to end.
	done func() error
}

// verify returns nil if every commit from base, which was accepted last, to head is signed by a
// signer who may make its changes. base is zero if no commit was accepted before.
func (r *Repo) verify(ctx context.Context, st *objects.Store, base plumbing.Hash, head *objects.Commit) error {
	if r.cfg.Signatures == nil {
		return nil
	}
	keys, err := signature.Load(r.cfg.Signatures.OpenPGP, r.cfg.Signatures.AllowedSigners)
	if err != nil {
		return fmt.Errorf("signatures: %w", err)
	}
	done := func() error { return context.Cause(ctx) }
	tree := func(h plumbing.Hash) ([]object.TreeEntry, error) {
		if err := done(); err != nil {
			return nil, err
		}
		return r.trees.Read(h, st.Tree)
	}
	v := &verifier{r.cfg.Signatures, keys, time.Now(), st, tree, done}
	if err := v.verifySince(base, head); err != nil {
		return err
	}
	return v.verifyTrailers(head)
}

func (v *verifier) verifySince(base plumbing.Hash, head *objects.Commit) error {
	first := base.IsZero()
	if first && v.Since != "" {
		base = plumbing.NewHash(v.Since)
	}
	if base.IsZero() {
		return v.verifyAll(head, plumbing.ZeroHash, "it is the first commit seen, so its signer must be allowed to change every file in it; or set signatures.since to a commit you trust")
	}
	added, descends, err := between(v.st, base, head, v.done)
	switch {
	case err != nil:
		return err
	case descends:
		return v.verifyEach(added)
	case first:
		return &CommitError{head.Hash.String(), fmt.Errorf("does not descend from %s, which signatures.since names", base)}
	case !v.AllowRewrite:
		return &CommitError{head.Hash.String(), fmt.Errorf("does not descend from %s, which was accepted before; a signed history only grows, unless signatures.allowRewrite is set", base)}
	}
	from := plumbing.ZeroHash
	if old, err := readCommit(v.st, base); err == nil {
		from = old.Tree
	}
	return v.verifyAll(head, from, "it rewrites history, so its signer must be allowed to change every file that differs")
}

// verifyAll returns nil if the signer of a commit may make all changes since the tree from,
// whoever made them. why is added to the error.
func (v *verifier) verifyAll(c *objects.Commit, from plumbing.Hash, why string) error {
	signer, err := v.keys.Verify(c.Raw, c.Time, v.now)
	if err != nil {
		return &CommitError{c.Hash.String(), err}
	}
	changes, err := diffTrees(v.tree, from, c.Tree)
	if err != nil {
		return err
	}
	if err := v.checkPaths(signer, changes); err != nil {
		return &CommitError{c.Hash.String(), fmt.Errorf("%w (%s)", err, why)}
	}
	return nil
}

// verifyTrailers returns nil if the signer of a head may use its trailers. Those of other commits
// have no effect, and the commit in Since is trusted.
func (v *verifier) verifyTrailers(head *objects.Commit) error {
	if len(v.Paths) == 0 || head.Hash == plumbing.NewHash(v.Since) {
		return nil
	}
	signer, err := v.keys.Verify(head.Raw, head.Time, v.now)
	if err == nil {
		err = v.checkTrailers(signer, head.Message)
	}
	if err != nil {
		return &CommitError{head.Hash.String(), err}
	}
	return nil
}

// maxReported is the maximum number of commits or paths that one error names.
const maxReported = 5

// verifyEach verifies each commit by itself. The error joins those of the first maxReported
// commits that fail.
func (v *verifier) verifyEach(commits []*objects.Commit) error {
	var errs []error
	for _, c := range commits {
		if err := v.done(); err != nil {
			return err
		}
		err := v.verifyCommit(c)
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

func (v *verifier) verifyCommit(c *objects.Commit) error {
	signer, err := v.keys.Verify(c.Raw, c.Time, v.now)
	if err != nil {
		return &CommitError{c.Hash.String(), err}
	}
	if len(v.Paths) == 0 {
		return nil
	}
	changes, err := v.changes(c)
	if err != nil {
		return err
	}
	if err := v.checkPaths(signer, changes); err != nil {
		return &CommitError{c.Hash.String(), err}
	}
	return nil
}

// checkPaths returns an error that names the first paths that a signer may not change, and what to do about the first.
func (v *verifier) checkPaths(signer signature.Signer, changes []pathChange) error {
	var refused []string
	first := ""
	for _, c := range changes {
		may, advice := v.mayChange(signer, c.path)
		if first = cmp.Or(first, advice); !may {
			refused = append(refused, c.path)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	more := ""
	if n := len(refused) - maxReported; n > 0 {
		refused, more = refused[:maxReported], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("signed by %s, who may not change %s%s; %s", signer, strings.Join(refused, ", "), more, first)
}

// changes returns the changes that a commit itself makes. For a merge commit these are its
// differences from an automatic merge: resolved conflicts, edited files and dropped changes.
func (v *verifier) changes(c *objects.Commit) ([]pathChange, error) {
	parents := make([]*objects.Commit, len(c.Parents))
	for i, p := range c.Parents {
		var err error
		if parents[i], err = readCommit(v.st, p); err != nil {
			return nil, err
		}
	}
	switch len(parents) {
	case 0:
		return diffTrees(v.tree, plumbing.ZeroHash, c.Tree)
	case 2:
		bases, err := mergeBases(v.st, parents[0], parents[1], v.done)
		if err != nil {
			return nil, err
		}
		if len(bases) == 1 {
			return v.merged(bases[0], parents[0], parents[1], c)
		}
	}
	var all []pathChange
	for _, p := range parents {
		changes, err := diffTrees(v.tree, p.Tree, c.Tree)
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	return all, nil
}

// merged returns where a merge commit differs from an automatic merge of its parents.
func (v *verifier) merged(base, one, other, c *objects.Commit) ([]pathChange, error) {
	var diffs [4][]pathChange
	for i, pair := range [4][2]*objects.Commit{{one, c}, {other, c}, {base, one}, {base, other}} {
		var err error
		if diffs[i], err = diffTrees(v.tree, pair[0].Tree, pair[1].Tree); err != nil {
			return nil, err
		}
	}
	byOne, byOther := paths(diffs[2]), paths(diffs[3])
	notOne, notOther := paths(diffs[0]), paths(diffs[1])
	var all []pathChange
	for _, d := range diffs[0] { // differs from the first parent
		if notOther[d.path] || byOne[d.path] {
			all = append(all, d)
		}
	}
	for _, d := range diffs[1] {
		if !notOne[d.path] && byOther[d.path] {
			all = append(all, d)
		}
	}
	return all, nil
}

func paths(changes []pathChange) map[string]bool {
	out := make(map[string]bool, len(changes))
	for _, c := range changes {
		out[c.path] = true
	}
	return out
}
