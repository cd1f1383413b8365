package gitsource

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/gitsource/remote"
)

var (
	// ErrUnknownCommit is returned for a commit that is not in the store.
	ErrUnknownCommit = errors.New("not in the store")
	// ErrNotInHistory is returned if one commit is not in the history of another, although it has to be.
	ErrNotInHistory = errors.New("not in the history")
	// ErrTooLarge is returned if one of the Limits is exceeded.
	ErrTooLarge = objects.ErrTooLarge
	// ErrRefNotFound is returned when the remote does not have the reference.
	ErrRefNotFound = errors.New("not on the remote")
)

// A Commit is the metadata of one commit of the hub.
type Commit struct {
	Hash   string
	Author string
	Email  string
	// Signer is whose signature the commit has, if Config.Signatures asks for signatures. Unlike the author, whom whoever
	// makes a commit can choose, it is verified. It is empty for a commit without a valid signature.
	Signer  string
	Subject string
	// Message is the full message, with subject and trailers.
	Message string
	// Time is the committer time.
	Time    time.Time
	Parents []string
}

// publicCommit converts a commit for other packages: text becomes UTF-8, and control characters
// are replaced in everything that is shown.
func publicCommit(c *objects.Commit) Commit {
	message := strings.ToValidUTF8(c.Message, "\uFFFD")
	subject, _, _ := strings.Cut(strings.TrimLeft(message, "\n"), "\n")
	out := Commit{
		Hash:    c.Hash.String(),
		Author:  printable(c.Author),
		Email:   printable(c.Email),
		Subject: strings.TrimSpace(printable(subject)),
		Message: message,
		Time:    c.Time,
	}
	for _, p := range c.Parents {
		out.Parents = append(out.Parents, p.String())
	}
	return out
}

// printable replaces invalid UTF-8 and control characters.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ReplaceAll(strings.TrimSuffix(text, "\r"), "\t", " "))
}

// A Ref selects the tracked reference. At most one field is set; the zero value is the remote's
// default branch.
type Ref struct {
	Branch string
	Tag    string
	// SemVer is a range such as ">=1.2 <2". The highest matching tag, with or without a leading
	// v, is tracked. Pre-releases match only if the range names one.
	SemVer string
	// Commit is a full hash, which never moves.
	Commit string
}

// String describes the reference in words.
func (f Ref) String() string {
	switch {
	case f.Branch != "":
		return "branch " + f.Branch
	case f.Tag != "":
		return "tag " + f.Tag
	case f.SemVer != "":
		return "tags " + f.SemVer
	case f.Commit != "":
		return "commit " + f.Commit
	}
	return "default branch"
}

func (f Ref) validate() error {
	var errs []error
	set := 0
	check := func(field, value string, err error) {
		if value == "" {
			return
		}
		set++
		if err != nil {
			errs = append(errs, &remote.FieldError{Field: "ref." + field, Err: err})
		}
	}
	check("branch", f.Branch, validName(plumbing.NewBranchReferenceName(f.Branch)))
	check("tag", f.Tag, validName(plumbing.NewTagReferenceName(f.Tag)))
	_, err := parseRange(f.SemVer)
	check("semver", f.SemVer, err)
	_, err = objects.ParseHash(f.Commit)
	check("commit", f.Commit, err)
	if set > 1 {
		errs = append(errs, remote.FieldErrorf("ref", "set only one of branch, tag, semver and commit"))
	}
	return errors.Join(errs...)
}

func validName(name plumbing.ReferenceName) error {
	if name.Validate() != nil {
		return fmt.Errorf("%q is not a name that Git allows", name.Short())
	}
	return nil
}

// A target is the object to fetch for a reference.
type target struct {
	// object is the object that the reference points to; for an annotated tag this is the tag
	// itself.
	object plumbing.Hash
	// wants are the hashes to fetch. They differ from object only for a commit that the remote
	// does not serve directly.
	wants []plumbing.Hash
}

