package forge

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A Shared client requests the list of open pull requests once per interval, for several users
// who each need it once per interval.
type Shared struct {
	Client
	maxAge time.Duration

	// listing is held while the list is requested.
	listing sync.Mutex

	mu     sync.Mutex
	list   []PullRequest
	base   string
	listed time.Time
	// forgotten counts the calls of ForgetList.
	forgotten int
}

// Share returns a client whose list of open pull requests may be a little older than half an
// interval, so that two users share one request.
func Share(c Client, interval time.Duration) *Shared {
	return &Shared{Client: c, maxAge: interval * 3 / 5}
}

// ListOpen implements Client.
func (s *Shared) ListOpen(ctx context.Context, base string) ([]PullRequest, error) {
	s.listing.Lock()
	defer s.listing.Unlock()
	began := time.Now()
	s.mu.Lock()
	list, known, forgotten := s.list, s.base == base && !s.listed.IsZero() && began.Sub(s.listed) < s.maxAge, s.forgotten
	s.mu.Unlock()
	if known {
		return slices.Clone(list), nil
	}
	list, err := s.Client.ListOpen(ctx, base)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forgotten == forgotten {
		s.list, s.base, s.listed = list, base, began
	}
	return slices.Clone(list), nil
}

// ForgetList makes the next ListOpen request a new list. It never waits for the forge.
func (s *Shared) ForgetList() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list, s.listed = nil, time.Time{}
	s.forgotten++
}

// OpenPullRequest implements Client.
func (s *Shared) OpenPullRequest(ctx context.Context, p Proposal) (PullRequest, error) {
	defer s.ForgetList()
	return s.Client.OpenPullRequest(ctx, p)
}

// EditPullRequest implements Client.
func (s *Shared) EditPullRequest(ctx context.Context, number int64, body string) error {
	defer s.ForgetList()
	return s.Client.EditPullRequest(ctx, number, body)
}

// ClosePullRequest implements Client.
func (s *Shared) ClosePullRequest(ctx context.Context, number int64, comment, body string) error {
	defer s.ForgetList()
	return s.Client.ClosePullRequest(ctx, number, comment, body)
}

// SetLabels implements Client.
func (s *Shared) SetLabels(ctx context.Context, number int64, add, remove []string) error {
	defer s.ForgetList()
	return s.Client.SetLabels(ctx, number, add, remove)
}
