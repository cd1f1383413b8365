package build

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
)

// A RemoteChart is a chart of a registry or a chart repository that an object or a kustomization asks for.
type RemoteChart struct {
	// Chart has no digest if none is locked.
	lockfile.Chart
	// Missing says that the lock file has the chart, and that it is not in the cache yet.
	Missing bool
}

// Chart finds the files of a chart, as far as they are locked and in the cache. They appear in the tree in a directory that says
// which chart it is. unavailable says why the files are not there.
func (r Remotes) Chart(t *tree.Tree, asked lockfile.Request) (dir string, use RemoteChart, unavailable string) {
	locked, is := r.Lock.Chart(asked)
	locked.Request = asked
	use.Chart = locked
	if !is {
		return "", use, fmt.Sprintf("the chart %s is not locked; run gitfleet lock, and commit %s", asked, r.LockFile)
	}
	_, address, _ := strings.Cut(asked.Repository, "://")
	dir = path.Join(address, asked.Name+"@"+locked.Resolved+"-"+strings.TrimPrefix(locked.Digest, "sha256:")[:12])
	if t.Mounted(dir) {
		return dir, use, ""
	}
	err := errors.New("nothing is fetched here")
	var files fs.FS
	if r.Charts != nil {
		files, err = r.Charts(locked)
	}
	if err != nil {
		use.Missing = true
		return dir, use, fmt.Sprintf("the chart %s, locked at version %s with digest %s, is not in the cache: %v", asked, locked.Resolved, locked.Digest, err)
	}
	t.Mount(dir, files)
	return dir, use, ""
}

// RemoteCharts are the charts of registries and chart repositories that the kustomizations ask for, each once.
func (g *Graph) RemoteCharts() []RemoteChart {
	all := slices.Clone(g.remoteCharts)
	slices.SortFunc(all, func(a, b RemoteChart) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}
