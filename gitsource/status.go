package gitsource

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// A Status is the state of a Repo at one moment. It has no secrets.
type Status struct {
	// URL and Ref are the remote and the tracked reference.
	URL, Ref string
	// Head is the newest accepted commit of the reference, with which head was last called or is
	// being called; empty before the first.
	Head string
	// LastPoll is the time of the last poll, and LastSuccess that of the last successful one.
	LastPoll, LastSuccess time.Time
	// NextPoll is the time of the next poll, unless RequestPoll is called before.
	NextPoll time.Time
	// Failures counts the polls that failed since the last success, also those that found a commit
	// that is not accepted.
	Failures int
	// Error is the error of the last poll on one line; empty after a success.
	Error string
	// Refused says that the repository was read, and that Error is why its newest commit is not accepted.
	Refused bool
}

// A Step is work on what a remote has sent.
type Step struct {
	What  string    `json:"what"`
	Since time.Time `json:"since"`
}

// The work that has steps.
const (
	pollStep = iota
	branchStep
	stepKinds
)

// Steps returns what is being done now, for Run and for FetchRef. Any goroutine may call it.
func (r *Repo) Steps() []Step { return r.steps.all() }

// steps are what is being done now, each kind of work by itself.
type steps struct {
	mu  sync.Mutex
	now [stepKinds]Step
}

// set records what is done now; empty for nothing.
func (s *steps) set(kind int, what string) {
	s.mu.Lock()
	s.now[kind] = Step{What: what, Since: time.Now()}
	s.mu.Unlock()
}

func (s *steps) all() []Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.now[:]), func(s Step) bool { return s.What == "" })
}

// Status returns the current status. Any goroutine may call it.
func (r *Repo) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// recordPoll records the result of a poll, and logs it if it differs from the previous result.
func (r *Repo) recordPoll(now time.Time, err error) {
	r.mu.Lock()
	before := r.status
	s := &r.status
	s.LastPoll = now
	_, s.Refused = errors.AsType[*CommitError](err)
	_, tooMuch := errors.AsType[*exceededError](err)
	if err == nil || s.Refused || tooMuch {
		r.remoteFailures = 0 // the remote works, so that no backoff is needed
	} else {
		r.remoteFailures++
	}
	if err == nil {
		s.LastSuccess, s.Failures, s.Error = now, 0, ""
	} else {
		s.Failures++
		s.Error = remote.Redact(err.Error())
	}
	after := *s
	r.mu.Unlock()
	log := r.cfg.Logger.With("url", after.URL, "ref", after.Ref)
	switch {
	case err != nil && before.Error != after.Error:
		log.Warn("cannot read the repository", "head", after.Head, "err", after.Error)
	case err == nil && before.Failures > 0:
		log.Info("the repository can be read again", "failures", before.Failures)
	}
}

// requestedDelay returns the delay that the remote requested with Retry-After; zero if none.
func requestedDelay(err error) time.Duration {
	if refused, ok := errors.AsType[*remote.HTTPError](err); ok {
		return refused.RetryAfter
	}
	return 0
}
