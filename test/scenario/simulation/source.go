package simulation

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/placement/api"
	hubs "github.com/gitfleet/gitfleet/test/world"
)

// A source is a simulated repository, with the content of its commits.
type source struct {
	w       *world
	commits map[string]*commit
	order   []string
	head    string
	news    chan struct{}
}

type commit struct {
	gitsource.Commit
	*desired
	files fstest.MapFS
	lost  bool
}

func newSource(w *world) *source {
	return &source{w: w, commits: map[string]*commit{}, news: make(chan struct{})}
}

// push adds a commit as the newest.
func (s *source) push(message string, d *desired) {
	hash := fmt.Sprintf("v%d", len(s.order)+1)
	subject := message
	if !d.withoutTrailer {
		message += "\n\n" + api.AllowTrailer + ": crp/" + strings.Join(placementNames, ", crp/")
	}
	s.commits[hash] = &commit{gitsource.Commit{Hash: hash, Subject: subject, Message: message, Time: time.Now()}, d, d.files(s.w.t), false}
	s.order = append(s.order, hash)
	s.head = hash
	close(s.news)
	s.news = make(chan struct{})
}

// run calls head with the head and each new commit, and hold before each new one.
func (s *source) run(ctx context.Context, hold func(), head func(gitsource.Commit)) error {
	last := ""
	for {
		if !s.wait(ctx, sourceTimers) {
			return nil
		}
		s.w.mu.Lock()
		c, news := s.commits[s.head], s.news
		s.w.mu.Unlock()
		if c != nil && c.Hash != last {
			last = c.Hash
			head(c.Commit)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-news:
			hold()
		}
	}
}

// wait sleeps as long as a request to a Git server takes.
func (s *source) wait(ctx context.Context, who int) bool {
	s.w.mu.Lock()
	at := s.w.nextInstant(who, 3*time.Millisecond)
	s.w.mu.Unlock()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Files implements reconciler.Source.
func (s *source) Files(_ context.Context, hash string) (fs.FS, error) {
	c, err := s.find(hash)
	if err != nil {
		return nil, err
	}
	return c.files, nil
}

// Commit implements reconciler.Source.
func (s *source) Commit(ctx context.Context, hash string) (gitsource.Commit, error) {
	s.wait(ctx, commitTimers)
	c, err := s.find(hash)
	if err != nil {
		return gitsource.Commit{}, err
	}
	return c.Commit, nil
}

// since returns the commits in which parts of files last changed.
func (s *source) since(_ context.Context, head string, parts []gitsource.FilePart, read func(string, []byte) map[string]string) (map[gitsource.FilePart]gitsource.Commit, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	var history []hubs.Version
	for _, hash := range s.order[:slices.Index(s.order, head)+1] {
		history = append(history, hubs.Version{Commit: s.commits[hash].Commit, Files: s.commits[hash].files})
	}
	return hubs.Since(history, parts, read), nil
}

func (s *source) find(hash string) (*commit, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if c := s.commits[hash]; c != nil && !c.lost {
		return c, nil
	}
	return nil, fmt.Errorf("read commit %s: object not found", hash)
}

// Status implements reconciler.Source.
func (s *source) Status() gitsource.Status {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return gitsource.Status{URL: "https://git.example/fleet", Ref: "main", Head: s.head}
}

// newestValid returns the newest valid commit.
func (w *world) newestValid() *desired {
	for _, hash := range slices.Backward(w.source.order) {
		if c := w.source.commits[hash]; !c.unreadable && !c.lost {
			return c.desired
		}
	}
	return w.source.commits[w.source.order[0]].desired
}
