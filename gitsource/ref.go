package gitsource

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// A Ref says what is followed. At most one field is set; if none is, it is the
// remote's default branch.
type Ref struct {
	Branch string
	Tag    string
	// Commit is a whole hash; it never moves.
	Commit string
}

// String is the reference as a person would say it.
func (f Ref) String() string {
	switch {
	case f.Branch != "":
		return "branch " + f.Branch
	case f.Tag != "":
		return "tag " + f.Tag
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
			errs = append(errs, &FieldError{"ref." + field, err})
		}
	}
	check("branch", f.Branch, validName(plumbing.NewBranchReferenceName(f.Branch)))
	check("tag", f.Tag, validName(plumbing.NewTagReferenceName(f.Tag)))
	_, err := parseHash(f.Commit)
	check("commit", f.Commit, err)
	if set > 1 {
		errs = append(errs, fieldErrorf("ref", "set only one of branch, tag and commit"))
	}
	return errors.Join(errs...)
}

func validName(name plumbing.ReferenceName) error {
	if name.Validate() != nil {
		return fmt.Errorf("%q is not a name that Git allows", name.Short())
	}
	return nil
}

// resolve finds the object that the reference points at, which for an
// annotated tag is the tag itself.
func (f Ref) resolve(ar *packp.AdvRefs) (plumbing.Hash, error) {
	switch {
	case f.Branch != "":
		return f.lookup(ar, plumbing.NewBranchReferenceName(f.Branch))
	case f.Tag != "":
		return f.lookup(ar, plumbing.NewTagReferenceName(f.Tag))
	case f.Commit != "":
		return plumbing.NewHash(f.Commit), nil
	case ar.Head == nil:
		return plumbing.ZeroHash, fmt.Errorf("%s: %w; set ref.branch", f, ErrRefNotFound)
	}
	return *ar.Head, nil
}

func (f Ref) lookup(ar *packp.AdvRefs, name plumbing.ReferenceName) (plumbing.Hash, error) {
	h, ok := ar.References[name.String()]
	if !ok {
		return plumbing.ZeroHash, fmt.Errorf("%s: %w", f, ErrRefNotFound)
	}
	return h, nil
}

// parseHash reads a whole hash: an abbreviation can come to mean another
// commit.
func parseHash(s string) (plumbing.Hash, error) {
	if len(s) != 40 || !plumbing.IsHash(s) {
		return plumbing.ZeroHash, fmt.Errorf("%q is not a whole commit hash of 40 hexadecimal digits", s)
	}
	return plumbing.NewHash(s), nil
}

// key names the reference in the store.
func (f Ref) key() string {
	sum := sha256.Sum256([]byte(f.String()))
	return hex.EncodeToString(sum[:8])
}
