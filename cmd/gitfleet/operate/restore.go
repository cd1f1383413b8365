package operate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A restoration determines the files of a placement that a rollback restores.
type restoration struct {
	*rollback
	loader *hub.Loader
	target plan.Content
}

func (b *restoration) load(c gitsource.Commit) (*hub.Snapshot, error) {
	files, err := b.clone.Files(c.Hash)
	if err != nil {
		return nil, err
	}
	s, err := b.loader.Load(hub.Commit{Hash: c.Hash, Subject: c.Subject, Time: c.Time, Message: c.Message}, files)
	var bad *hub.LoadError
	if errors.As(err, &bad) {
		return nil, fmt.Errorf("commit %s does not load:\n%w", output.ShortHash(c.Hash), bad)
	}
	return s, err
}

// paths returns the files that have to change.
func (b *restoration) paths() ([]string, error) {
	then, err := b.load(b.from)
	if err != nil {
		return nil, err
	}
	now, err := b.load(b.now)
	if err != nil {
		return nil, fmt.Errorf("%w\nSuch a commit is refused, and nothing of it reaches a cluster: mend it, or revert it with \"git revert\"", err)
	}
	var known bool
	if b.target, known = plan.ContentOf(then, b.key); !known {
		return nil, fmt.Errorf("commit %s has no %s: name another with --to", output.ShortHash(b.from.Hash), b.name)
	}
	mine := filesOf(then, b.target.Origins)
	if c, there := plan.ContentOf(now, b.key); there {
		mine = append(mine, filesOf(now, c.Origins)...)
	}
	slices.Sort(mine)
	paths, err := b.clone.Differing(b.now.Hash, b.from.Hash, slices.Compact(mine))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("the files of %s are at %s what they were at %s: there is nothing to take back", b.name, output.ShortHash(b.now.Hash), describeCommit(b.from))
	}
	if others := b.others(paths, then, now); len(others) > 0 && !b.shared {
		return nil, fmt.Errorf("%s are in files that go back as well (%s): take them back too with --include-shared, or take %s back by hand",
			joinNames(others), strings.Join(paths, ", "), b.name)
	}
	return paths, nil
}

// joinNames joins names for a sentence.
func joinNames(names []string) string {
	if len(names) == 1 {
		return "parts of " + names[0]
	}
	return "parts of " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// others lists the other placements and clusters that use some files.
func (b *restoration) others(paths []string, snapshots ...*hub.Snapshot) []string {
	var names []string
	add := func(name string, s *hub.Snapshot, origins ...api.Origin) {
		for _, p := range filesOf(s, origins) {
			if slices.Contains(paths, p) {
				names = append(names, name)
				return
			}
		}
	}
	for _, s := range snapshots {
		for _, c := range plan.Contents(s) {
			if c.Spec.Key != b.key {
				add(c.Spec.Key.String(), s, c.Origins...)
			}
		}
		for _, c := range s.Clusters {
			add("MemberCluster "+c.Name, s, c.Origin)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// filesOf returns the files of origins; for the output of a kustomization, all of its inputs.
func filesOf(s *hub.Snapshot, origins []api.Origin) []string {
	var out []string
	seen := map[string]bool{}
	for _, o := range origins {
		files := []string{o.Path}
		if o.Kustomization != "" {
			files = s.Sources[o.Kustomization]
		}
		for _, f := range files {
			if !seen[f] {
				seen[f] = true
				out = append(out, f)
			}
		}
	}
	return out
}

// check returns an error if the content of the placement at the new commit is not that of the
// commit to go back to.
func (b *restoration) check(made gitsource.Commit) error {
	s, err := b.load(made)
	if err != nil {
		return fmt.Errorf("the files of %s do not go together with the others of %s, so no branch is made: %w", output.ShortHash(b.from.Hash), output.ShortHash(b.now.Hash), err)
	}
	after, there := plan.ContentOf(s, b.key)
	if !there || after.Fingerprint != b.target.Fingerprint {
		return fmt.Errorf("with its files taken back %s would still not be what it was at %s, since something else of it stands elsewhere; no branch is made: take it back by hand, with \"git revert\"",
			b.name, output.ShortHash(b.from.Hash))
	}
	return nil
}
