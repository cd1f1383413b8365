package forge

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A Shared client lists open pull requests once for several users who each look at them once
// an interval.
type Shared struct {
	Client
	maxAge time.Duration

	// listing is held while the forge is asked for the list.
	listing sync.Mutex

	mu     sync.Mutex
	list   []PullRequest
	base   string
	listed time.Time
	// forgotten counts how often the list was forgotten.
	forgotten int
}

// Share returns a client whose list of open pull requests may be a little older than half an
// interval: of two users, one has it asked for, and the other one reads the same.
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

// ForgetList has the next ListOpen ask the forge. It never waits for the forge.
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
