// Package memory divides the memory for what member clusters answer, so that several members which answer
// as much as they may do not take together what one alone cannot.
//
// A Pool belongs to all members of a process, and each has a Share of it. Before a member's large answer is
// read and decoded, its Share waits for a Lease; those who have used the pool least come first, and
// an answer that arrives slowly loses its lease to them. What is kept of a member is counted by Keep: once all
// members together keep too much, the one that keeps most is refused. The methods of a nil Pool and a nil
// Share limit nothing.
package memory

import (
	"context"
	"math"
	"sync"
	"time"
)

// A Size says how much memory a large answer may take while it is read and decoded.
type Size int

// The sizes.
const (
	Medium Size = iota // at most MediumBytes
	Large              // at most LargeBytes

	sizes
)

// MediumBytes and LargeBytes are what an answer may take, in bytes.
const (
	MediumBytes = 16 << 20
	LargeBytes  = 192 << 20
)

// withoutLimit is what a process without a limit counts as, in bytes.
const withoutLimit = 1 << 30

const (
	// leaseWait is how long a lease is waited for before another one may be revoked, and undisturbed how long that
	// must have lasted.
	leaseWait   = 2 * time.Second
	undisturbed = 5 * time.Second
	// memoryOfUse is the time after which what a member has used counts half.
	memoryOfUse = time.Minute
)

// A Pool is the memory that all members share. It is safe for concurrent use.
type Pool struct {
	mu     sync.Mutex
	free   [sizes]int
	held   map[*Lease]bool
	queue  []*Lease
	shares map[*Share]bool
	// kept is what is kept of all members, and most its limit, in bytes.
	kept, most int64
}

// New returns the pool of a process with a memory limit in bytes, or math.MaxInt64 for none. A fifth of it is
// for answers, and two fifths are for what is kept.
func New(limit int64) *Pool {
	if limit == math.MaxInt64 {
		limit = withoutLimit
	}
	p := &Pool{held: map[*Lease]bool{}, shares: map[*Share]bool{}, most: limit / 5 * 2}
	p.free[Medium] = int(max(2, limit/10/MediumBytes))
	p.free[Large] = int(max(1, limit/10/LargeBytes))
	return p
}

// Share returns the share of one member, until it is closed.
func (p *Pool) Share() *Share {
	if p == nil {
		return nil
	}
	s := &Share{pool: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shares[s] = true
	return s
}

// A Share is what one member uses of a pool. It is safe for concurrent use.
type Share struct {
	pool *Pool
	kept int64
	// used is for how long the member has held leases, until at; older use counts less.
	used time.Duration
	at   time.Time
}

// Close removes the share from its pool, with what is kept.
func (s *Share) Close() {
	if s == nil {
		return
	}
	s.Reset()
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	delete(s.pool.shares, s)
}

// Reset forgets what is kept of the member, because everything was dropped.
func (s *Share) Reset() {
	if s == nil {
		return
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pool.kept -= s.kept
	s.kept = 0
}

// Keep adds to what is kept of the member, or subtracts from it. It returns false if all members together keep
// too much, and no other one keeps more than this one, which has to drop everything.
func (s *Share) Keep(bytes int64) bool {
	if s == nil {
		return true
	}
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	s.kept += bytes
	p.kept += bytes
	if p.kept <= p.most {
		return true
	}
	for other := range p.shares {
		if other.kept > s.kept {
			return true
		}
	}
	return false
}

// A Lease lets one answer be read and decoded.
type Lease struct {
	share   *Share
	size    Size
	since   time.Time // when it was requested, and then granted
	granted chan struct{}
	revoke  func() // nil once it was called
}

// Lease waits until an answer may be read on. revoke, which must not block, is called once if the lease has to be
// released at once: others wait, and have used less. Who holds a Medium lease may wait for a Large one, but not the
// other way round.
func (s *Share) Lease(ctx context.Context, size Size, revoke func()) (*Lease, error) {
	if s == nil {
		return nil, nil
	}
	p := s.pool
	l := &Lease{share: s, size: size, since: time.Now(), granted: make(chan struct{}), revoke: revoke}
	p.mu.Lock()
	p.queue = append(p.queue, l)
	p.grant()
	p.mu.Unlock()
	again := time.NewTicker(leaseWait)
	defer again.Stop()
	for {
		select {
		case <-l.granted:
			return l, nil
		case <-again.C:
			p.revokeFor(l)
		case <-ctx.Done():
			l.Release()
			return nil, ctx.Err()
		}
	}
}

// Release gives the lease back. More than one call does no harm.
func (l *Lease) Release() {
	if l == nil {
		return
	}
	p := l.share.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, waiting := range p.queue {
		if waiting == l {
			p.queue = append(p.queue[:i], p.queue[i+1:]...)
			return
		}
	}
	if !p.held[l] {
		return
	}
	now := time.Now()
	l.share.used, l.share.at = l.share.usedAt(now)+now.Sub(l.since), now
	delete(p.held, l)
	p.free[l.size]++
	p.grant()
}

// grant gives what is free to those in the queue who have used least.
func (p *Pool) grant() {
	now := time.Now()
	for {
		next := -1
		for i, l := range p.queue {
			if p.free[l.size] > 0 && (next < 0 || p.usedBy(l.share, now) < p.usedBy(p.queue[next].share, now)) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		l := p.queue[next]
		p.queue = append(p.queue[:next], p.queue[next+1:]...)
		p.free[l.size]--
		p.held[l], l.since = true, now
		close(l.granted)
	}
}

// revokeFor takes the lease from the member that has held leases for longest, unless the waiting member has held them for longer.
func (p *Pool) revokeFor(waiting *Lease) {
	now := time.Now()
	p.mu.Lock()
	most, victim := p.usedBy(waiting.share, now), (*Lease)(nil)
	for l := range p.held {
		if l.size != waiting.size || l.share == waiting.share || now.Sub(l.since) < undisturbed {
			continue
		}
		if used := p.usedBy(l.share, now); used > most {
			most, victim = used, l
		}
	}
	var revoke func()
	if victim != nil {
		revoke, victim.revoke = victim.revoke, nil
	}
	p.mu.Unlock()
	if revoke != nil {
		revoke()
	}
}

// usedBy returns for how long a member has held leases, also those that it holds.
func (p *Pool) usedBy(s *Share, now time.Time) time.Duration {
	used := s.usedAt(now)
	for l := range p.held {
		if l.share == s {
			used += now.Sub(l.since)
		}
	}
	return used
}

func (s *Share) usedAt(now time.Time) time.Duration {
	ago := now.Sub(s.at)
	return time.Duration(float64(s.used) * float64(memoryOfUse) / float64(memoryOfUse+ago))
}
