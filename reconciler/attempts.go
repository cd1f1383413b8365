package reconciler

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/gitfleet/gitfleet/gitsource"
)

// maxDeaths is how often the process may end while it loads a commit. One death may
// have any cause, such as a machine that loses its power.
const maxDeaths = 2

// attempts are the loads of commits that were begun and have not ended, in this
// process and in those before it: what is left of them at a start ended with the
// process. They are kept in a file of the state directory. A commit that has ended the
// process twice is not loaded again before somebody asks for it: it would do so at
// each start, for ever.
//
// While any are left from before, commits are loaded one at a time, so that only the
// one that ends the process is blamed for it a second time.
type attempts struct {
	path string // empty if they are not kept
	log  *slog.Logger

	mu sync.Mutex
	// begun counts, by the hash of the commit, the processes that began to load it and
	// did not end it, running the loads of this one.
	begun, running map[string]int
	// alone is held by a load while careful is set.
	alone   sync.Mutex
	careful bool
}

// readAttempts reads what an earlier process left. A file that cannot be read counts
// as none: it says nothing that is needed.
func readAttempts(path string, log *slog.Logger) *attempts {
	a := &attempts{path: path, log: log, begun: map[string]int{}, running: map[string]int{}}
	if path == "" {
		return a
	}
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &a.begun)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("the record of commits being loaded cannot be read; it begins anew", "path", path, "err", err)
		a.begun = map[string]int{}
	}
	a.careful = len(a.begun) > 0
	return a
}

// errDeadly is why a commit is not loaded.
var errDeadly = fmt.Errorf("loading this commit has ended the daemon %d times, most likely for want of memory, so it is not loaded again; "+
	"make the repository smaller, lower limits.commitSize, or give the daemon more memory, and run gitfleet sync to have it tried again", maxDeaths)

// begin notes that a commit is about to be loaded. It returns the function to call once
// that is over, or an error if it must not be loaded.
func (a *attempts) begin(commit string) (end func(), err error) {
	if a.path == "" {
		return func() {}, nil
	}
	release := func() {}
	if a.careful {
		a.alone.Lock()
		release = a.alone.Unlock
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running[commit] == 0 && a.begun[commit] >= maxDeaths {
		release()
		return nil, errDeadly
	}
	if a.running[commit]++; a.running[commit] == 1 {
		a.begun[commit]++
		a.save()
	}
	return func() {
		a.mu.Lock()
		if a.running[commit]--; a.running[commit] == 0 {
			delete(a.running, commit)
			delete(a.begun, commit)
			a.save()
		}
		a.mu.Unlock()
		release()
	}, nil
}

// forgive has commits tried again that ended the process.
func (a *attempts) forgive() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for commit, n := range a.begun {
		if n >= maxDeaths {
			a.begun[commit] = maxDeaths - 1
		}
	}
	a.save()
}

// save writes the file in place of the old one. Without it commits are loaded all the
// same.
func (a *attempts) save() {
	if a.path == "" {
		return
	}
	if err := a.write(); err != nil {
		a.log.Warn("the record of commits being loaded cannot be written", "path", a.path, "err", err)
	}
}

func (a *attempts) write() error {
	raw, err := json.Marshal(a.begun)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(a.path), ".loading-*")
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), a.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// loadAgain has the newest commit loaded although it has ended the process before.
func (r *Reconciler) loadAgain() {
	r.attempts.forgive()
	c := r.source.Newest
	select {
	case r.retries <- gitsource.Commit{Hash: c.Hash, Author: c.Author, Subject: c.Subject, Time: c.Time, Message: c.Message}:
		r.source.LoadError, r.deadly = "", false
		r.cfg.Log.Info("commit that ended the daemon is loaded again, as somebody asked for", "commit", c.Hash)
	default: // it is being loaded
	}
}
