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

func describeCommit(c gitsource.Commit) string {
	return fmt.Sprintf("%s (%s)", output.ShortHash(c.Hash), c.Subject)
}

// load loads a commit of the clone.
func (r *rollback) load(c gitsource.Commit) (*hub.Snapshot, error) {
	files, err := r.clone.Files(c.Hash)
	if err != nil {
		return nil, err
	}
	s, err := r.loader.Load(hub.Commit{Hash: c.Hash, Subject: c.Subject, Time: c.Time, Message: c.Message}, files)
	if bad, ok := errors.AsType[*hub.LoadError](err); ok {
		return nil, fmt.Errorf("commit %s does not load:\n%w", output.ShortHash(c.Hash), bad)
	}
	return s, err
}

// paths returns the files that have to change.
func (r *rollback) paths() ([]string, error) {
	then, err := r.load(r.from)
	if err != nil {
		return nil, err
	}
	now, err := r.load(r.now)
	if err != nil {
		return nil, fmt.Errorf("%w\nThe daemon refuses such a commit as a whole: fix it, or revert it with \"git revert\"", err)
	}
	var known bool
	if r.target, known = plan.SourceOf(then, r.key); !known {
		return nil, fmt.Errorf("commit %s has no %s: name another with --to", output.ShortHash(r.from.Hash), r.name)
	}
	mine := filesOf(then, r.target.Origins)
	if c, there := plan.SourceOf(now, r.key); there {
		mine = append(mine, filesOf(now, c.Origins)...)
	}
	slices.Sort(mine)
	paths, err := r.clone.Differing(r.now.Hash, r.from.Hash, slices.Compact(mine))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("the files of %s are the same at %s and at %s: there is nothing to revert", r.name, output.ShortHash(r.now.Hash), describeCommit(r.from))
	}
	if others := r.others(paths, then, now); len(others) > 0 && !r.shared {
		return nil, fmt.Errorf("the files to revert (%s) have parts of %s as well: revert these too with --include-shared, or revert %s by hand",
			strings.Join(paths, ", "), joinNames(others), r.name)
	}
	return paths, nil
}

// joinNames lists names in a sentence.
func joinNames(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// others lists the other placements and clusters that use some files.
func (r *rollback) others(paths []string, snapshots ...*hub.Snapshot) []string {
	var names []string
	add := func(name string, s *hub.Snapshot, origins ...api.Origin) {
		if slices.ContainsFunc(filesOf(s, origins), func(p string) bool { return slices.Contains(paths, p) }) {
			names = append(names, name)
		}
	}
	for _, s := range snapshots {
		for _, c := range plan.SourcesOf(s) {
			if c.Spec.Key != r.key {
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
	var files []string
	for _, o := range origins {
		if o.Kustomization != "" {
			files = append(files, s.Sources[o.Kustomization]...)
		} else {
			files = append(files, o.Path)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// check returns an error if the content of the placement at the new commit is not that of the
// commit to revert to.
func (r *rollback) check(made gitsource.Commit) error {
	s, err := r.load(made)
	if err != nil {
		return fmt.Errorf("the files of %s do not load with the others of %s, so no branch is created: %w", output.ShortHash(r.from.Hash), output.ShortHash(r.now.Hash), err)
	}
	after, there := plan.SourceOf(s, r.key)
	if !there || after.Fingerprint != r.target.Fingerprint {
		return fmt.Errorf("with its files reverted %s would still differ from what it was at %s, since other files contribute to it; no branch is created: revert it by hand, with \"git revert\"",
			r.name, output.ShortHash(r.from.Hash))
	}
	return nil
}
