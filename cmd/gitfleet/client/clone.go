package client

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"unicode"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// A cloneAtHand is the clone of a Git repository that the working directory is in.
type cloneAtHand struct {
	// remotes are the repositories of its remotes and the clone itself, which a daemon may follow, too.
	remotes []string
	// within is the path of the working directory in the clone.
	within string
	// hub returns the directory of the clone that the hub at hand is in: the nearest one, from the working directory upwards,
	// that has members or placements in it or below it; see isNoHub for exceptions. It is empty if the clone is of something else than a hub.
	hub func() string
}

// findClone returns the clone that contains a directory; nil if there is none, or if it has no remote.
func findClone(dir string) *cloneAtHand {
	top, within, err := gitsource.FindWorkTree(dir)
	if err != nil {
		return nil
	}
	clone, err := gitsource.OpenClone(top)
	if err != nil {
		return nil
	}
	c := &cloneAtHand{within: within, remotes: clone.Remotes()}
	if len(c.remotes) == 0 || strings.ContainsFunc(top+within, unicode.IsControl) { // which no header may have
		return nil
	}
	c.remotes = append(c.remotes, "file://"+filepath.ToSlash(top))
	c.hub = sync.OnceValue(func() string { return findHub(top, within) })
	return c
}

func (c *cloneAtHand) ask(header http.Header) {
	for _, r := range c.remotes {
		header.Add(server.CloneHeader, r)
	}
	header.Set(server.DirectoryHeader, c.within)
}

// isAnother reports whether the hub at hand is not the one that a daemon follows, which has refused a request. Everybody has
// clones of other things than hubs, and directories without a hub, in which any daemon may be asked.
func (c *cloneAtHand) isAnother(source string) bool {
	return c.hub() != "" && !server.IsCloneOf(source, c.remotes, c.hub())
}

// String describes the hub at hand.
func (c *cloneAtHand) String() string {
	text := c.remotes[0]
	if hub := c.hub(); hub != "." {
		text += "//" + hub
	}
	return text
}

// maxVisited is how many files and directories are looked at for a hub, and maxRead how much of a file is read.
const maxVisited, maxRead = 20000, 64 << 10

// hubGroups are the API groups of members and placements, as manifests name them.
var hubGroups = [][]byte{[]byte(api.ClusterGroup + "/"), []byte(api.PlacementGroup + "/")}

// findHub returns the hub of a clone as cloneAtHand.hub describes it. It searches the directory, and then each directory above it, up
// to the top of the clone.
func findHub(top, within string) string {
	visited := 0
	for dir, below := within, ""; ; dir, below = path.Dir(dir), dir {
		found := false
		err := filepath.WalkDir(filepath.Join(top, filepath.FromSlash(dir)), func(name string, e fs.DirEntry, err error) error {
			if visited++; visited > maxVisited {
				return errTooLarge
			}
			rel, _ := filepath.Rel(top, name)
			switch rel = filepath.ToSlash(rel); {
			case err != nil || e.IsDir() && (rel == below || rel != dir && isNoHub(name)):
				return fs.SkipDir // below has been searched already
			case e.Type().IsRegular() && isHubFile(name):
				found = true
				return fs.SkipAll
			}
			return nil
		})
		switch {
		case found:
			return dir
		case err != nil || dir == ".":
			return ""
		}
	}
}

var errTooLarge = errors.New("too many files")

// isNoHub reports whether a directory below a hub, or below any other directory, has no manifests that count: those of examples
// and tests are followed by no daemon, and another clone in a clone is another repository.
func isNoHub(dir string) bool {
	switch filepath.Base(dir) {
	case ".git", "examples", "test", "testdata":
		return true
	}
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

// isHubFile reports whether a file has a member or a placement in its beginning.
func isHubFile(name string) bool {
	if ext := strings.ToLower(filepath.Ext(name)); ext != ".yaml" && ext != ".yml" && ext != ".json" {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxRead))
	return bytes.Contains(text, hubGroups[0]) || bytes.Contains(text, hubGroups[1])
}
