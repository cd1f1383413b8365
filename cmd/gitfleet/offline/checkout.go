package offline

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
)

// ReadDir reads a directory as if it were the tracked path in a commit of its repository:
// kustomizations may refer to files outside of it, ignore files above it apply, and problems
// have file names relative to the repository. A directory outside of a repository is treated as
// a repository.
func ReadDir(dir string, o hub.Options) (*hub.Snapshot, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	top, within, err := gitsource.FindWorkTree(dir)
	if err != nil {
		return nil, err
	}
	files, err := gitsource.WorkTree(top)
	if err != nil {
		return nil, err
	}
	o.Path = path.Join(within, o.Path)
	s, err := hub.NewLoader(o).Load(hub.Commit{}, files)
	var bad *hub.LoadError
	if err != nil && !errors.As(err, &bad) {
		return nil, fmt.Errorf("read %s: %s", dir, strings.TrimPrefix(err.Error(), "load commit : "))
	}
	return s, err
}
