package gitsource

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// referenceForms are the references that a name can stand for, the most likely first. The checkout
// of a CI job often has remote-tracking branches only.
var referenceForms = []string{"refs/heads/%s", "refs/tags/%s", "refs/%s", "refs/remotes/%s", "refs/remotes/origin/%s"}

// completeName matches the names that stand for no other reference: HEAD and those that are written
// in full, such as refs/heads/main.
var completeName = regexp.MustCompile(`^(?:refs/.+|HEAD)$`)

var (
	// revisionStep is a step from a commit to another: ~N to its Nth ancestor, and ^N to its Nth
	// parent. The other two forms are the commit itself.
	revisionStep = regexp.MustCompile(`^(?:~(\d*)|\^\{(?:commit)?\}|\^(\d*))`)

	abbreviation = regexp.MustCompile(`^[0-9a-f]{4,40}$`)
)

// An unknownCommit says why a clone does not have a commit. It is an ErrUnknownCommit.
type unknownCommit struct{ revision, why string }

func (e *unknownCommit) Error() string {
	return fmt.Sprintf("commit %s is not in this clone: %s", e.revision, e.why)
}

func (e *unknownCommit) Is(target error) bool { return target == ErrUnknownCommit }

// commit resolves a revision.
func (c *Clone) commit(revision string) (*object.Commit, error) {
	name, steps := revision, ""
	if at := strings.IndexAny(revision, "~^"); at >= 0 {
		name, steps = revision[:at], revision[at:]
	}
	h, err := c.named(name)
	if err != nil {
		return nil, err
	}
	o, err := c.peel(revision, h)
	for err == nil && steps != "" {
		step := revisionStep.FindStringSubmatch(steps)
		if step == nil {
			return nil, &unknownCommit{revision, "after a name only ~N and ^N are understood"}
		}
		steps = steps[len(step[0]):]
		switch {
		case step[0][0] == '~':
			for n := count(step[1]); n > 0 && err == nil; n-- {
				o, err = c.parent(revision, o, 1)
			}
		case !strings.HasSuffix(step[0], "}") && count(step[2]) > 0:
			o, err = c.parent(revision, o, count(step[2]))
		}
	}
	return o, err
}

// count returns the number of a step, which is 1 if none is written.
func count(digits string) int {
	if digits == "" {
		return 1
	}
	n, _ := strconv.Atoi(digits) // of one that is too large it is the largest
	return n
}

func (c *Clone) parent(revision string, o *object.Commit, n int) (*object.Commit, error) {
	if n > len(o.ParentHashes) {
		return nil, &unknownCommit{revision, fmt.Sprintf("%s has no parent %d", o.Hash, n)}
	}
	return c.peel(revision, o.ParentHashes[n-1])
}

// peel returns a commit, or the commit that a tag points to.
func (c *Clone) peel(revision string, h plumbing.Hash) (*object.Commit, error) {
	found, err := object.GetObject(c.repo, h)
	if err != nil {
		return nil, &unknownCommit{revision, c.repo.Explain(fmt.Errorf("object %s: %w", h, err)).Error()}
	}
	switch o := found.(type) {
	case *object.Commit:
		return o, nil
	case *object.Tag:
		return c.peel(revision, o.Target)
	}
	return nil, &unknownCommit{revision, fmt.Sprintf("%s is a %s", h, found.Type())}
}

// unknown says that there is no such name or hash, and why the clone may lack it.
func (c *Clone) unknown(revision, why string) error {
	if more := c.repo.Shallowness(); more != "" {
		why += "; " + more
	}
	return &unknownCommit{revision, why}
}

// named returns the object that a name or a hash stands for.
func (c *Clone) named(name string) (plumbing.Hash, error) {
	if name == "" || name == "@" {
		name = plumbing.HEAD.String()
	}
	if strings.Contains(name, "@{") || strings.Contains(name, ":") {
		return plumbing.ZeroHash, &unknownCommit{name, "a commit is named by a branch, a tag or a hash, with ~N or ^N behind it"}
	}
	forms := referenceForms
	if completeName.MatchString(name) {
		forms = []string{"%s"}
	}
	for _, form := range forms {
		full := plumbing.ReferenceName(fmt.Sprintf(form, name))
		if full.Validate() != nil {
			continue
		}
		ref, err := storer.ResolveReference(c.repo, full)
		if err == nil {
			return ref.Hash(), nil
		}
		if !errors.Is(err, plumbing.ErrReferenceNotFound) {
			return plumbing.ZeroHash, fmt.Errorf("read %s: %w", full, err)
		}
	}
	if lower := strings.ToLower(name); abbreviation.MatchString(lower) {
		return c.abbreviated(lower)
	}
	return plumbing.ZeroHash, c.unknown(name, fmt.Sprintf("it has no branch and no tag %q", name))
}

// abbreviated returns the commit or tag whose hash begins with some digits.
func (c *Clone) abbreviated(digits string) (plumbing.Hash, error) {
	if len(digits) == len(plumbing.ZeroHash)*2 {
		return plumbing.NewHash(digits), nil
	}
	found, err := c.repo.HashesWithPrefix(digits)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("commit %s: %w", digits, err)
	}
	found = slices.DeleteFunc(found, func(h plumbing.Hash) bool {
		_, err := c.peel(digits, h)
		return err != nil
	})
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return plumbing.ZeroHash, c.unknown(digits, "no branch or tag has that name, and no commit a hash that begins so")
	}
	return plumbing.ZeroHash, &unknownCommit{digits, fmt.Sprintf("%s and %s begin so; write more digits", found[0], found[1])}
}
