package reconciler

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"github.com/gitfleet/gitfleet/gitsource"
)

// maxCrashes is the number of crashes during the load of a commit after which the commit is not
// loaded again. A single crash may have any cause, such as a power failure.
const maxCrashes = 2

// attempts records which commits began to load and did not finish, in this process and in
// earlier ones: a load that is in the record when the process starts was ended by a crash. The
// record is a file in the state directory. A commit whose loading has crashed the process twice
// is not loaded again until a user requests it. Otherwise the process would crash at each
// start.
//
// If the record had such loads when the process started, commits are loaded one at a time until
// the process ends, so that another crash counts only for the commit that caused it.
type attempts struct {
	path string // empty if nothing is stored
	log  *slog.Logger

	mu sync.Mutex
	// begun counts, by commit hash, the processes that began to load the commit and did not
	// finish. running counts the current loads of this process.
	begun, running map[string]int
	// oneAtATime says that commits are loaded one at a time; loading is then held during a load.
	oneAtATime bool
	loading    sync.Mutex
}

// readAttempts reads the record of an earlier process. An unreadable file counts as empty.
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
		log.Warn("the file of commits being loaded cannot be read; starting with an empty one", "path", path, "err", err)
		a.begun = map[string]int{}
	}
	a.oneAtATime = len(a.begun) > 0
	return a
}

// Attempts keeps the same kind of record, in a separate file, for commits that are loaded for
// other reasons. It returns a function to call before each load. That function returns an error
// if the commit has crashed the process before, and otherwise the function to call after the
// load.
func Attempts(path string, log *slog.Logger) func(commit string) (end func(), err error) {
	return readAttempts(path, log).begin
}

// errFatalCommit is the reason why a commit is not loaded.
var errFatalCommit = fmt.Errorf("loading this commit has ended the daemon %d times, probably because of a lack of memory, so it is not loaded again; "+
	"make the repository smaller, lower limits.commitSize, or give the daemon more memory, and run gitfleet sync to retry it", maxCrashes)

// begin records that the load of a commit begins. It returns the function to call when the load
// ends, or an error if the commit must not be loaded.
func (a *attempts) begin(commit string) (end func(), err error) {
	if a.path == "" {
		return func() {}, nil
	}
	release := func() {}
	if a.oneAtATime {
		a.loading.Lock()
		release = a.loading.Unlock
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running[commit] == 0 && a.begun[commit] >= maxCrashes {
		release()
		return nil, errFatalCommit
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

// reset allows commits that have crashed the process to be loaded again.
func (a *attempts) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for commit, n := range a.begun {
		if n >= maxCrashes {
			a.begun[commit] = maxCrashes - 1
		}
	}
	a.save()
}

// save replaces the file. If that fails, commits are still loaded, and the previous file stays.
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
	f, err := os.OpenFile(a.path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
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

// loadAgain loads the newest commit although loading it has crashed the process before.
func (r *Reconciler) loadAgain() {
	r.attempts.reset()
	c := r.source.Newest
	select {
	case r.retries <- gitsource.Commit{Hash: c.Hash, Author: c.Author, Subject: c.Subject, Time: c.Time, Message: c.Message}:
		r.source.LoadError, r.newestFatal = "", false
		r.cfg.Log.Info("loading a commit again that ended the daemon", "commit", c.Hash)
	default: // one is already waiting to be loaded
	}
}