// resolve finds the target among the references of the remote.
func (f Ref) resolve(refs *packp.AdvRefs) (target, error) {
	switch {
	case f.Branch != "":
		return f.lookup(refs, plumbing.NewBranchReferenceName(f.Branch))
	case f.Tag != "":
		return f.lookup(refs, plumbing.NewTagReferenceName(f.Tag))
	case f.SemVer != "":
		return f.highest(refs)
	case f.Commit != "":
		return fetchTargets(refs, f.pinned()), nil
	case refs.Head == nil:
		return target{}, fmt.Errorf("%s: %w; set ref.branch", f, ErrRefNotFound)
	}
	return only(*refs.Head), nil
}

func only(h plumbing.Hash) target { return target{h, []plumbing.Hash{h}} }

// pinned returns the tracked commit if it cannot move; zero otherwise.
func (f Ref) pinned() plumbing.Hash {
	if f.Commit == "" {
		return plumbing.ZeroHash
	}
	return plumbing.NewHash(f.Commit)
}

// fetchTargets returns the target of a commit: the commit itself if the remote allows fetching
// it, and otherwise all branches and tags.
func fetchTargets(refs *packp.AdvRefs, h plumbing.Hash) target {
	for _, tip := range refs.References {
		if tip == h {
			return only(h)
		}
	}
	if refs.Capabilities.Supports(capability.AllowReachableSHA1InWant) || refs.Capabilities.Supports("allow-any-sha1-in-want") {
		return only(h)
	}
	t, wanted := target{object: h}, map[plumbing.Hash]bool{} // there may be a million
	for _, name := range slices.Sorted(maps.Keys(refs.References)) {
		tip := refs.References[name]
		if (strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/")) && !wanted[tip] {
			wanted[tip] = true
			t.wants = append(t.wants, tip)
		}
	}
	return t
}

// parseRange reads a range of versions.
func parseRange(s string) (*semver.Constraints, error) {
	c, err := semver.NewConstraint(s)
	if err != nil {
		return nil, fmt.Errorf("%q is not a range of versions such as \">=1.2 <2\" or \"1.x\"", s)
	}
	return c, nil
}

// highest returns the tag with the highest version in the range; of several tags for the same
// version the last one by name.
func (f Ref) highest(refs *packp.AdvRefs) (target, error) {
	within, err := parseRange(f.SemVer)
	if err != nil {
		return target{}, err
	}
	var best *semver.Version
	var found plumbing.Hash
	for _, name := range slices.Sorted(maps.Keys(refs.References)) {
		tag, ok := strings.CutPrefix(name, "refs/tags/")
		if !ok {
			continue
		}
		v, err := semver.NewVersion(tag)
		if err != nil || !within.Check(v) {
			continue
		}
		if best == nil || !v.LessThan(best) {
			best, found = v, refs.References[name]
		}
	}
	if best == nil {
		return target{}, fmt.Errorf("%s: %w: no tag is in the range", f, ErrRefNotFound)
	}
	return only(found), nil
}

func (f Ref) lookup(refs *packp.AdvRefs, name plumbing.ReferenceName) (target, error) {
	h, ok := refs.References[name.String()]
	if !ok {
		return target{}, fmt.Errorf("%s: %w", f, ErrRefNotFound)
	}
	return only(h), nil
}

// Follows reports whether a push to a reference such as refs/heads/main can change what is
// tracked.
func (f Ref) Follows(name string) bool {
	switch {
	case f.Branch != "":
		return name == plumbing.NewBranchReferenceName(f.Branch).String()
	case f.Tag != "":
		return name == plumbing.NewTagReferenceName(f.Tag).String()
	case f.SemVer != "":
		return strings.HasPrefix(name, "refs/tags/")
	case f.Commit != "":
		return true // any push may contain the commit
	}
	return strings.HasPrefix(name, "refs/heads/")
}

// key identifies the reference in the store.
func (f Ref) key() string {
	sum := sha256.Sum256([]byte(f.String()))
	return hex.EncodeToString(sum[:8])
}
