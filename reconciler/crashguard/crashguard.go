// Package crashguard keeps the daemon from crashing at each start: what has ended the process twice is not done again until a
// user requests it.
package crashguard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"github.com/gitfleet/gitfleet/gitsource/atomicfile"
)

// maxCrashes is the number of crashes during the load of a commit after which the commit is not loaded again. A single
// crash may have any cause, such as a power failure.
const maxCrashes = 2

// A Guard records in a file which commits began to load and did not finish, in this process and in earlier ones: a
// load that is in the file when it is read was ended by a crash. A commit whose loading has crashed the process twice
// is not loaded again until a user requests it. Otherwise the process would crash at each start.
//
// If there were such loads when the file was read, commits are loaded one at a time, so that another crash counts only
// for the commit that caused it. Only one guard may use a file at a time.
type Guard struct {
	path string // empty if nothing is stored
	log  *slog.Logger

	mu sync.Mutex
	// begun counts, by commit hash, the processes that began to load the commit and did not finish. running counts the
	// current loads of this process.
	begun, running map[string]int
	// oneAtATime says that commits are loaded one at a time; loading is then held during a load.
	oneAtATime bool
	loading    sync.Mutex
}

// New reads a file. An unreadable file counts as empty. If path is empty, nothing is recorded.
func New(path string, log *slog.Logger) *Guard {
	g := &Guard{path: path, log: log, begun: map[string]int{}, running: map[string]int{}}
	if path == "" {
		return g
	}
	if err := atomicfile.Sweep(path); err != nil {
		log.Warn("what an interrupted write has left cannot be removed", "path", path, "err", err)
	}
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &g.begun)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("the file of commits being loaded cannot be read; starting with an empty one", "path", path, "err", err)
		g.begun = map[string]int{}
	}
	g.oneAtATime = len(g.begun) > 0
	return g
}

// ErrFatal is the reason why a commit is not loaded.
var ErrFatal = fmt.Errorf("loading this commit has ended the daemon %d times, probably because of a lack of memory, so it is not loaded again; "+
	"make the repository smaller, lower limits.commitSize, or give the daemon more memory, and run gitfleet sync to retry it", maxCrashes)

// Begin records that the load of a commit begins. It returns the function to call when the load ends, or an error if
// the commit must not be loaded. It may be called concurrently.
func (g *Guard) Begin(commit string) (end func(), err error) {
	if g.path == "" {
		return func() {}, nil
	}
	release := func() {}
	if g.oneAtATime {
		g.loading.Lock()
		release = g.loading.Unlock
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running[commit] == 0 && g.begun[commit] >= maxCrashes {
		release()
		return nil, ErrFatal
	}
	if g.running[commit]++; g.running[commit] == 1 {
		g.begun[commit]++
		g.save()
	}
	return func() {
		g.mu.Lock()
		if g.running[commit]--; g.running[commit] == 0 {
			delete(g.running, commit)
			delete(g.begun, commit)
			g.save()
		}
		g.mu.Unlock()
		release()
	}, nil
}

// Reset allows commits that have crashed the process to be loaded again.
func (g *Guard) Reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for commit, n := range g.begun {
		if n >= maxCrashes {
			g.begun[commit] = maxCrashes - 1
		}
	}
	g.save()
}

// save replaces the file. If that fails, commits are still loaded, and the previous file stays.
func (g *Guard) save() {
	if g.path == "" {
		return
	}
	raw, err := json.Marshal(g.begun)
	if err == nil {
		err = atomicfile.Write(g.path, func(w io.Writer) error {
			_, err := w.Write(raw)
			return err
		})
	}
	if err != nil {
		g.log.Warn("the record of commits being loaded cannot be written", "path", g.path, "err", err)
	}
}
