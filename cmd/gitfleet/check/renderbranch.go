package check

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A renderedBranch is a branch of a clone that has the manifests of each cluster.
type renderedBranch struct {
	clone *gitsource.Clone
	name  string
	// before are the files of the branch; nil if there is none yet.
	before fs.FS
	// listed are the clusters that have a directory there, and written what they get now.
	listed  []string
	written map[string]map[string][]byte
}

// openBranch opens a branch in the clone of what is rendered, DIRECTORY@REF.
func openBranch(what, name string, commit hub.Commit) (*renderedBranch, error) {
	dir := offline.CloneOf(what)
	if dir == "" || commit.Hash == "" {
		return nil, fmt.Errorf("--to-branch %s: a branch gets what a commit of a clone has; write DIRECTORY@REF, such as .@HEAD, instead of %s", name, what)
	}
	clone, err := gitsource.OpenClone(dir)
	if err != nil {
		return nil, err
	}
	b := &renderedBranch{clone: clone, name: name, written: map[string]map[string][]byte{}}
	if _, err := clone.Commit("refs/heads/" + name); err != nil {
		return b, nil
	}
	if b.before, err = clone.Files("refs/heads/" + name); err != nil {
		return nil, err
	}
	list, err := fs.ReadFile(b.before, renderedList)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--to-branch %s: the branch exists, and gitfleet render has not written it (it has no %s); name another branch", name, renderedList)
	}
	b.listed = clustersIn(list)
	return b, err
}

// replace implements destination.
func (b *renderedBranch) replace(cluster string, files map[string][]byte) error {
	if b.before != nil && !slices.Contains(b.listed, cluster) {
		if _, err := fs.Stat(b.before, cluster); err == nil {
			return errNotWritten
		}
	}
	b.written[cluster] = files
	if !slices.Contains(b.listed, cluster) {
		b.listed = append(b.listed, cluster)
	}
	return nil
}

// removeOthers implements destination.
func (b *renderedBranch) removeOthers(clusters []string) error {
	b.listed = slices.DeleteFunc(b.listed, func(name string) bool {
		gone := !slices.Contains(clusters, name)
		if gone {
			b.written[name] = nil
		}
		return gone
	})
	return nil
}

// writeToBranch adds a commit with the objects of a plan to a branch of the clone of what is rendered.
func (r *renderer) writeToBranch(what, name string, commit hub.Commit, p *plan.Plan) error {
	clusters, err := r.clusters(p)
	if err != nil {
		return err
	}
	b, err := openBranch(what, name, commit)
	if err != nil {
		return err
	}
	if err := r.write(b, name, clusters, p); err != nil {
		return err
	}
	slices.Sort(b.listed)
	made, changed, err := b.clone.UpdateBranch(gitsource.BranchUpdate{
		Branch: name, Dirs: b.written, Files: map[string][]byte{renderedList: []byte(strings.Join(b.listed, "\n") + "\n")},
		Message: fmt.Sprintf("Render %s: %s\n\n%s: %s\n", output.ShortHash(commit.Hash), commit.Subject, sourceTrailer, commit.Hash), Time: commit.Time,
	})
	switch {
	case err != nil:
		return fmt.Errorf("write branch %s: %w", name, err)
	case changed:
		fmt.Fprintf(r.notes, "branch %s is at %s; push it\n", name, output.ShortHash(made))
	default:
		fmt.Fprintf(r.notes, "branch %s has it already, at %s\n", name, output.ShortHash(made))
	}
	return r.finish(p)
}

// sourceTrailer names the commit that was rendered.
const sourceTrailer = "Gitfleet-Source"
