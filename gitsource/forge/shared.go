package forge

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Shared client requests the list of open pull requests once per interval, for several users
// who each need it once per interval.
type Shared struct {
	Client
	maxAge time.Duration

	// forgotten counts the calls of ForgetList.
	forgotten atomic.Int64

	// mu is held while the list is requested. known is the value of forgotten before that.
	mu     sync.Mutex
	list   []PullRequest
	base   string
	listed time.Time
	known  int64
}

// Share returns a client whose list of open pull requests may be a little older than half an
// interval, so that two users share one request.
func Share(c Client, interval time.Duration) *Shared {
	return &Shared{Client: c, maxAge: interval * 3 / 5}
}

// ListOpen implements Client.
func (s *Shared) ListOpen(ctx context.Context, base string) ([]PullRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, forgotten := time.Now(), s.forgotten.Load()
	if s.base != base || s.known != forgotten || s.listed.IsZero() || now.Sub(s.listed) >= s.maxAge {
		list, err := s.Client.ListOpen(ctx, base)
		if err != nil {
			return nil, err
		}
		s.list, s.base, s.listed, s.known = list, base, now, forgotten
	}
	return slices.Clone(s.list), nil
}

// ForgetList makes the next ListOpen request a new list. It never waits.
func (s *Shared) ForgetList() { s.forgotten.Add(1) }

// OpenPullRequest implements Client.
func (s *Shared) OpenPullRequest(ctx context.Context, p NewPullRequest) (PullRequest, error) {
	defer s.ForgetList()
	return s.Client.OpenPullRequest(ctx, p)
}

// Edit implements Client.
func (s *Shared) Edit(ctx context.Context, t Thread, e Edit) error {
	defer s.ForgetList()
	return s.Client.Edit(ctx, t, e)
}

// Close implements Client.
func (s *Shared) Close(ctx context.Context, t Thread, comment, body string) error {
	defer s.ForgetList()
	return s.Client.Close(ctx, t, comment, body)
}
