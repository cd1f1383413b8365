package scenario

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/test/world"
)

// A source is a simulated repository.
type source struct {
	mu      sync.Mutex
	commits map[string]commit
	lost    map[string]commit // temporarily unreadable
	order   []string          // of the commits
	head    string
	news    chan struct{}
	// end makes Run return.
	end chan error
}

type commit struct {
	gitsource.Commit
	files fstest.MapFS
}

func newSource() *source {
	return &source{commits: map[string]commit{}, lost: map[string]commit{}, news: make(chan struct{}, 1), end: make(chan error)}
}

func (s *source) push(name, message string, files fstest.MapFS) {
	s.mu.Lock()
	s.commits[name] = commit{gitsource.Commit{Hash: name, Subject: name, Message: message, Time: time.Now()}, files}
	s.head, s.order = name, append(s.order, name)
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// lose makes a commit unreadable.
func (s *source) lose(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost[name] = s.commits[name]
	delete(s.commits, name)
}

// mend makes a commit readable again.
func (s *source) mend(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits[name] = s.lost[name]
}

// Run calls head with the head and each new commit.
func (s *source) Run(ctx context.Context, head func(gitsource.Commit)) error {
	last := ""
	for {
		s.mu.Lock()
		c, ok := s.commits[s.head]
		s.mu.Unlock()
		if ok && c.Hash != last {
			last = c.Hash
			head(c.Commit)
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.end:
			return err
		case <-s.news:
		}
	}
}

func (s *source) Files(_ context.Context, hash string) (fs.FS, error) {
	c, err := s.find(hash)
	return c.files, err
}

func (s *source) Commit(_ context.Context, hash string) (gitsource.Commit, error) {
	c, err := s.find(hash)
	return c.Commit, err
}

// since returns the commits in which parts of files last changed.
func (s *source) since(_ context.Context, head string, parts []gitsource.FilePart, read func(string, []byte) map[string]string) (map[gitsource.FilePart]gitsource.Commit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var history []world.Version
	for _, hash := range s.order[:slices.Index(s.order, head)+1] {
		history = append(history, world.Version{Commit: s.commits[hash].Commit, Files: s.commits[hash].files})
	}
	return world.Since(history, parts, read), nil
}

func (s *source) find(hash string) (commit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.commits[hash]
	if !ok {
		return c, fmt.Errorf("read commit %s: object not found", hash)
	}
	return c, nil
}

func (s *source) Status() gitsource.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return gitsource.Status{URL: "https://git.example/fleet", Ref: "main", Head: s.head}
}

// A store is the store of a ledger that can be made to fail, with the last saved state.
type store struct {
	ledger.Store

	mu    sync.Mutex
	fails bool
	saves int
	// missing is the result of Verify.
	missing []string
}

var errStore = errors.New("no space left on device")

func (s *store) Save(l *ledger.Ledger) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return errStore
	}
	s.saves++
	return s.Store.Save(l)
}

// Verify implements the verifier of the loop.
func (s *store) Verify(*ledger.Ledger) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missing
}

// lose makes Verify report missing parts.
func (s *store) lose(missing ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing = missing
}

// count returns the number of saves.
func (s *store) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saves
}

func (s *store) fail(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = yes
}
